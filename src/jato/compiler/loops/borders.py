"""Where the guards of a loop change: the borders of padding, rolling and concatenation.

    before: for i in 0 .. n: out[i] = where(i < 1, x[i + n - 1], x[i - 1])
    after:  out[0] = x[n - 1];  for i in 1 .. n: out[i] = x[i - 1]

A guard on the vector loop's variable costs a mask and a guarded address for each read of each
vector; cut at its border, every piece knows the guard's value.  (Heat equation on 1024 x 1024, four
rolls: 0.21 against 0.33 ms of processor time a step.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jato.compiler.loops.walk import expressions
from jato.loopir.builder import Builder
from jato.loopir.grammar import Expr

# More pieces than this, or a body costing more, would take longer to compile than they save.
MOST_CUTS = 4
MOST_COST = 60.0


def cut_points(b: Builder, body: Sequence[Any], variable: Expr, length: int) -> list[int]:
    """Values in (0, length) of the variable at which some comparison with a constant changes."""
    found: set[int] = set()
    for e in expressions(body):
        if e.op not in ("lt", "le", "gt", "ge") or e.args[0].dtype != "i64":
            continue
        left, right = e.args if e.op in ("lt", "le") else reversed(e.args)
        form = b.linear(b.sub(left, right))  # form < 0, or form <= 0
        step = form.terms.get((variable,))
        if len(form.terms) != 1 or step not in (1, -1):
            continue
        strict = e.op in ("lt", "gt")
        if step == 1:  # v < -c, or v < -c + 1
            found.add(-form.const + (0 if strict else 1))
        else:  # v >= c + 1, or v >= c
            found.add(form.const + (1 if strict else 0))
    return sorted(c for c in found if 0 < c < length)
