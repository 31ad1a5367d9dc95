"""Matrix products as library steps.

Takes   a dot_general in the form that graph/contractions.py makes.
Gives   one library step; the runtime splits it over threads and multiplies with its own kernel
        (AVX-512, real numbers) or with BLAS.

`fuse_epilogue` turns a product and the elementwise kernel right after it, if that runs over the
rows of the result, into one tiled step: the kernel works on each block of rows while it is in cache.
"""

from __future__ import annotations

import struct

from jato.base import dtypes
from jato.compiler.kernels import blas
from jato.compiler.loops.nest import LoopNest
from jato.compiler.plan import Launch, Library, PlanContext
from jato.core.graph import Node
from jato.ops.contract import dims_of

_ONE = struct.unpack("<q", struct.pack("<d", 1.0))[0]

# Rows of one tile: enough for BLAS to be efficient, little enough to stay in the second-level cache.
TILE_BYTES = 256 * 1024


def plan_gemm(context: PlanContext, node: Node) -> None:
    lhs, rhs = node.inputs
    out = node.outputs[0]
    if context.vector_bytes < 64 or dtypes.is_complex(out.aval.dtype):
        blas.load()  # with AVX-512 the runtime has real products of its own (block_gemm.cpp)
    dims = dims_of(lhs.aval, rhs.aval, node.params["dimension_numbers"])
    batch, m, n, k = dims.matrix_sizes
    first = len(dims.batch_shape)
    left_transposed = dims.lhs_contract[0] == first
    right_transposed = dims.rhs_contract[0] == first + 1
    params = [
        out.aval.dtype_code,
        int(left_transposed),
        int(right_transposed),
        m, n, k,
        m if left_transposed else k,
        k if right_transposed else n,
        n,
        batch, m * k, k * n, m * n,
        _ONE, 0, 0, 0,
    ]  # fmt: skip
    operands = [context.in_memory(lhs), context.in_memory(rhs)]
    flops = 2.0 * batch * m * n * k
    cost_ns = flops / 60.0
    context.steps.append(
        Library("gemm", operands, [out], params, cost_ns, rows=m if batch == 1 else 0)
    )


def fuse_epilogues(context: PlanContext) -> None:
    """Joins each product with the kernel right after it that works on the product's rows.

    before: C = A @ B; D = f(C)        C goes to memory and comes back
    after:  for each block of rows: C = A @ B; D = f(C)
    """
    steps = context.steps
    position = 0
    while position + 1 < len(steps):
        product, launch = steps[position], steps[position + 1]
        position += 1
        if not (isinstance(product, Library) and product.name == "gemm" and product.rows):
            continue
        if not isinstance(launch, Launch) or not _walks_rows(launch.nest, product):
            continue
        row_bytes = product.writes[0].aval.nbytes // max(1, product.rows)
        grain = max(16, TILE_BYTES // max(1, row_bytes) // 16 * 16)
        steps[position - 1] = Library(
            product.name, product.reads, product.writes, product.params, product.cost_ns,
            product.rows, grain, launch.nest,
        )  # fmt: skip
        del steps[position]


def _walks_rows(nest: LoopNest, product: Library) -> bool:
    """Does grid step i of the kernel read row i of the product and no other?"""
    result = product.writes[0]
    return (
        nest.grid == product.rows
        and result in nest.row_inputs
        and result.aval.nbytes > TILE_BYTES
        and not set(nest.outputs) & set(product.reads)
    )
