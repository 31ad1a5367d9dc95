"""The primitives, one file per family; and, as jax.ops, the reductions over segments."""

from jato.ops.segment import (
    segment_max as segment_max,
    segment_min as segment_min,
    segment_prod as segment_prod,
    segment_sum as segment_sum,
)
