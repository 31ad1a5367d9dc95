"""`jax_debug_nans` and `jax_debug_infs`: results with a NaN or an infinity are errors.

While one of them is set, calls go through `JitState.checked`, which looks at every result.  A bad
one makes `raise_if_bad` run the program once more, operation by operation, to name the first
operation that gave such a value, and its place in the user's code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.config import config
from jato.compiler.graph.inline import inline
from jato.core.array import ArrayImpl
from jato.core.graph import Atom, Graph, Literal, Var
from jato.core.types import type_of


class InvalidValue(FloatingPointError):
    """A result with a value that a setting objects to: "nan" or "inf"."""

    def __init__(self, where: str, value: str, in_what: str):
        super().__init__(f"{where}: invalid value ({value}) encountered in {in_what}")
        self.value = value


_INEXACT = ("f16", "bf16", "f32", "f64", "c64", "c128")


def wanted() -> bool:
    """Is one of the two settings on?"""
    return bool(config.jax_debug_nans or config.jax_debug_infs)


def bad_value(x: Any) -> str | None:
    """ "nan" or "inf" if the array has such an element and the setting objects to it."""
    if not isinstance(x, ArrayImpl) or dtypes.scalar_name(type_of(x)) not in _INEXACT:
        return None
    values = np.asarray(x)
    if config.jax_debug_nans and np.isnan(values).any():
        return "nan"
    if config.jax_debug_infs and np.isinf(values).any():
        return "inf"
    return None


def raise_if_bad(
    name: str, graph: Graph | None, inputs: Sequence[Any], results: Sequence[Any]
) -> None:
    """FloatingPointError if a result has a value that a setting objects to.

    graph: the program of these results, which is run again to find the operation."""
    found = next((bad for bad in map(bad_value, results) if bad is not None), None)
    if found is None:
        return
    if graph is not None and len(graph.nodes) > 1:
        _locate(name, graph, inputs)
    raise InvalidValue(name, found, "the result")


def _locate(name: str, graph: Graph, inputs: Sequence[Any]) -> None:
    """Runs the operations one after the other, up to the first with a bad result."""
    graph = inline(graph)
    env: dict[Var, Any] = dict(zip(graph.constvars, graph.consts, strict=True))
    env.update(zip(graph.inputs, inputs, strict=True))

    def read(atom: Atom) -> Any:
        return atom.value if isinstance(atom, Literal) else env[atom]

    for node in graph.nodes:
        try:
            out = node.primitive.bind(*map(read, node.inputs), **node.params)
        except InvalidValue as error:
            place = f", at {node.frame}" if node.frame is not None else ""
            operands = ", ".join(str(a.aval) for a in node.inputs)
            what = f"{node.primitive.name}({operands}){place}"
            raise InvalidValue(name, error.value, what) from None
        env.update(zip(node.outputs, out if node.primitive.multiple_results else (out,), strict=True))
