"""Functions applied to arrays: vectorize, apply_along_axis, and ufuncs with reduce and at."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from jato.numpy import cumulative, elementwise, logic, reductions, transcendental
from jato.numpy.creation import asarray
from jato.numpy.manipulation import broadcast_to, expand_dims, moveaxis, reshape, stack
from jato.numpy.promote import as_array, common_shape, normalize_axes, normalize_axis
from jato.numpy.reductions import keep_axes
from jato.numpy.updating import IndexUpdateRef
from jato.transforms.vmap import vmap

_NAME = r"[A-Za-z_]\w*"


_TERM = rf"\(\s*(?:{_NAME}(?:\s*,\s*{_NAME})*)?\s*\)"


_SIGNATURE = re.compile(rf"^\s*{_TERM}(?:\s*,\s*{_TERM})*\s*->\s*{_TERM}(?:\s*,\s*{_TERM})*\s*$")


def _parse_signature(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    if not _SIGNATURE.match(signature):
        raise ValueError(f"vectorize: not a valid signature: {signature!r}; expected '(n),(n)->()'")
    left, right = signature.split("->")
    terms = lambda text: [tuple(re.findall(_NAME, t)) for t in re.findall(_TERM, text)]  # noqa: E731
    return terms(left), terms(right)


def _check_core(
    arrays: list[Any], terms: list[tuple[str, ...]], sizes: dict[str, int], what: str
) -> list[tuple[int, ...]]:
    """Checks the core axes against the signature; gives the leading shapes."""
    leading = []
    for i, (x, term) in enumerate(zip(arrays, terms, strict=True)):
        if len(x.shape) < len(term):
            raise ValueError(f"vectorize: {what} {i} of shape {x.shape} has fewer axes than {term}")
        split = len(x.shape) - len(term)
        for name, size in zip(term, x.shape[split:], strict=True):
            if sizes.setdefault(name, size) != size:
                raise ValueError(f"vectorize: axis {name!r} has sizes {sizes[name]} and {size}")
        leading.append(tuple(x.shape[:split]))
    return leading


def vectorize(
    pyfunc: Callable[..., Any],
    *,
    excluded: Collection[int | str] = frozenset(),
    signature: str | None = None,
) -> Callable[..., Any]:
    """A function of arrays that applies `pyfunc` along leading axes, which broadcast.

    excluded: positions or names of arguments that are passed as they are.  signature: the axes
    `pyfunc` works on, such as "(n),(n)->()"; numbers by default.

    >>> import jato.numpy as jnp
    >>> jnp.vectorize(lambda v: v.sum(), signature="(n)->()")(jnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    """
    terms = None if signature is None else _parse_signature(signature)
    left_out = set(excluded)

    @functools.wraps(pyfunc)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        fixed = {i: a for i, a in enumerate(args) if i in left_out}
        names = [n for n in kwargs if n not in left_out]
        places = [i for i in range(len(args)) if i not in left_out]
        arrays = [asarray(args[i]) for i in places] + [asarray(kwargs[n]) for n in names]

        def core(*values: Any) -> Any:
            call = list(args)
            for i, value in zip(places, values, strict=False):
                call[i] = value
            for i, value in fixed.items():
                call[i] = value
            named = {**kwargs, **dict(zip(names, values[len(places) :], strict=True))}
            return _checked(pyfunc(*call, **named))

        inputs = [()] * len(arrays) if terms is None else terms[0]
        if len(inputs) != len(arrays):
            raise TypeError(
                f"vectorize: signature {signature!r} is for {len(inputs)} arguments, got {len(arrays)}"
            )
        sizes: dict[str, int] = {}
        leading = _check_core(arrays, inputs, sizes, "argument")

        def _checked(out: Any) -> Any:
            if terms is None:
                return out
            outs = list(out) if isinstance(out, (tuple, list)) else [out]
            if len(outs) != len(terms[1]):
                raise TypeError(
                    f"vectorize: {signature!r} promises {len(terms[1])} results, got {len(outs)}"
                )
            for i, (x, term) in enumerate(zip(outs, terms[1], strict=True)):
                if len(np.shape(x)) != len(term):
                    raise ValueError(
                        f"vectorize: result {i} has shape {np.shape(x)}, {signature!r} promises {term}"
                    )
                _check_core([x], [term], sizes, "result")
            return out

        return _mapped(core, arrays, leading)

    return wrapped


def _mapped(core: Callable[..., Any], arrays: list[Any], leading: list[tuple[int, ...]]) -> Any:
    """`core` mapped over the broadcast leading axes; axes of size 1 are not repeated."""
    shape = common_shape("vectorize", leading) if leading else ()
    rank = len(shape)
    function = core
    prepared = []
    for x, lead in zip(arrays, leading, strict=True):
        drop = [i for i, s in enumerate(lead) if s == 1 and shape[rank - len(lead) + i] != 1]
        prepared.append(reshape(x, tuple(s for i, s in enumerate(x.shape) if i not in drop)))
    # the first leading axis is the outermost map
    for axis in reversed(range(rank)):
        in_axes = []
        for lead in leading:
            i = axis - (rank - len(lead))
            in_axes.append(0 if i >= 0 and (lead[i] != 1 or shape[axis] == 1) else None)
        if any(a is not None for a in in_axes):
            function = vmap(function, in_axes=tuple(in_axes))
    return function(*prepared)


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Any:
    """`func1d` applied to every vector along an axis.

    >>> import jato.numpy as jnp
    >>> jnp.apply_along_axis(jnp.sum, 0, jnp.ones((2, 3)))
    Array([2., 2., 2.], dtype=float32)
    """
    arr = as_array("apply_along_axis", arr)
    rank = len(arr.shape)
    axis = normalize_axis("apply_along_axis", axis, rank)
    function = lambda row: func1d(row, *args, **kwargs)  # noqa: E731
    # axes before the vector stay before the result's axes, axes after it after them
    for i in range(1, rank - axis):
        function = vmap(function, in_axes=i, out_axes=-1)
    for _ in range(axis):
        function = vmap(function, in_axes=0, out_axes=0)
    return function(arr)


def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: Any) -> Any:
    """`func(a, axis)` applied for one axis after the other; lost axes are put back.

    >>> import jato.numpy as jnp
    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), [0, 1])
    Array([[6.]], dtype=float32)
    """
    a = as_array("apply_over_axes", a)
    for axis in normalize_axes("apply_over_axes", axes, len(a.shape), "axes"):
        result = func(a, axis)
        if len(result.shape) == len(a.shape) - 1:
            result = expand_dims(result, axis)
        if len(result.shape) != len(a.shape):
            raise ValueError(
                "apply_over_axes: function is not returning an array of the right rank"
            )
        a = result
    return a


# ---- ufuncs


class _UfuncMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            hasattr(instance, "nin")
            and hasattr(instance, "reduce")
            and not isinstance(instance, np.ufunc)
        )


class ufunc(metaclass=_UfuncMeta):  # noqa: N801
    """An elementwise function with methods: `add.reduce`, `add.accumulate`, `add.outer`, `add.at`.

    The elementwise functions of this module with two arguments are ufuncs; `frompyfunc` makes
    more.

    >>> import jato.numpy as jnp
    >>> jnp.add.reduce(jnp.array([1, 2, 3]))
    Array(6, dtype=int32)
    >>> jnp.multiply.outer(jnp.array([1, 2]), jnp.array([1, 3]))
    Array([[1, 3],
           [2, 6]], dtype=int32)
    """

    def __init__(self) -> None:
        raise TypeError("ufunc cannot be instantiated; use frompyfunc")


def _pairwise(function: Any, a: Any, axis: int) -> Any:
    """The reduction by any function: element after element."""
    rows = moveaxis(a, axis, 0)
    result = rows[0]
    for i in range(1, rows.shape[0]):
        result = function(result, rows[i])
    return result


class _Methods:
    """reduce, accumulate, reduceat, outer and at of one function of two arguments."""

    def __init__(
        self,
        function: Any,
        name: str,
        identity: Any,
        reducer: Any,
        accumulator: Any,
        update: str | None,
    ):
        self.function = function
        self.name = name
        self.identity = identity
        self.reducer = reducer
        self.accumulator = accumulator
        self.update = update

    def reduce(
        self, a: Any, axis: Any = 0, dtype: Any = None, out: None = None, keepdims: bool = False,
        initial: Any = None, where: Any = None,
    ) -> Any:  # fmt: skip
        a = asarray(a, dtype=dtype)
        if self.reducer is not None:
            options = {"initial": initial, "where": where}
            given = {k: v for k, v in options.items() if v is not None}
            return self.reducer(a, axis=axis, keepdims=keepdims, **given)
        if where is not None:
            raise NotImplementedError(f"{self.name}.reduce: argument 'where' is not supported")
        axes = normalize_axes(self.name, axis, a.ndim)
        if len(axes) > 1 and self.identity is None:
            raise ValueError(f"{self.name}.reduce: reorderable only over one axis")
        result = a
        for i in sorted(axes, reverse=True):
            if result.shape[i] == 0:
                if self.identity is None and initial is None:
                    raise ValueError(f"{self.name}.reduce: zero-size array and no identity")
                result = broadcast_to(
                    asarray(self.identity if initial is None else initial, dtype=a.dtype),
                    tuple(s for k, s in enumerate(result.shape) if k != i),
                )
            else:
                result = _pairwise(self.function, result, i)
        if initial is not None:
            result = self.function(initial, result)
        return keep_axes(result, a.shape, axes) if keepdims else result

    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Any:
        a = asarray(a, dtype=dtype)
        if self.accumulator is not None:
            return self.accumulator(a, axis=axis)
        axis = normalize_axis(self.name, axis, a.ndim)
        rows = moveaxis(a, axis, 0)
        results = [rows[0]] if rows.shape[0] else []
        for i in range(1, rows.shape[0]):
            results.append(self.function(results[-1], rows[i]))
        return moveaxis(stack(results), 0, axis) if results else a

    def reduceat(
        self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: None = None
    ) -> Any:
        a = asarray(a, dtype=dtype)
        axis = normalize_axis(self.name, axis, a.ndim)
        starts = [int(i) for i in np.asarray(indices)]
        rows = moveaxis(a, axis, 0)
        parts = []
        for i, begin in enumerate(starts):
            end = starts[i + 1] if i + 1 < len(starts) else rows.shape[0]
            parts.append(self.reduce(rows[begin:end], 0) if end > begin else rows[begin])
        return moveaxis(stack(parts), 0, axis)

    def outer(self, A: Any, B: Any, /) -> Any:
        A, B = asarray(A), asarray(B)
        return self.function(reshape(A, (*A.shape, *(1,) * B.ndim)), B)

    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Any:
        if inplace:
            raise NotImplementedError(f"{self.name}.at: arrays are immutable; pass inplace=False")
        ref = IndexUpdateRef(asarray(a), indices)
        if self.update is not None:
            return getattr(ref, self.update)(b)
        if b is None:
            return ref.set(self.function(ref.get()))
        return ref.set(self.function(ref.get(), b))


_NAMES = ("reduce", "accumulate", "reduceat", "outer", "at")


def _make_ufunc(
    function: Any, nin: int = 2, identity: Any = None, reducer: Any = None, accumulator: Any = None,
    update: str | None = None,
) -> None:  # fmt: skip
    name = getattr(function, "__wrapped__", function).__name__
    methods = _Methods(function, name, identity, reducer, accumulator, update)
    function.nin, function.nout, function.nargs, function.identity = nin, 1, nin + 1, identity
    for method in _NAMES:
        setattr(function, method, getattr(methods, method))


def attach_methods() -> None:
    """Makes the elementwise functions of two arguments ufuncs."""
    e, r, b = elementwise, reductions, logic
    _make_ufunc(e.add, 2, 0, r.sum, cumulative.cumsum, "add")
    _make_ufunc(e.multiply, 2, 1, r.prod, cumulative.cumprod, "multiply")
    _make_ufunc(e.maximum, 2, None, r.max, None, "max")
    _make_ufunc(e.minimum, 2, None, r.min, None, "min")
    _make_ufunc(b.logical_and, 2, True, r.all)
    _make_ufunc(b.logical_or, 2, False, r.any)
    _make_ufunc(e.subtract, 2, None, None, None, "subtract")
    _make_ufunc(b.bitwise_and, 2, -1)
    _make_ufunc(b.bitwise_or, 2, 0)
    _make_ufunc(b.bitwise_xor, 2, 0)
    _make_ufunc(b.logical_xor, 2, False)
    _make_ufunc(e.negative, 1)
    _make_ufunc(transcendental.logaddexp, 2, -np.inf)
    _make_ufunc(transcendental.logaddexp2, 2, -np.inf)


attach_methods()


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> Any:
    """An elementwise function with the methods of a ufunc from a function of numbers.

    >>> import jato.numpy as jnp
    >>> add3 = jnp.frompyfunc(lambda x, y: x + y + 3, 2, 1)
    >>> add3(jnp.array([1, 2]), 1)
    Array([5, 6], dtype=int32)
    """
    if nout != 1:
        raise NotImplementedError("frompyfunc: functions of several results are not supported")
    vectorized = vectorize(func)

    def function(*args: Any) -> Any:
        if len(args) != nin:
            raise TypeError(f"{function.__name__}: expected {nin} arguments, got {len(args)}")
        return vectorized(*args)

    function.__name__ = getattr(func, "__name__", "ufunc")
    function.__doc__ = func.__doc__
    _make_ufunc(function, nin, identity)
    return function
