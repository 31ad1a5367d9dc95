"""Support for tests of the layers below jit/: eager evaluation, and the two `lax` namespaces.

`ours` and `theirs` hold functions of the same names, jato's and JAX's, so that a test function
written once as f(lax, x) has an oracle.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import numpy as np

import jato  # noqa: F401  (fills the hooks once the layers above exist)
from jato import _native
from jato.base import hooks
from jato.base.pytree import FlatFunction, tree_flatten
from jato.control.call import call
from jato.core.staging import trace_to_graph
from jato.core.types import type_of
from jato.ops import arithmetic, convert, selection, structural, transcendental


def evaluate_with_numpy(primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    if primitive.expand is not None:
        return primitive.expand(*args, **params)
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


def fill_hooks() -> None:
    """Lets primitives run eagerly where no compiler is there: through their NumPy references;
    and higher-order primitives step by step, so that these tests concern the rules only."""
    compiled = hooks.eval_primitive._value
    if compiled is None:
        hooks.eval_primitive.fill(evaluate_with_numpy)
    elif compiled is not step_by_step:
        _compiled.append(compiled)
        hooks.eval_primitive._value = step_by_step


_compiled: list[Any] = []


def step_by_step(primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    if type(primitive).__module__.startswith("jato.control"):
        run = primitive.reference if primitive.expand is None else primitive.expand
        return run(*args, **params)
    return _compiled[0](primitive, args, params)


def _names(*modules: Any) -> SimpleNamespace:
    found: dict[str, Any] = {}
    for module in modules:
        found.update({n: f for n, f in vars(module).items() if not n.startswith("_")})
    return SimpleNamespace(**found)


ours = _names(arithmetic, selection, transcendental, convert, structural)
theirs = jax.lax


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
