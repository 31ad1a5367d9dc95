"""Gradients, Jacobians and Hessians: the user's face of jvp and vjp.

All are thin: check arguments, choose which ones to differentiate, linearize, pull or push unit
vectors.  For complex numbers the convention is JAX's: `grad` of a real function of z = x + iy is
df/dx - i df/dy.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import check
from jato.base.pytree import (
    FlatFunction,
    function_name,
    tree_flatten,
    tree_map,
    tree_structure,
)
from jato.base.signatures import leaf_names, parameter_names
from jato.core.types import type_of
from jato.ops.arithmetic import add
from jato.ops.convert import convert_element_type
from jato.ops.selection import eq
from jato.ops.structural import broadcasted_iota, reshape, slice_in_dim
from jato.transforms.jvp import as_value, tangent_out
from jato.transforms.linearize import linearize_flat
from jato.transforms.vmap import vmap

Argnums = int | Sequence[int]


class _Selected:
    """`fun` as a function of the leaves of the arguments chosen by `argnums`; the other
    arguments are passed as they are."""

    def __init__(
        self,
        what: str,
        fun: Callable[..., Any],
        argnums: Argnums,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        has_aux: bool,
    ):
        self.name = function_name(fun)
        self.fun = fun
        self.args = args
        self.numbers = _argnums(what, self.name, argnums, args)
        self.single = not isinstance(argnums, (tuple, list))
        chosen = tuple(args[i] for i in self.numbers)
        leaves, in_tree = tree_flatten((chosen, {}))
        self.chosen_tree = tree_structure(chosen)
        self.values = [
            as_value(x, lambda i=i: f"{what} of {self.name}: argument {self.leaf_name(i)}")  # type: ignore[misc]
            for i, x in enumerate(leaves)
        ]
        self.what = what
        self.has_aux = has_aux

        def of_chosen(*given: Any) -> Any:
            full_args = list(args)
            for i, x in zip(self.numbers, given, strict=True):
                full_args[i] = x
            return fun(*full_args, **kwargs)

        of_chosen.__name__ = self.name
        self.flat = FlatFunction(of_chosen, in_tree, has_aux)

    def leaf_name(self, i: int) -> str:
        names: list[str] = []
        all_names = parameter_names(self.fun, len(self.args))
        for n in self.numbers:
            prefix = leaf_names(lambda x: None, (self.args[n],))
            names.extend(all_names[n] + leaf.removeprefix("x") for leaf in prefix)
        return names[i]

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """Results for the chosen arguments: one, or a tuple of them."""
        chosen = self.chosen_tree.unflatten(leaves)
        return chosen[0] if self.single else chosen

    def result(self, leaves: Sequence[Any], trace: Any) -> Any:
        """Jacobians in the output's structure, with the auxiliary data if there are any."""
        result = self.flat.out_tree.unflatten(leaves)
        return (result, tree_map(trace.primal, self.flat.aux)) if self.has_aux else result

    def check_inputs(self, holomorphic: bool, allow_int: bool) -> None:
        for i, x in enumerate(self.values):
            dtype = type_of(x).dtype
            if holomorphic:
                if not dtypes.is_complex(dtype):
                    raise TypeError(
                        f"{self.what} of {self.name} with holomorphic=True needs complex arguments, "
                        f"got {dtype} for argument {self.leaf_name(i)}"
                    )
            elif not dtypes.is_inexact(dtype) and not allow_int:
                raise TypeError(
                    f"{self.what} of {self.name} needs arguments of floating or complex dtype, got "
                    f"{dtype} for argument {self.leaf_name(i)}. Convert it to float, choose other "
                    "argnums, or use allow_int=True."
                )


def _argnums(what: str, name: str, argnums: Argnums, args: tuple[Any, ...]) -> tuple[int, ...]:
    given = tuple(argnums) if isinstance(argnums, (tuple, list)) else (argnums,)
    numbers: list[int] = []
    for n in given:
        n = operator.index(n)  # type: ignore[arg-type]
        check(
            -len(args) <= n < len(args),
            TypeError if n >= 0 else ValueError,
            f"{what} of {name}: argnums={n} for a call with {len(args)} positional arguments. "
            "Pass the arguments to be differentiated by position.",
        )
        numbers.append(n % len(args))
    check(
        len(set(numbers)) == len(numbers),
        ValueError,
        f"{what} of {name}: argnums {given} name an argument twice",
    )
    return tuple(numbers)


def _check_argnums_type(what: str, argnums: Any) -> None:
    given = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    for n in given:
        check(
            isinstance(n, (int, np.integer)) and not isinstance(n, bool),
            TypeError,
            f"{what}: argnums must be an integer or a tuple of integers, got {argnums!r}",
        )


def value_and_grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Any = (),
) -> Callable[..., Any]:
    """A function that gives the value of `fun` and its gradient; see `grad`.

    >>> value, gradient = value_and_grad(lambda x: x * x)(3.0)
    >>> float(value), float(gradient)
    (9.0, 6.0)
    """
    check(callable(fun), TypeError, f"value_and_grad: expected a function, got {fun!r}")
    _check_argnums_type("grad", argnums)

    @functools.wraps(fun, updated=())
    def with_gradient(*args: Any, **kwargs: Any) -> Any:
        selected = _Selected("grad", fun, argnums, args, kwargs, has_aux)
        selected.check_inputs(holomorphic, allow_int)
        outs, program, consts, trace = linearize_flat(
            selected.flat, selected.values, selected.name, "grad"
        )
        value = _scalar_result(selected.name, selected.flat.out_tree, outs, holomorphic)
        found = program.pull(consts, [_one(type_of(value))])
        gradient = selected.unflatten(
            [as_value(tangent_out(ct), lambda: f"grad of {selected.name}") for ct in found]
        )
        if has_aux:
            return (value, tree_map(trace.primal, selected.flat.aux)), gradient
        return value, gradient

    return with_gradient


def _one(aval: Any) -> Any:
    """The first cotangent, as a number: it becomes a literal, which the compiler folds away."""
    if aval.weak_type and dtypes.scalar_dtype(1.0) == aval.dtype:
        return 1.0
    return np.ones((), aval.dtype)[()]


def _scalar_result(name: str, out_tree: Any, outs: Sequence[Any], holomorphic: bool) -> Any:
    if len(outs) != 1 or out_tree != tree_structure(0):
        raise TypeError(
            f"grad of {name}: gradients are defined for functions with a scalar result, this one "
            f"returned {out_tree}. With (result, auxiliary data) use has_aux=True."
        )
    value = as_value(outs[0], lambda: f"grad: the result of {name}")
    aval = type_of(value)
    check(
        aval.shape == (),
        TypeError,
        f"grad of {name}: gradients are only defined for scalar-output functions, the result had "
        f"shape {aval.shape}. Try jacrev, vjp, or a sum over the result.",
    )
    if holomorphic:
        check(
            dtypes.is_complex(aval.dtype),
            TypeError,
            f"grad of {name} with holomorphic=True needs a complex result, got {aval.dtype}",
        )
    else:
        check(
            dtypes.is_floating(aval.dtype),
            TypeError,
            f"grad of {name} needs a real result of floating dtype, got {aval.dtype}. "
            "For a holomorphic function use holomorphic=True; for others jacrev or vjp.",
        )
    return value


def grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Any = (),
) -> Callable[..., Any]:
    """The gradient of `fun`, a function with a real scalar result.

    argnums: which positional arguments to differentiate; an integer gives one gradient shaped
    like that argument (a pytree), a tuple gives a tuple.  has_aux: `fun` returns (result, aux)
    and the gradient function (gradient, aux).  holomorphic: complex arguments and result.
    allow_int: integer arguments are allowed; their gradients are float0.

    >>> float(grad(lambda x: x * x)(3.0))
    6.0

    TypeError if the result is no real scalar or an argument is no floating-point array.
    """
    check(callable(fun), TypeError, f"grad: expected a function, got {fun!r}")
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)

    @functools.wraps(fun, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, result = both(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return gradient


# ---- Jacobians


def _unit_rows(avals: Sequence[Any]) -> list[Any]:
    """For each type an array (n, *shape), where n counts the elements of all: row k is the k-th
    unit vector of the concatenated space."""
    total = sum(a.size for a in avals)
    rows: list[Any] = []
    offset = 0
    for aval in avals:
        shape = (total, aval.size)
        k = broadcasted_iota(np.dtype("int32"), shape, 0)
        j = broadcasted_iota(np.dtype("int32"), shape, 1)
        if offset:
            j = add(j, np.int32(offset))
        unit = convert_element_type(eq(k, j), aval.dtype)
        rows.append(reshape(unit, (total, *aval.shape)))
        offset += aval.size
    return rows


def _split_columns(
    matrix: Any, avals: Sequence[Any], shape: tuple[int, ...], first: bool
) -> list[Any]:
    """Cuts the unit axis (first or last) of one leaf of a Jacobian into the shapes of `avals`."""
    parts: list[Any] = []
    offset = 0
    for aval in avals:
        stop = offset + aval.size
        part = slice_in_dim(matrix, offset, stop, axis=0 if first else type_of(matrix).ndim - 1)
        parts.append(reshape(part, (*aval.shape, *shape) if first else (*shape, *aval.shape)))
        offset = stop
    return parts


def _is_wanted(dtype: Any, holomorphic: bool) -> bool:
    return dtypes.is_complex(dtype) if holomorphic else dtypes.is_floating(dtype)


def _wanted(holomorphic: bool) -> str:
    return "complex" if holomorphic else "real floating-point"


def _wrong_dtype(selected: _Selected, needed: str, got: Any, holomorphic: bool) -> TypeError:
    hint = "" if holomorphic else " For complex ones use holomorphic=True."
    return TypeError(f"{selected.what} of {selected.name} needs {needed}, got {got}.{hint}")


def jacfwd(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """The Jacobian of `fun`, column by column in forward mode; best for few inputs.

    The result has the tree of the output, each leaf replaced by the tree of the argument, each
    leaf of shape (*output shape, *input shape).

    >>> import jato.numpy as jnp
    >>> jacfwd(lambda x: x * x)(jnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    check(callable(fun), TypeError, f"jacfwd: expected a function, got {fun!r}")
    _check_argnums_type("jacfwd", argnums)

    @functools.wraps(fun, updated=())
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        selected = _Selected("jacfwd", fun, argnums, args, kwargs, has_aux)
        for i, x in enumerate(selected.values):
            dtype = type_of(x).dtype
            if not _is_wanted(dtype, holomorphic):
                needed = f"{_wanted(holomorphic)} arguments"
                got = f"{dtype} for argument {selected.leaf_name(i)}"
                raise _wrong_dtype(selected, needed, got, holomorphic)
        _, program, consts, trace = linearize_flat(
            selected.flat, selected.values, selected.name, "jacfwd"
        )
        in_avals = [type_of(x) for x in selected.values]
        rows = _unit_rows(in_avals)
        push = vmap(
            lambda *tangents: [tangent_out(t) for t in program.push(consts, tangents)],
            out_axes=-1,
            axis_size=sum(a.size for a in in_avals),
        )
        leaves = [
            selected.unflatten(_split_columns(m, in_avals, type_of(m).shape[:-1], first=False))
            for m in push(*rows)
        ]
        return selected.result(leaves, trace)

    return jacobian


def jacrev(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The Jacobian of `fun`, row by row in reverse mode; best for few outputs.  See `jacfwd`.

    >>> import jato.numpy as jnp
    >>> jacrev(lambda x: x * x)(jnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    check(callable(fun), TypeError, f"jacrev: expected a function, got {fun!r}")
    _check_argnums_type("jacrev", argnums)

    @functools.wraps(fun, updated=())
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        selected = _Selected("jacrev", fun, argnums, args, kwargs, has_aux)
        selected.check_inputs(holomorphic, allow_int)
        outs, program, consts, trace = linearize_flat(
            selected.flat, selected.values, selected.name, "jacrev"
        )
        out_avals = [type_of(x) for x in outs]
        for aval in out_avals:
            if not _is_wanted(aval.dtype, holomorphic):
                needed = f"a result of {_wanted(holomorphic)} dtype"
                raise _wrong_dtype(selected, needed, aval.dtype, holomorphic)
        rows = _unit_rows(out_avals)
        pull = vmap(
            lambda *cotangents: [tangent_out(ct) for ct in program.pull(consts, cotangents)],
            axis_size=sum(a.size for a in out_avals),
        )
        # one (n outputs, *input shape) array per input leaf, cut by output leaf
        by_input = [
            _split_columns(m, out_avals, type_of(m).shape[1:], first=True) for m in pull(*rows)
        ]
        leaves = [
            selected.unflatten([parts[i] for parts in by_input]) for i in range(len(out_avals))
        ]
        return selected.result(leaves, trace)

    return jacobian


def hessian(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """The matrix of second derivatives, forward over reverse.

    >>> import jato.numpy as jnp
    >>> hessian(lambda x: jnp.sum(x * x * x))(jnp.array([1.0, 2.0]))
    Array([[ 6.,  0.],
           [ 0., 12.]], dtype=float32)
    """
    first = jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic)
    return jacfwd(first, argnums, has_aux=has_aux, holomorphic=holomorphic)
