"""Why two operations were fused or not; every decision of partition.py carries one of these."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    # fused
    SAME_DOMAIN = "elementwise over the same shape"
    INDEX_ARITHMETIC = "only moves elements: becomes index arithmetic of its consumer"
    PRODUCER_OF_REDUCTION = "computed while it is being reduced"
    ROW_CHAIN = "reduction whose result is used on the same rows: one loop over rows"
    EPILOGUE_OF_REDUCTION = "works on the result of the reduction, once per row"
    RECOMPUTED = "cheap: recomputed in each consumer instead of stored"
    SIBLING = "independent, over the same shape and the same inputs: one loop for both"
    # not fused
    NOT_FUSABLE = "runs as a library routine or a step of its own"
    SEVERAL_CONSUMERS = "several kernels need it and it costs too much to compute twice"
    REREAD = "its consumer reads each element many times"
    ACROSS_MEMORY = "its consumer would read or write across memory: transposed through tiles first"
    REPLICATED = "its consumer would compute the same value many times"
    GUARDED = "computed under several levels of paddings or concatenations, each with a guard"
    OTHER_DOMAIN = "a different iteration space"
    OTHER_AXES = "reduces other axes than the kernel's rows"
    ROWS_TOO_LONG = "the rows do not stay in the cache between the passes"
    FEW_ROWS = "few rows: the reduction is spread over all cores instead"
    CYCLE = "would need its own result"
    TOO_LARGE = "the kernel is large enough"


FUSED = frozenset(
    {
        Reason.SAME_DOMAIN,
        Reason.INDEX_ARITHMETIC,
        Reason.PRODUCER_OF_REDUCTION,
        Reason.ROW_CHAIN,
        Reason.EPILOGUE_OF_REDUCTION,
        Reason.RECOMPUTED,
        Reason.SIBLING,
    }
)
