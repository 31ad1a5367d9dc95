"""Functions on types instead of arrays: eval_shape, make_jaxpr, ShapeDtypeStruct.

Both trace a function and look at the graph; nothing is computed or compiled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from jato.base import dtypes
from jato.base.errors import check
from jato.base.pytree import FlatFunction, function_name, tree_flatten
from jato.base.signatures import leaf_names
from jato.core.graph import Graph
from jato.core.graph_print import format_graph
from jato.core.staging import abstract_value, trace_to_graph
from jato.core.trace import STATE
from jato.core.types import type_of
from jato.transforms.jvp import as_value


class ShapeDtypeStruct:
    """The shape and dtype of an array, without the array.

    >>> ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("dtype", "shape", "sharding", "weak_type")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        *,
        sharding: Any = None,
        weak_type: bool = False,
    ):
        check(
            dtype is not None,
            ValueError,
            "ShapeDtypeStruct: dtype must be given, got None",
        )
        self.shape = tuple(shape)
        self.dtype = dtypes.as_dtype(dtype)
        self.sharding = sharding
        self.weak_type = weak_type

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """The same with other attributes."""
        fields = {"shape": self.shape, "dtype": self.dtype, "sharding": self.sharding,
                  "weak_type": self.weak_type, **changes}  # fmt: skip
        return ShapeDtypeStruct(
            fields["shape"],
            fields["dtype"],
            sharding=fields["sharding"],
            weak_type=fields["weak_type"],
        )

    def _key(self) -> tuple[Any, ...]:
        return (self.shape, self.dtype, self.sharding, self.weak_type)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        name = getattr(self.dtype, "name", str(self.dtype))
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={name}{weak})"


def struct_of(aval: Any) -> ShapeDtypeStruct:
    """The public form of an ArrayType."""
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


def abstract_leaf(x: Any, describe: Callable[[], str]) -> Any:
    """The type of a leaf given as an array, number or ShapeDtypeStruct."""
    try:
        return abstract_value(x)
    except TypeError:
        raise TypeError(
            f"{describe()}: expected an array, a number or a ShapeDtypeStruct, got "
            f"{type(x).__name__} {x!r:.60}"
        ) from None


def traced_with_trees(
    fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], what: str
) -> tuple[Graph, Any]:
    """(graph of fun(*args, **kwargs), structure of its result); the arguments give types only."""
    name = function_name(fun)
    leaves, in_tree = tree_flatten((args, kwargs))
    avals = [
        abstract_leaf(
            x,
            lambda i=i: f"{what} of {name}: argument {leaf_names(fun, args, kwargs)[i]}",
        )  # type: ignore[misc]
        for i, x in enumerate(leaves)
    ]
    flat = FlatFunction(fun, in_tree)
    graph = trace_to_graph(flat, avals, name, what)
    return graph, flat.out_tree


def typeof(x: Any) -> Any:
    """The type (shape, dtype, whether it is weak) of an array, tracer or number.

    >>> typeof(1.0).shape
    ()

    TypeError for what is no value of a traced function.
    """
    return type_of(as_value(x, lambda: "typeof: x"))


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of the results of `fun`, without computing them.

    Arguments may be arrays or ShapeDtypeStructs; results are ShapeDtypeStructs.

    >>> import jato.numpy as jnp
    >>> eval_shape(jnp.dot, ShapeDtypeStruct((2, 3), "float32"), jnp.ones(3))
    ShapeDtypeStruct(shape=(2,), dtype=float32)

    TypeError for arguments that are no arrays.
    """
    check(callable(fun), TypeError, f"eval_shape: expected a function, got {fun!r}")
    graph, out_tree = traced_with_trees(fun, args, kwargs, "eval_shape")
    return out_tree.unflatten([struct_of(a) for a in graph.out_avals])


class ClosedJaxpr:
    """A traced function, as `make_jaxpr` returns it; `str` of it is the program."""

    def __init__(self, graph: Graph):
        self.graph = graph

    @property
    def jaxpr(self) -> Graph:
        return self.graph

    @property
    def eqns(self) -> list[Any]:
        return self.graph.nodes

    @property
    def consts(self) -> list[Any]:
        return self.graph.consts

    @property
    def literals(self) -> list[Any]:
        return self.graph.consts

    @property
    def in_avals(self) -> list[Any]:
        return self.graph.in_avals

    @property
    def out_avals(self) -> list[Any]:
        return self.graph.out_avals

    def __str__(self) -> str:
        return format_graph(self.graph)

    __repr__ = __str__


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Any = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that takes the arguments of `fun` and returns its program as a ClosedJaxpr.

    static_argnums: positions of arguments that are passed as they are.  axis_env: pairs (name, size)
    of named axes for collectives.  With `return_shape` it
    returns (jaxpr, shapes of the results).

    >>> import jato.numpy as jnp
    >>> make_jaxpr(lambda x: jnp.sin(x))(jnp.ones(3))
    { lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }
    """
    check(callable(fun), TypeError, f"make_jaxpr: expected a function, got {fun!r}")
    statics = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @functools.wraps(fun, updated=())
    def traced(*args: Any, **kwargs: Any) -> Any:
        fixed = {n % len(args) for n in statics if -len(args) <= n < len(args)}
        dynamic = [i for i in range(len(args)) if i not in fixed]

        def of_dynamic(*values: Any, **named: Any) -> Any:
            merged = list(args)
            for i, x in zip(dynamic, values, strict=True):
                merged[i] = x
            return fun(*merged, **named)

        of_dynamic.__name__ = function_name(fun)
        given = tuple(args[i] for i in dynamic)
        sizes = STATE.axis_sizes
        STATE.axis_sizes = {**sizes, **dict(axis_env or ())}
        try:
            graph, out_tree = traced_with_trees(of_dynamic, given, kwargs, "make_jaxpr")
        finally:
            STATE.axis_sizes = sizes
        if return_shape:
            return ClosedJaxpr(graph), out_tree.unflatten([struct_of(a) for a in graph.out_avals])
        return ClosedJaxpr(graph)

    return traced
