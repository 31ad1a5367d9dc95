"""Matrix products as library steps.

Takes   a Gemm in the form that graph/products.py makes.
Gives   one library step; the runtime splits it over threads and multiplies with its own kernel
        (AVX-512, real numbers) or with BLAS.

`fuse_epilogues` turns a product and the kernel right after it, if that walks the rows of the
result, into one tiled step: the kernel works on each block of rows while it is in cache.
"""

from __future__ import annotations

import struct

from jato.base import dtypes
from jato.compiler.graph.products import MOST_BATCHES, Layout
from jato.compiler.kernels import blas
from jato.compiler.loops.nest import LoopNest
from jato.compiler.plan import PlanContext
from jato.compiler.steps import Launch, Library
from jato.core.graph import Node

_ONE = struct.unpack("<q", struct.pack("<d", 1.0))[0]

# Smaller results stay in the second-level cache anyway.
TILE_BYTES = 256 * 1024
# Fewer grid steps are too few blocks for the threads.
LEAST_STEPS = 8


def plan_gemm(context: PlanContext, node: Node) -> None:
    out = node.outputs[0]
    layout: Layout = node.params["layout"]
    if context.vector_bytes < 64 or dtypes.is_complex(out.aval.dtype):
        blas.load()  # with AVX-512 the runtime has real products of its own (block_gemm.cpp)
    m, n, k = layout.m, layout.n, layout.k
    batches = [(1, 0, 0, 0)] * (MOST_BATCHES - len(layout.batches)) + list(layout.batches)
    outer, inner = batches
    params = [
        out.aval.dtype_code,
        int(layout.a[1] != 1),
        int(layout.b[1] != 1),
        m, n, k,
        layout.a[0] if layout.a[1] == 1 else layout.a[1],
        layout.b[0] if layout.b[1] == 1 else layout.b[1],
        layout.c_row,
        *inner,
        _ONE, 0, 0, 0,
        *outer,
    ]  # fmt: skip
    work = outer[0] * inner[0] * m * n * k
    rows = m if not layout.batches and layout.c_row == n else 0
    step = Library("gemm", [context.in_memory(a) for a in node.inputs], [out], params, work / 50.0, rows=rows)
    context.steps.append(step)


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
        step_rows, row_steps = launch.nest.row_inputs[product.writes[0]]
        steps[position - 1] = Library(
            product.name, product.reads, product.writes, product.params, product.cost_ns,
            product.rows, step_rows, row_steps, launch.nest,
        )  # fmt: skip
        del steps[position]


def _walks_rows(nest: LoopNest, product: Library) -> bool:
    """Does the kernel's grid walk the product row by row, and are blocks of rows worth while?"""
    result = product.writes[0]
    step_rows, _ = nest.row_inputs.get(result, (product.rows, 1))
    return (
        step_rows * LEAST_STEPS <= product.rows
        and result.aval.nbytes > TILE_BYTES
        and not set(nest.outputs) & set(product.reads)
    )
