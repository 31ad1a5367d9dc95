"""Callbacks: functions of Python called from compiled code.

    pure_callback    results only; may be called any number of times, or never
    io_callback      results and effects: called exactly once
    debug_callback   effects only; derivatives pass it by

Each becomes a host step of the program, which takes the interpreter lock.  Effects of one program
happen in the order in which it was traced, and programs with effects run in the order in which
they were called.  A callback gets jato arrays and may call jato itself.

    HostFunction     what the primitives hold: the user's function with its pytrees
    Sequential       one call for each element of a mapped axis
    HostCallback     the family of the three primitives

Start reading at `HostCallback.run`; the user's functions come last.
"""

from __future__ import annotations

import string
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from jato import _native
from jato.base import dtypes
from jato.base.errors import check, require_unsharded
from jato.base.pytree import function_name, keystr, tree_flatten, tree_leaves_with_path
from jato.core.array import ArrayImpl, from_host, from_number
from jato.core.primitive import AxisData, Primitive
from jato.core.staging import abstract_value
from jato.core.trace import STATE, Tracer
from jato.core.types import ArrayType, Zero, tangent_type, type_of
from jato.ops.random_bits import is_key, random_unwrap, random_wrap
from jato.ops.shapes import mapped_first
from jato.ops.structural import expand_dims

_VMAP_METHODS = (
    "sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized",
)  # fmt: skip
# What a call costs beside compiled code: the lock, the arrays, a little Python.
CALL_NS = 20_000.0


class FlatFunction(Protocol):
    """arrays -> one array-like for each result."""

    name: str

    def __call__(self, arrays: Sequence[Any]) -> list[Any]: ...


class HostFunction:
    """The user's function of flat arrays.

    Values that are no arrays (strings, options) are kept here; `places` are the positions of the
    arrays among the leaves of (args, kwargs), `keys` those of random keys, which come as words.
    """

    def __init__(
        self,
        callback: Callable[..., Any],
        what: str,
        leaves: Sequence[Any],
        in_tree: Any,
        places: Sequence[int],
        keys: frozenset[int],
        result_tree: Any = None,
    ):
        self.callback = callback
        self.what = what
        self.name = function_name(callback)
        self.constants = [None if i in set(places) else x for i, x in enumerate(leaves)]
        self.in_tree = in_tree
        self.places = tuple(places)
        self.keys = keys
        self.result_tree = result_tree

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        leaves = list(self.constants)
        for i, x in zip(self.places, arrays, strict=True):
            leaves[i] = random_wrap(x) if i in self.keys else x
        args, kwargs = self.in_tree.unflatten(leaves)
        out = self.callback(*args, **kwargs)
        if self.result_tree is None:
            return []
        results, tree = tree_flatten(out)
        check(
            tree == self.result_tree,
            ValueError,
            f"{self.what}: {self.name} must return what result_shape_dtypes describes, "
            f"{self.result_tree}, but returned {tree}",
        )
        return results

    def __repr__(self) -> str:
        return self.name


class Sequential:
    """Calls `function` once for each element along axis 0 of the mapped operands."""

    def __init__(
        self, function: FlatFunction, size: int, mapped: Sequence[bool], results: Sequence[Any]
    ):
        self.function = function
        self.name = function.name
        self.size = size
        self.mapped = tuple(mapped)
        self.results = tuple(results)

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        rows = [
            run_checked(
                self.function,
                [x[i] if m else x for x, m in zip(arrays, self.mapped, strict=True)],
                self.results,
            )
            for i in range(self.size)
        ]
        if not rows:
            return [np.zeros((0, *t.shape), t.dtype) for t in self.results]
        return [np.stack(column) for column in zip(*rows, strict=True)]

    def __repr__(self) -> str:
        return f"{self.name} for each of {self.size}"


def run_checked(
    function: FlatFunction, arrays: Sequence[Any], types: Sequence[Any]
) -> list[np.ndarray[Any, Any]]:
    """The results as NumPy arrays of exactly these types; TypeError or ValueError if they differ."""
    found = function(arrays)
    return [
        _as_result(function, i, x, aval)
        for i, (x, aval) in enumerate(zip(found, types, strict=True))
    ]


def _as_result(function: FlatFunction, i: int, x: Any, aval: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(x)
    check(
        array.shape == aval.shape,
        ValueError,
        f"the callback {function.name} returned shape {array.shape} for result {i}, where "
        f"result_shape_dtypes says {aval.shape}",
    )
    if array.dtype == aval.dtype:
        return array
    weak = isinstance(x, (bool, int, float, complex)) or getattr(x, "weak_type", False)
    try:
        same = dtypes.canonicalize(array.dtype) == aval.dtype or (
            weak and dtypes.promote((array.dtype, True), (aval.dtype, False))[0] == aval.dtype
        )
    except TypeError:
        same = False
    check(
        same,
        TypeError,
        f"the callback {function.name} returned dtype {array.dtype} for result {i}, where "
        f"result_shape_dtypes says {aval.dtype}. Try numpy.asarray(result, '{aval.dtype}').",
    )
    return array.astype(aval.dtype)


# ---- errors of effects on a device's own thread, where nobody may hold a result


_failures: list[BaseException] = []


def raise_failure() -> None:
    """Raises the first error of an effect on a device's own thread since the last look."""
    if _failures:
        error = _failures[0]
        _failures.clear()
        raise error


class HostStep:
    """The host step of a program: NumPy views, valid during the call only -> NumPy arrays."""

    def __init__(self, function: FlatFunction, results: Sequence[Any], has_effect: bool):
        self.function = function
        self.results = results
        self.has_effect = has_effect

    def __call__(self, *views: Any) -> list[np.ndarray[Any, Any]]:
        try:
            arrays = [_native.from_numpy(v) for v in views]
            return run_checked(self.function, arrays, self.results)
        except BaseException as error:
            if self.has_effect and _native.on_queue_thread():
                _failures.append(error)
                del _failures[8:]
            raise

    def __repr__(self) -> str:
        return self.function.name


class HostCallback(Primitive):
    """`callback(*operands, function, results, vmap_method, ordered)`.

    results: types of the results.  vmap_method: what to do with a mapped axis (pure_callback).
    """

    multiple_results = True

    def __init__(self, name: str, has_effect: bool):
        super().__init__(name)
        self.has_effect = has_effect

    def bind(self, *args: Any, **params: Any) -> Any:
        if STATE.trace is not None:
            return super().bind(*args, **params)
        return self.run(args, **params)

    def run(
        self,
        args: Sequence[Any],
        *,
        function: FlatFunction,
        results: Sequence[Any],
        vmap_method: str | None,
        ordered: bool,
    ) -> list[Any]:
        """The call itself, on arrays, without compiling anything."""
        if ordered and not _native.on_queue_thread():
            _native.synchronize()  # earlier programs may have effects that are still to come
        arrays = [_as_array(x) for x in args]
        return [
            _native.from_numpy(np.ascontiguousarray(x).reshape(x.shape))
            for x in run_checked(function, arrays, results)
        ]

    def type_rule(self, *avals: Any, results: tuple[Any, ...], **params: Any) -> Any:
        return list(results)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        if all(type(t) is Zero for t in tangents):
            outs = self.bind(*primals, **params)
            return outs, [Zero(tangent_type(type_of(x))) for x in outs]
        raise ValueError(
            f"{self.name}: the derivative of {params['function'].name} is not known. "
            "Wrap the call in a function with jato.custom_jvp or custom_vjp, or keep it out of the "
            "derivative with stop_gradient."
        )

    def batch(
        self,
        axis: AxisData,
        operands: Sequence[Any],
        dims: Sequence[Any],
        *,
        function: FlatFunction,
        results: tuple[Any, ...],
        vmap_method: str | None,
        ordered: bool,
    ) -> tuple[list[Any], list[int]]:
        check(
            not ordered,
            ValueError,
            f"{self.name}: an ordered callback ({function.name}) cannot be mapped by vmap, because "
            "elements have no order. Use ordered=False, or lax.map.",
        )
        check(
            vmap_method is not None,
            NotImplementedError,
            f"{self.name}: {function.name} is called under vmap. Say how with vmap_method: "
            "'sequential' (one call for each element), 'expand_dims' or 'broadcast_all' (one call "
            "with a leading axis).",
        )
        mapped = [d is not None for d in dims]
        moved = [
            mapped_first(x, d, axis.size)
            if d is not None or vmap_method == "broadcast_all"
            else expand_dims(x, (0,))
            if vmap_method == "expand_dims"
            else x
            for x, d in zip(operands, dims, strict=True)
        ]
        if vmap_method in ("sequential", "sequential_unrolled"):
            function = Sequential(function, axis.size, mapped, results)
        whole = tuple(
            ArrayType((axis.size, *t.shape), t.dtype_code, t.weak_type) for t in results
        )
        outs = self.bind(
            *moved, function=function, results=whole, vmap_method=vmap_method, ordered=ordered
        )
        return outs, [0] * len(outs)

    def plan(self, context: Any, node: Any) -> None:
        step = HostStep(node.params["function"], node.params["results"], self.has_effect)
        context.host(step, node.inputs, node.outputs, CALL_NS)

    def reference(self, *operands: Any, function: Any, results: Any, **params: Any) -> list[Any]:
        return list(run_checked(function, [_native.from_numpy(x) for x in operands], results))


class DebugCallback(HostCallback):
    """Without results, so derivatives pass it by: it sees the values, not their tangents."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        self.bind(*primals, **params)
        return [], []


PURE_CALLBACK = HostCallback("pure_callback", has_effect=False)
IO_CALLBACK = HostCallback("io_callback", has_effect=True)
DEBUG_CALLBACK = DebugCallback("debug_callback", has_effect=True)


def _as_array(x: Any) -> Any:
    if isinstance(x, ArrayImpl):
        return x
    return from_number(x) if isinstance(x, (bool, int, float, complex)) else from_host(x)


# ---- the user's side


def _is_value(x: Any) -> bool:
    return isinstance(x, (ArrayImpl, Tracer, bool, int, float, complex, np.generic)) or (
        isinstance(x, np.ndarray) and x.dtype.kind not in "OSUMmV"
    )


def _operands(
    callback: Any,
    what: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    result_tree: Any = None,
    constants: bool = False,
) -> tuple[HostFunction, list[Any]]:
    """(function of flat arrays, the arrays).  `constants`: other values are allowed, as they are."""
    check(callable(callback), TypeError, f"{what}: expected a function, got {callback!r}")
    leaves, in_tree = tree_flatten((args, kwargs))
    leaves = [x.__jax_array__() if hasattr(type(x), "__jax_array__") else x for x in leaves]
    places = [i for i, x in enumerate(leaves) if _is_value(x)]
    if not constants and len(places) < len(leaves):
        i = next(i for i, x in enumerate(leaves) if not _is_value(x))
        path, leaf = tree_leaves_with_path((args, kwargs))[i]
        raise TypeError(
            f"{what}: argument {keystr(path)} of {function_name(callback)}: expected an array or a "
            f"number, got {type(leaf).__name__} {leaf!r:.60}. Let the function capture other values."
        )
    values = [leaves[i] for i in places]
    keys = frozenset(
        i for i, x in zip(places, values, strict=True) if is_key(type_of(x))
    )
    values = [random_unwrap(x) if i in keys else x for i, x in zip(places, values, strict=True)]
    return HostFunction(callback, what, leaves, in_tree, places, keys, result_tree), values


def _result_types(what: str, result_shape_dtypes: Any) -> tuple[tuple[Any, ...], Any]:
    leaves, tree = tree_flatten(result_shape_dtypes)
    try:
        return tuple(abstract_value(x) for x in leaves), tree
    except TypeError:
        raise TypeError(
            f"{what}: result_shape_dtypes must be a tree of objects with shape and dtype "
            f"(jato.ShapeDtypeStruct, arrays), got {result_shape_dtypes!r:.80}"
        ) from None


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """The results of a function of Python without effects, called when the program runs.

    Args:
      callback: called as callback(*args, **kwargs) with arrays; returns arrays (or NumPy arrays)
        as `result_shape_dtypes` says.  It may be called more than once, or not at all if its
        results are not used.
      result_shape_dtypes: tree of ShapeDtypeStructs (or arrays) that describes the results.
      args, kwargs: trees of arrays.
      sharding: None; callbacks run in this process.
      vmap_method: "sequential": one call for each element of a mapped axis; "expand_dims" and
        "broadcast_all": one call, where mapped arguments have a leading axis and the others one of
        length 1, or the same; "legacy_vectorized": others have none.  None: vmap is an error.
    Raises:
      TypeError or ValueError if the results are not of the promised types; ValueError for a
      derivative (use custom_jvp).

    >>> import numpy, jato, jato.numpy as jnp
    >>> @jato.jit
    ... def f(x):
    ...     return pure_callback(numpy.sort, jato.ShapeDtypeStruct(x.shape, x.dtype), x) + 1
    >>> f(jnp.array([3.0, 1.0]))
    Array([2., 4.], dtype=float32)
    """
    require_unsharded("pure_callback", sharding, "sharding")
    check(
        vmap_method is None or vmap_method in _VMAP_METHODS,
        ValueError,
        f"pure_callback: vmap_method must be one of {', '.join(_VMAP_METHODS)}, got {vmap_method!r}",
    )
    types, tree = _result_types("pure_callback", result_shape_dtypes)
    function, values = _operands(callback, "pure_callback", args, kwargs, tree)
    outs = PURE_CALLBACK.bind(
        *values, function=function, results=types, vmap_method=vmap_method, ordered=False
    )
    return tree.unflatten(outs)


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """The results of a function of Python with effects: called exactly once for each run.

    Like `pure_callback`, but the call is never dropped, repeated or merged.  Under vmap it is
    called once for each element; with `ordered` vmap is an error.  Calls of a program happen in
    the order of the program.  sharding: None.

    >>> import jato, jato.numpy as jnp
    >>> log = []
    >>> jato.jit(lambda x: io_callback(lambda v: log.append(float(v)), None, x))(2.0)
    >>> jato.effects_barrier(); log
    [2.0]
    """
    require_unsharded("io_callback", sharding, "sharding")
    types, tree = _result_types("io_callback", result_shape_dtypes)
    function, values = _operands(callback, "io_callback", args, kwargs, tree)
    outs = IO_CALLBACK.bind(
        *values, function=function, results=types, vmap_method="sequential", ordered=ordered
    )
    return tree.unflatten(outs)


def debug_callback(
    callback: Callable[..., Any],
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> None:
    """Calls `callback(*args, **kwargs)` when the program runs; what it returns is dropped.

    Arguments that are no arrays (strings, options) are handed over as they are.  Works under
    every transform; under vmap it is called for each element in turn, under grad it sees the
    values.  `jato.effects_barrier()` waits for it.  ordered: vmap is an error; `partitioned` is
    accepted.

    >>> import jato
    >>> jato.jit(lambda x: debug_callback(lambda v: print("x is", v), x))(3)
    x is 3
    """
    del partitioned
    function, values = _operands(callback, "debug.callback", args, kwargs, constants=True)
    DEBUG_CALLBACK.bind(
        *values, function=function, results=(), vmap_method="sequential", ordered=ordered
    )


class _Checker(string.Formatter):
    """Formats as str.format does, and refuses arguments that the text does not mention."""

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        unused = [str(i) for i in range(len(args)) if i not in used_args]
        unused += [repr(k) for k in kwargs if k not in used_args]
        check(
            not unused,
            ValueError,
            f"debug.print: the text does not mention argument {', '.join(unused)}. Put {{}} or "
            "{name} where it belongs; f-strings show tracers, so do not use them.",
        )


def debug_print(
    fmt: str,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> None:
    """Prints `fmt.format(*args, **kwargs)` with the values that the program computes.

    ordered, partitioned: see `debug_callback`.  skip_format_check: arguments that the text does not
    mention are no error.

    >>> import jato
    >>> jato.jit(lambda x: debug_print("x = {x:.2f}", x=x))(1.5)
    x = 1.50

    TypeError if `fmt` is no string; ValueError, IndexError or KeyError, when it is traced, if the
    text and the arguments do not fit.
    """
    check(isinstance(fmt, str), TypeError, f"debug.print: fmt must be a string, got {fmt!r}")
    if not skip_format_check:
        blank = [_Blank()] * len(args)
        _Checker().format(fmt, *blank, **dict.fromkeys(kwargs, _Blank()))

    def show(*values: Any, **named: Any) -> None:
        text = fmt.format(
            *[_printable(v) for v in values], **{k: _printable(v) for k, v in named.items()}
        )
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    debug_callback(show, *args, ordered=ordered, partitioned=partitioned, **kwargs)


class _Blank:
    """Stands for any value while the places of a format are checked."""

    def __format__(self, spec: str) -> str:
        return ""

    def __getattr__(self, name: str) -> _Blank:
        return self

    def __getitem__(self, key: Any) -> _Blank:
        return self


def _printable(x: Any) -> Any:
    if not isinstance(x, ArrayImpl) or x.dtype is dtypes.key:
        return x
    return np.asarray(x)
