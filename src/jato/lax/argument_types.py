"""Names for the types of some arguments, for annotations."""

from __future__ import annotations

from collections.abc import Sequence

from jato.lax.dot_algorithms import DotAlgorithm, DotAlgorithmPreset
from jato.ops.contract import Precision
from jato.ops.window import ConvDimensionNumbers

ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None
DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]
PrecisionLike = (
    None
    | str
    | Precision
    | tuple[str, str]
    | tuple[Precision, Precision]
    | DotAlgorithm
    | DotAlgorithmPreset
)
