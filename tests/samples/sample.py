"""Sample: one call of a primitive, as the contract tests make it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class Sample:
    """Operands (NumPy arrays, or what `hold` of reference_rules.py makes) and parameters.

    smooth   compare jvp with differences here (only where operands are float64 or complex128)
    ulps     how far `lower` may be from `reference`, in units of the last place
    signs    false where either zero is right
    batch    false where values of the mapped operands may not be permuted freely
    """

    operands: tuple[Any, ...]
    params: dict[str, Any] = field(default_factory=dict)
    smooth: bool = True
    ulps: float = 4.0
    batch: bool = True
    note: str = ""
    signs: bool = True

    def __repr__(self) -> str:
        shapes = ",".join(
            f"{getattr(x, 'dtype', type(x))}{list(getattr(x, 'shape', ()))}" for x in self.operands
        )
        return f"{shapes} {self.params} {self.note}"
