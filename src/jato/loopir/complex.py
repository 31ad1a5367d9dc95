"""Complex arithmetic and functions over pairs of real expressions.  (stage 1: the data)"""
from __future__ import annotations

from typing import Any, Union

from jato.loopir.grammar import Expr


class Complex:
    """A complex value: the pair (re, im) of expressions of one float dtype."""

    __slots__ = ("im", "re")

    def __init__(self, re: Expr, im: Expr):
        self.re = re
        self.im = im

    @property
    def dtype(self) -> str:
        return "c64" if self.re.dtype == "f32" else "c128"

    def __repr__(self) -> str:
        return f"Complex({self.re!r}, {self.im!r})"


def complex_op(b: Any, opcode: str, *args: Any) -> Union[Complex, Expr]:
    raise NotImplementedError(opcode)
