"""Support for tests of rules: evaluation with NumPy, and the two `lax` namespaces.

Rules are tested apart from the compiler: eager operations run through the NumPy references of
the primitives (see the conftest.py files), higher-order ones step by step.

`ours` and `theirs` hold functions of the same names, jato's and JAX's, so that a test function
written once as f(lax, x) has an oracle.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

import jato  # noqa: F401  (fills the hooks once the layers above exist)
from jato import _native
from jato.base.lazy import LazyModule
from jato.base.pytree import FlatFunction, tree_flatten
from jato.control.call import call
from jato.core.staging import trace_to_graph
from jato.core.trace import Tracer
from jato.core.types import type_of
from jato.ops import convert, elementwise, structural

# The conftest.py files that import this one must work without jax.
jax: Any = LazyModule("jax")


def evaluate_with_numpy(primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    if primitive.expand is not None:
        return primitive.expand(*args, **params)
    if any(isinstance(a, Tracer) for a in args):
        raise AssertionError(f"a tracer reached the evaluation of {primitive}")
    avals = [type_of(a) for a in args]
    out = primitive.type_rule(*avals, **params)
    hosts = [np.asarray(a, t.dtype) for a, t in zip(args, avals, strict=True)]
    with np.errstate(all="ignore"):
        found = primitive.reference(*hosts, **params)
    if primitive.multiple_results:
        return [
            _native.from_numpy(np.asarray(x, t.dtype), t.weak_type)
            for x, t in zip(found, out, strict=True)
        ]
    return _native.from_numpy(np.asarray(found, out.dtype), out.weak_type)


def _names(*modules: Any) -> SimpleNamespace:
    found: dict[str, Any] = {}
    for module in modules:
        found.update({n: f for n, f in vars(module).items() if not n.startswith("_")})
    return SimpleNamespace(**found)


ours = _names(elementwise, convert, structural)
theirs: Any = LazyModule("jax.lax")


def as_call(fun: Any) -> Any:
    """`fun` traced and run as one `call`, as jit does under a transform."""

    def called(*args: Any) -> Any:
        leaves, in_tree = tree_flatten((args, {}))
        flat = FlatFunction(fun, in_tree)
        graph = trace_to_graph(flat, [type_of(x) for x in leaves], "called")
        return flat.out_tree.unflatten(call(graph, *leaves))

    return called


def close(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Compares trees of arrays: structure, shapes, dtypes and values."""
    mine, my_tree = jax.tree_util.tree_flatten(found)
    oracle, oracle_tree = jax.tree_util.tree_flatten(expected)
    assert str(my_tree) == str(oracle_tree)
    for x, y in zip(mine, oracle, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape
        assert x.dtype == y.dtype or x.dtype.names == y.dtype.names == ("float0",)
        if x.dtype.names is None:
            np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)
