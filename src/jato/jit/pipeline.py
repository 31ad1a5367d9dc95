"""The cold path of a call: from arguments to a compiled program.

A `JitFunction` (native) comes here with a signature it has not seen.  `JitState.cold` reads top to
bottom: take the arguments apart, trace, compile, and give an Entry that the native cache keeps.
`JitState.traced` is the way of a call under another transform: there a jitted function is one
operation, `call`.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jato import _native
from jato.base import caches, dtypes, observe
from jato.base.caches import LruCache, MISSING
from jato.base.config import config
from jato.base.lazy import LazyModule
from jato.base.pytree import FlatFunction, tree_flatten
from jato.base.signatures import leaf_names
from jato.compiler.graph.simplify import simplify
from jato.compiler.pipeline import Program, compile_graph
from jato.control.call import call
from jato.core.array import ArrayImpl, is_masked
from jato.core.effects import graph_has_effect
from jato.core.graph import Graph
from jato.core.staging import trace_to_graph
from jato.core.trace import STATE, Tracer, check_not_leaked, current_trace
from jato.core.types import type_of
from jato.jit import debug_values
from jato.jit.spec import JitSpec, function_name
from jato.jit.why_retraced import History, describe_call

logging: Any = LazyModule("logging")  # for JATO_LOG_COMPILES only


@dataclass
class JitStats:
    """What a jitted function has cost so far; `f.stats()` returns a copy.

    traces            times the Python function was run on tracers
    programs          programs compiled
    kernels_compiled  kernel patterns made by LLVM for it
    kernels_reused    kernels whose pattern existed, in memory or on disk
    trace_ms, compile_ms   time spent; `passes_ms` splits the latter
    kernels           names of the kernels of the last program
    """

    traces: int = 0
    programs: int = 0
    kernels_compiled: int = 0
    kernels_reused: int = 0
    trace_ms: float = 0.0
    compile_ms: float = 0.0
    passes_ms: dict[str, float] = field(default_factory=dict)
    kernels: tuple[str, ...] = ()

    def add(self, program: Program, seconds: float) -> None:
        self.programs += 1
        self.kernels_compiled += program.compiled
        self.kernels_reused += program.reused
        self.compile_ms += 1e3 * seconds
        self.kernels = program.kernels
        for name, ms in program.milliseconds.items():
            self.passes_ms[name] = self.passes_ms.get(name, 0.0) + ms


@dataclass(frozen=True, eq=False)
class Arguments:
    """A call's arguments taken apart.

    rest, named    the dynamic ones, in order and by keyword
    static         key of the static ones
    function       the user's function of the dynamic ones
    """

    rest: tuple[Any, ...]
    named: dict[str, Any]
    static: tuple[Any, ...]
    function: Callable[..., Any]


@dataclass(frozen=True, eq=False)
class TracedCall:
    """A traced call: its graph, and the structures around it."""

    graph: Graph
    in_tree: Any
    out_tree: Any
    names: list[str]


def split_arguments(spec: JitSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    fun = spec.fun
    fixed = [i for i in spec.static_argnums if i < len(args)]
    fixed_names = [n for n in kwargs if n in spec.static_argnames]
    if not fixed and not fixed_names:
        return Arguments(args, kwargs, (), fun)
    static: tuple[Any, ...] = tuple((i, _strict_key(args[i])) for i in fixed)
    static += tuple((n, _strict_key(kwargs[n])) for n in fixed_names)
    rest = tuple(a for i, a in enumerate(args) if i not in fixed)
    named = {n: v for n, v in kwargs.items() if n not in fixed_names}
    constant = {n: kwargs[n] for n in fixed_names}
    positions = {i: args[i] for i in fixed}
    count = len(args)

    def function(*dynamic: Any, **keywords: Any) -> Any:
        values = iter(dynamic)
        full = [positions[i] if i in positions else next(values) for i in range(count)]
        return fun(*full, **keywords, **constant)

    return Arguments(rest, named, static, function)


def _strict_key(value: Any) -> Any:
    """A key that differs where values are equal but no same program: 1, 1.0 and True; 0.0, -0.0.

    As the native dispatcher compares them (signature.cpp)."""
    if type(value) is tuple:
        return (tuple, *map(_strict_key, value))
    return type(value), repr(value) if type(value) in (float, complex) else value


class JitState:
    """The Python half of a jitted function."""

    def __init__(self, spec: JitSpec):
        self.spec = spec
        self.stats = JitStats()
        self.history = History(spec)
        self.lock = threading.Lock()
        # graphs of calls under other transforms, programs of checked calls
        self.graphs = LruCache(256)

    # ---- a call with a new signature

    def cold(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], info: Any) -> Any:
        """An Entry for the native cache, or the result itself where nothing can be cached."""
        spec = self.spec
        if config.jax_disable_jit and not spec.public:
            return spec.fun(*args, **kwargs)
        arguments = split_arguments(spec, args, kwargs)
        leaves, in_tree = tree_flatten((arguments.rest, arguments.named))
        self.check_leaves(args, kwargs, arguments, leaves)
        if any(_has_own_form(x) for x in leaves):  # objects with __jax_array__: convert, try again
            converted = [x.__jax_array__() if _has_own_form(x) else x for x in leaves]
            rest, named = in_tree.unflatten(converted)
            return function(*_joined(spec, args, rest), **{**kwargs, **named})
        if debug_values.wanted():
            return self.checked(arguments, leaves, in_tree)
        if not spec.public:
            self.history.record(args, kwargs, arguments)
            if config.jax_log_compiles or config.jax_explain_cache_misses:
                self.log(args, kwargs)
        traced = self.trace(arguments, [type_of(x) for x in leaves], in_tree)
        donated = self.donated_positions(args, kwargs, arguments)
        program = self.compile(traced, donated)
        return _entry(traced, program, len(leaves), donated)

    def checked(self, arguments: Arguments, leaves: list[Any], in_tree: Any) -> Any:
        """The result of a call whose values are looked at (`jax_debug_nans`, `jax_debug_infs`).

        Nothing is donated: a program with a bad result runs again."""
        avals = tuple(type_of(x) for x in leaves)
        key = ("checked", avals, in_tree, arguments.static, config.epoch)
        known = self.graphs.get(key)
        if known is MISSING:
            known = self.checked_entry(arguments, avals, in_tree)
            self.graphs.put(key, known)
        graph, entry = known
        result = entry.run(leaves)
        debug_values.raise_if_bad(self.spec.name, graph, leaves, tree_flatten(result)[0])
        return result

    def checked_entry(
        self, arguments: Arguments, avals: tuple[Any, ...], in_tree: Any
    ) -> tuple[Graph | None, Any]:
        """(the program's graph, to find bad operations with; its entry)."""
        traced = self.trace(arguments, avals, in_tree)
        return traced.graph, _entry(traced, self.compile(traced), len(avals), [])

    def trace(self, arguments: Arguments, avals: Sequence[Any], in_tree: Any) -> TracedCall:
        flat = FlatFunction(arguments.function, in_tree)
        names: list[str] = []
        if not self.spec.public:
            names = _argument_names(self.spec, arguments, len(avals))
        start = time.perf_counter()
        graph = trace_to_graph(flat, avals, self.spec.name, "jit", names or None)
        seconds = time.perf_counter() - start
        with self.lock:
            self.stats.traces += 1
            self.stats.trace_ms += 1e3 * seconds
        observe.timing("trace", seconds, self.spec.name)
        observe.stage("trace", graph, self.spec.name)
        return TracedCall(graph, in_tree, flat.out_tree, names)

    def compile(self, traced: TracedCall, donated: Sequence[int] = ()) -> Program:
        start = time.perf_counter()
        program = compile_graph(_with_arrays(traced.graph), donated)
        with self.lock:
            self.stats.add(program, time.perf_counter() - start)
        return program

    # ---- under another transform

    def traced(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call as one operation of the current trace."""
        spec = self.spec
        if spec.public or config.jax_disable_jit:
            return spec.fun(*args, **kwargs)
        arguments = split_arguments(spec, args, kwargs)
        leaves, in_tree = tree_flatten((arguments.rest, arguments.named))
        self.check_leaves(args, kwargs, arguments, leaves)
        leaves = [x.__jax_array__() if _has_own_form(x) else x for x in leaves]
        avals = tuple(type_of(x) for x in leaves)
        # sizes of named axes are constants of the graph
        axes = tuple(STATE.axis_sizes.items())
        key = (avals, in_tree, arguments.static, config.epoch, axes)
        try:
            known = self.graphs.get(key)
        except TypeError:
            self.reject_static(args, kwargs)
            raise
        if known is MISSING:
            known = self.trace(arguments, avals, in_tree)
            if not any(isinstance(c, Tracer) for c in known.graph.consts):
                self.graphs.put(key, known)
        outs = call(known.graph, *leaves, name=spec.name)
        return known.out_tree.unflatten(outs)

    # ---- arguments

    def check_leaves(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], arguments: Arguments, leaves: list[Any]
    ) -> None:
        for i, x in enumerate(leaves):
            if isinstance(x, (ArrayImpl, bool, int, float, complex)):
                continue
            if isinstance(x, Tracer):
                check_not_leaked(x)
                if current_trace() is not None:
                    continue
            masked = is_masked(x)
            if isinstance(x, (np.ndarray, np.generic)) and not masked:
                try:
                    dtypes.as_dtype(x.dtype)
                    continue
                except TypeError:
                    pass
            if _has_own_form(x):
                continue
            name = _argument_names(self.spec, arguments, len(leaves))[i]
            if masked:
                raise TypeError(
                    f"{self.spec.name}: argument {name}: expected an array or a number, got a NumPy "
                    "masked array, whose mask would be lost. Pass x.filled(value), or the data and "
                    "the mask as two arrays."
                )
            kind = f"a NumPy array of dtype {x.dtype}" if isinstance(x, np.ndarray) else (
                f"{type(x).__name__} ({x!r:.60})"
            )
            hint = "" if self.spec.public else (
                " If it is an option of the function, mark it static (static_argnames="
                f"'{name.split('[')[0].split('.')[0]}')."
            )
            raise TypeError(
                f"{self.spec.name}: argument {name}: expected an array or a number, got {kind}.{hint}"
            )

    def donated_positions(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        arguments: Arguments,
    ) -> list[int]:
        """Positions among the dynamic leaves that the user allowed to overwrite."""
        spec = self.spec
        if not spec.donate_argnums and not spec.donate_argnames:
            return []
        position = 0
        found: list[int] = []
        for i, value in enumerate(args):
            if i in spec.static_argnums:
                continue
            count = len(tree_flatten(value)[0])
            if i in spec.donate_argnums:
                found += range(position, position + count)
            position += count
        for name in sorted(arguments.named):
            count = len(tree_flatten(kwargs[name])[0])
            if name in spec.donate_argnames:
                found += range(position, position + count)
            position += count
        return found

    def reject_static(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raises ValueError for the first static argument without a hash, if there is one."""
        spec = self.spec
        for i in spec.static_argnums:
            if i < len(args):
                check_static(spec, i, args[i])
        for name in spec.static_argnames:
            if name in kwargs:
                check_static(spec, name, kwargs[name])

    def log(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        lines = self.history.explain()
        text = "; ".join(lines) if lines else f"first call with {describe_call(args, kwargs)}"
        logger = logging.getLogger("jato.jit")
        if not logger.handlers and not logging.getLogger().handlers:
            logger.addHandler(logging.StreamHandler())
            logger.setLevel(logging.INFO)
        logger.warning("tracing and compiling %s: %s", self.spec.name, text)


# every native dispatcher, so that clear_caches() reaches their entries
_functions: weakref.WeakSet[Any] = weakref.WeakSet()


def remember(function: Any, state: JitState) -> Any:
    """Ties a native dispatcher to its Python half and lists it for `clear_caches`."""
    function._state = state
    _functions.add(function)
    return function


def _forget_entries() -> None:
    for function in list(_functions):
        function.cache_clear()


caches.register(_forget_entries)


def _renew_locks() -> None:
    """In a child of fork: another thread of the parent may have held a lock."""
    for function in list(_functions):
        function._state.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def check_static(spec: JitSpec, which: int | str, value: Any) -> None:
    try:
        if not isinstance(value, (ArrayImpl, np.ndarray, Tracer)):
            hash(value)
            return
    except TypeError:
        pass
    raise static_error(spec, which, value)


def unhashable_static(fun: Any, which: int | str, value: Any) -> ValueError:
    """What the native dispatcher raises for a static argument that has no hash."""
    return static_error(JitSpec(fun, function_name(fun)), which, value)


def static_error(spec: JitSpec, which: int | str, value: Any) -> ValueError:
    """The error for a static argument that has no hash."""
    name = which if isinstance(which, str) else _parameter_name(spec, which)
    kind = type(value).__name__
    if isinstance(value, ArrayImpl):
        kind = "Array (ArrayImpl)"
    what = "an array" if isinstance(value, (ArrayImpl, np.ndarray, Tracer)) else "unhashable"
    hint = {
        "list": "Pass a tuple instead of a list.",
        "dict": "Pass a tuple of items, or a frozen dataclass.",
        "set": "Pass a frozenset.",
    }.get(
        type(value).__name__,
        "Pass a tuple of Python numbers, such as tuple(map(int, x)), or do not mark it static."
        if what == "an array"
        else "Give its class __hash__ and __eq__, or do not mark it static.",
    )
    reason = (
        "an array is not hashable and its numbers may change" if what == "an array"
        else "values of this type are unhashable"
    )
    return ValueError(
        f"{spec.name}: static argument '{name}' must be hashable, got type {kind}: {reason}. "
        f"Static arguments are compared by hash and equality to find compiled code. {hint}"
    )


def _parameter_name(spec: JitSpec, position: int) -> str:
    from_names = leaf_names(spec.fun, tuple([0] * (position + 1)))
    return from_names[position]


def _argument_names(spec: JitSpec, arguments: Arguments, count: int) -> list[str]:
    """The user's name of each dynamic leaf."""
    fixed = set(spec.static_argnums)
    total = len(arguments.rest) + len([s for s in arguments.static if isinstance(s[0], int)])
    position, full = iter(arguments.rest), []
    for i in range(total):
        full.append(() if i in fixed else next(position, ()))
    names = leaf_names(spec.fun, tuple(full), arguments.named)
    return names if len(names) == count else [f"leaf {i}" for i in range(count)]


def _joined(spec: JitSpec, args: tuple[Any, ...], rest: Sequence[Any]) -> list[Any]:
    values = iter(rest)
    return [a if i in spec.static_argnums else next(values) for i, a in enumerate(args)]


def _has_own_form(x: Any) -> bool:
    return hasattr(type(x), "__jax_array__") and not isinstance(x, (ArrayImpl, Tracer))


def _entry(traced: TracedCall, program: Program, count: int, donated: list[int]) -> Any:
    return _native.Entry(
        program.executable, traced.out_tree, list(range(count)), [], donated,
        ordered=graph_has_effect(traced.graph),
    )  # fmt: skip


def simplified(graph: Graph) -> Graph:
    """The graph with equal operations computed once, before it is cut into several programs."""
    return simplify(graph)


def _with_arrays(graph: Graph) -> Graph:
    """Constants that are NumPy arrays become arrays, once per object."""
    if all(isinstance(c, ArrayImpl) for c in graph.consts):
        return graph
    consts = [
        c if isinstance(c, ArrayImpl) else _native.from_numpy(np.asarray(c, v.aval.dtype))
        for v, c in zip(graph.constvars, graph.consts, strict=True)
    ]
    return Graph(graph.inputs, graph.nodes, graph.outputs, graph.constvars, consts, graph.name)


