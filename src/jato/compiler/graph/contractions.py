"""Contractions in the form their kernels want.

Takes   a simplified graph.
Gives   every dot_general either as a product and a sum, which fusion turns into loops, or as a
        `Gemm` (products.py), which the native runtime computes.
Runs    after simplify and before fusion.

    matrix @ vector, tiny or integer products     ->  reduce_sum(multiply(broadcast, broadcast))
    dot_general of any axes                       ->  gemm, with copies (transpose, reshape) only where
                                                      strides cannot say it

A matrix-vector product reads each element once: it runs at memory speed as a fused reduction, and
what surrounds it fuses too.  16-bit floats are multiplied in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from jato.base import dtypes
from jato.compiler.graph.products import Products
from jato.core.graph import Atom, Graph, Node, Var
from jato.core.staging import trace_to_graph
from jato.core.trace import set_trace
from jato.ops.contract import DotGeneral, Dims, dims_of, dot_general
from jato.ops.convert import convert_element_type
from jato.ops.elementwise import mul
from jato.ops.reduce import reduce_or
from jato.ops.structural import broadcast_in_dim, reduce_sum, reshape, transpose

# Below this many multiplications per batch index a call of BLAS costs more than the loop.
SMALL = 16 * 16 * 16
# ...unless there are many of them, with this many multiplications together and edges of this length.
MANY = 1 << 16
SMALLEST_EDGE = 8


def canonical_contractions(graph: Graph) -> Graph:
    if not any(isinstance(n.primitive, DotGeneral) for n in graph.nodes):
        return graph
    return _with_gemms(splice(graph, _rewritten))


def _with_gemms(graph: Graph) -> Graph:
    """Every dot_general as a Gemm, of copies where it must be."""
    products = Products(graph)
    copied = splice(
        graph,
        lambda node: (
            _copied(node)
            if isinstance(node.primitive, DotGeneral) and products.gemm(node) is None
            else None
        ),
    )
    products = Products(copied)
    nodes: list[Node] = []
    done: set[Var] = set()
    for node in copied.nodes:
        if isinstance(node.primitive, DotGeneral):
            made = products.gemm(node)
            assert made is not None, f"no layout for {node}"
            node = made
            done.update(made.outputs)
        elif node.outputs[0] in done:
            continue  # a transpose that the product writes itself
        nodes.append(node)
    return Graph(
        graph.inputs, nodes, copied.outputs, graph.constvars, graph.consts, graph.name
    )  # fmt: skip


def splice(graph: Graph, replacement: Callable[[Node], Graph | None]) -> Graph:
    """The graph with nodes replaced by graphs of one result; None leaves a node as it is."""
    nodes: list[Node] = []
    env: dict[Var, Atom] = {}
    for node in graph.nodes:
        inputs = [env.get(a, a) if type(a) is Var else a for a in node.inputs]
        node = Node(node.primitive, inputs, node.outputs, node.params, node.frame)
        body = replacement(node)
        if body is None:
            nodes.append(node)
            continue
        inner: dict[Var, Atom] = dict(zip(body.inputs, inputs, strict=True))
        for n in body.nodes:
            atoms = [inner.get(a, a) if type(a) is Var else a for a in n.inputs]
            nodes.append(Node(n.primitive, atoms, n.outputs, n.params, node.frame))
        result = body.outputs[0]
        env[node.outputs[0]] = inner.get(result, result) if type(result) is Var else result
    outputs = [env.get(a, a) if type(a) is Var else a for a in graph.outputs]
    return Graph(graph.inputs, nodes, outputs, graph.constvars, graph.consts, graph.name)


def _is_blas_dtype(aval: Any) -> bool:
    return dtypes.scalar_name(aval) in ("f32", "f64", "c64", "c128")


def _prefers_loops(dims: Dims) -> bool:
    batch, m, n, k = dims.matrix_sizes
    work = m * n * k
    if min(m, n, k) <= 1 or batch == 0:
        return True
    return work <= SMALL and not (batch * work >= MANY and min(m, n, k) >= SMALLEST_EDGE)


def _rewritten(node: Node) -> Graph | None:
    """Loops, or a dot_general of one dtype that BLAS knows; None if it is that already."""
    if not isinstance(node.primitive, DotGeneral):
        return None
    lhs, rhs = (a.aval for a in node.inputs)
    dims = dims_of(lhs, rhs, node.params["dimension_numbers"])
    out = node.outputs[0].aval
    half = dtypes.is_floating(lhs.dtype) and lhs.itemsize == 2
    blas = half or _is_blas_dtype(lhs)
    loops = not blas or _prefers_loops(dims)
    wide = dtypes.DTYPES[11] if half else lhs.dtype
    if out.itemsize > lhs.itemsize:  # narrow integers would wrap
        wide = out.dtype
    if not loops and wide == lhs.dtype == rhs.dtype == out.dtype:
        return None

    def body(x: Any, y: Any) -> list[Any]:
        if wide != lhs.dtype:
            x, y = convert_element_type(x, wide), convert_element_type(y, wide)
        if loops:
            result = _as_sum(x, y, dims)
        else:
            result = dot_general(x, y, node.params["dimension_numbers"])
        return [convert_element_type(result, out.dtype, out.weak_type)]

    with set_trace(None):
        return trace_to_graph(body, [lhs, rhs], "dot_general")


def _copied(node: Node) -> Graph:
    lhs, rhs = (a.aval for a in node.inputs)
    dims = dims_of(lhs, rhs, node.params["dimension_numbers"])
    with set_trace(None):
        return trace_to_graph(lambda x, y: [_as_gemm(x, y, dims)], [lhs, rhs], "dot_general")


def _as_sum(x: Any, y: Any, dims: Dims) -> Any:
    """Axes: batch, lhs free, rhs free, and the contracted ones where the right operand has them.

    Contracted axes come last, or before the right operand's free ones if those are contiguous in
    memory: then the vector loop runs along them.
    """
    nb, nl, nr, nc = (
        len(dims.batch_shape), len(dims.lhs_free), len(dims.rhs_free), len(dims.lhs_contract),
    )  # fmt: skip
    across = bool(dims.rhs_free) and dims.rhs_free[-1] == y.aval.ndim - 1 and (
        prod(dims.rhs_free_shape) > 1
    )
    batch = list(range(nb))
    left = list(range(nb, nb + nl))
    if across:
        contracted = list(range(nb + nl, nb + nl + nc))
        right = list(range(nb + nl + nc, nb + nl + nc + nr))
        shape = (
            dims.batch_shape + dims.lhs_free_shape + dims.contract_shape + dims.rhs_free_shape
        )
    else:
        right = list(range(nb + nl, nb + nl + nr))
        contracted = list(range(nb + nl + nr, nb + nl + nr + nc))
        shape = (
            dims.batch_shape + dims.lhs_free_shape + dims.rhs_free_shape + dims.contract_shape
        )
    x = _spread(
        x, shape, dims.lhs_batch + dims.lhs_free + dims.lhs_contract, batch + left + contracted
    )
    y = _spread(
        y, shape, dims.rhs_batch + dims.rhs_free + dims.rhs_contract, batch + right + contracted
    )
    if dtypes.is_bool(x.aval.dtype):
        return reduce_or(mul_bool(x, y), contracted)
    return reduce_sum(mul(x, y), contracted)


def mul_bool(x: Any, y: Any) -> Any:
    """Products of bools are ands."""
    return x & y


def _spread(x: Any, shape: tuple[int, ...], axes: tuple[int, ...], places: list[int]) -> Any:
    """x with its axis axes[i] at places[i] of shape."""
    order = sorted(range(len(axes)), key=places.__getitem__)
    permutation = tuple(axes[i] for i in order)
    if permutation != tuple(range(len(axes))):
        x = transpose(x, permutation)
    return broadcast_in_dim(x, shape, tuple(sorted(places)))


def _as_gemm(x: Any, y: Any, dims: Dims) -> Any:
    batch, m, n, k = dims.matrix_sizes
    left = _matrix(x, dims.lhs_batch, dims.lhs_free, dims.lhs_contract, (batch, m, k))
    right = _matrix(y, dims.rhs_batch, dims.rhs_free, dims.rhs_contract, (batch, n, k))
    first = int(batch > 1)
    numbers = (
        ((first + left[1],), (first + right[1],)),
        ((0,), (0,)) if batch > 1 else ((), ()),
    )
    out = dot_general(left[0], right[0], numbers)
    return reshape(out, dims.batch_shape + dims.lhs_free_shape + dims.rhs_free_shape)


def _matrix(
    x: Any,
    batch: tuple[int, ...],
    free: tuple[int, ...],
    contract: tuple[int, ...],
    sizes: tuple[int, int, int],
) -> tuple[Any, int]:
    """(x as batch x matrix, which of the matrix's axes is contracted).

    No copy when the axes already lie as batch, free, contract or batch, contract, free.
    """
    order = tuple(range(x.aval.ndim))
    count, rows, inner = sizes
    if batch + contract + free == order and batch + free + contract != order:
        shape, axis = (inner, rows), 0
    else:
        if batch + free + contract != order:
            x = transpose(x, batch + free + contract)
        shape, axis = (rows, inner), 1
    return reshape(x, (count, *shape) if count > 1 else shape), axis
