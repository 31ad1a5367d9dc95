"""Eager execution: the public functions of jato, compiled whole and dispatched natively.

`public` makes a function of jato.numpy and its kin: called on arrays it runs a program compiled
for its signature (Python scalars are run-time values, so that `x * 2.0` and `x * 3.0` share it);
called while a trace is active it is the plain function.

`eval_primitive` runs one primitive on arrays, the same way (`hooks.eval_primitive`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from jato import _native
from jato.base.caches import LruCache, MISSING
from jato.base.errors import require_unsharded
from jato.jit.pipeline import JitState, remember
from jato.jit.spec import JitSpec

_F = TypeVar("_F", bound=Callable[..., Any])


def public(static: Sequence[str] = (), name: str | None = None) -> Callable[[_F], Any]:
    """Decorator for the functions users call.

    static: names of parameters that choose what is computed (axis, dtype, shape, mode).  A list
    given for one of them is turned into a tuple.
    name: of the function that the user called, for messages; by default the function's own, without
    a leading underscore (_where is where).
    """

    def decorate(fun: _F) -> Any:
        code = fun.__code__
        if "out_sharding" in static:
            fun = _unsharded(fun)
        count = code.co_argcount
        names = tuple(static)
        positions = tuple(i for i, n in enumerate(code.co_varnames[:count]) if n in names)
        called = name or fun.__name__.lstrip("_")
        spec = JitSpec(fun, called, positions, names, public=True)
        state = JitState(spec)
        function = _native.JitFunction(fun, state.cold, fun, positions, names, (), called)
        for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(function, attribute, getattr(fun, attribute))
        return remember(function, state)

    return decorate


def _unsharded(fun: Any) -> Any:
    """`fun`, which does not look at `out_sharding`, refusing all but None for it."""

    @functools.wraps(fun)
    def checked(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        require_unsharded(fun.__name__, out_sharding)
        return fun(*args, **kwargs)

    return checked


# (primitive, params) -> its native dispatcher
_dispatchers = LruCache(4096)
# those of calls, loops and branches keep graphs and their programs alive: fewer are remembered
_graph_dispatchers = LruCache(256)


def eval_primitive(primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Runs a primitive on concrete arrays, NumPy arrays and numbers."""
    key = (primitive, *params.items())
    dispatchers = _graph_dispatchers if primitive.subgraphs(params) else _dispatchers
    dispatcher = dispatchers.get(key)
    if dispatcher is MISSING:
        dispatcher = _dispatcher(primitive, params)
        dispatchers.put(key, dispatcher)
    return dispatcher(*args)


def _dispatcher(primitive: Any, params: dict[str, Any]) -> Any:
    def run(*operands: Any) -> Any:
        return primitive.bind(*operands, **params)

    spec = JitSpec(run, primitive.name, public=True)
    state = JitState(spec)
    return remember(_native.JitFunction(run, state.cold, run, (), (), (), primitive.name), state)
