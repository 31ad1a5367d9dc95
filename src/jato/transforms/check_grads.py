"""check_grads: compares derivatives with numerical differences.

A function's jvp is compared with a central difference along a random direction, its vjp with its
jvp by the dot-product test; higher orders check the derivative functions themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import check
from jato.base.pytree import function_name, tree_flatten, tree_leaves
from jato.core.array import from_host
from jato.core.types import type_of
from jato.transforms.jvp import as_value, jvp
from jato.transforms.linearize import vjp

# central differences lose about two thirds of the digits
_STEPS = {2: 1e-1, 4: 1e-2, 8: 1e-5}
_TOLERANCES = {2: 1e-1, 4: 1e-2, 8: 1e-5}


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Raises AssertionError if derivatives of `f` at `args` differ from numerical differences.

    order: derivatives up to this one are checked.  modes: of "fwd" (jvp) and "rev" (vjp).  atol,
    rtol: tolerances; eps: the step; by default what the dtype allows.

    >>> check_grads(lambda x: x * x, (3.0,), order=2)
    """
    for mode in modes:
        check(
            mode in ("fwd", "rev"),
            ValueError,
            f"check_grads: modes are 'fwd' and 'rev', got {mode!r}",
        )
    _check(f, tuple(args), order, tuple(modes), (atol, rtol, eps), np.random.default_rng(0), "")


def _check(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    order: int,
    modes: tuple[str, ...],
    options: tuple[float | None, float | None, float | None],
    rng: np.random.Generator,
    path: str,
) -> None:
    name = path + function_name(f)
    tangents = _random_like(args, rng)
    out, derivative = jvp(f, args, tangents)
    if "fwd" in modes:
        _compare(_difference(f, args, tangents, options[2]), derivative, options, f"jvp of {name}")
    if "rev" in modes:
        _, pull = vjp(f, *args)
        cotangents = _random_like(out, rng)
        numeric = derivative if "fwd" in modes else _difference(f, args, tangents, options[2])
        left = _dot(numeric, cotangents)
        right = _dot(tangents, pull(cotangents))
        _compare(left, right, options, f"vjp of {name}")
    if order > 1:
        if "fwd" in modes:
            _check(
                lambda *xs: jvp(f, xs, tangents)[1],
                args,
                order - 1,
                modes,
                options,
                rng,
                name + "'",
            )
        if "rev" in modes:
            _check(
                lambda *xs: vjp(f, *xs)[1](cotangents), args, order - 1, ("rev",), options, rng,
                name + "'",
            )  # fmt: skip


def _random_like(tree: Any, rng: np.random.Generator) -> Any:
    """Random directions: float0 for integers."""
    leaves, treedef = tree_flatten(tree)
    found: list[Any] = []
    for leaf in leaves:
        aval = type_of(as_value(leaf, lambda: "check_grads: an argument"))
        if not dtypes.is_inexact(aval.dtype):
            found.append(np.zeros(aval.shape, dtypes.float0))
            continue
        values = rng.normal(size=aval.shape)
        if dtypes.is_complex(aval.dtype):
            values = values + 1j * rng.normal(size=aval.shape)
        found.append(from_host(np.asarray(values).astype(aval.dtype)))
    return treedef.unflatten(found)


def _difference(
    f: Callable[..., Any], args: tuple[Any, ...], tangents: Any, eps: float | None
) -> Any:
    """(f(x + h t) - f(x - h t)) / 2h, in float64 as far as f allows."""
    real_bytes = [
        t.dtype.itemsize // (2 if dtypes.is_complex(t.dtype) else 1)
        for t in tree_leaves(tangents)
        if t.dtype != dtypes.float0
    ]
    step = eps if eps is not None else _STEPS[min(real_bytes, default=4)]
    leaves, treedef = tree_flatten(args)
    directions = tree_leaves(tangents)

    def moved(h: float) -> Any:
        return treedef.unflatten(
            [
                x
                if t.dtype == dtypes.float0
                else from_host((np.asarray(x) + h * np.asarray(t)).astype(t.dtype))
                for x, t in zip(leaves, directions, strict=True)
            ]
        )

    above, out_tree = tree_flatten(f(*moved(step)))
    below = tree_leaves(f(*moved(-step)))
    return out_tree.unflatten(
        [_quotient(np.asarray(a), np.asarray(b), step) for a, b in zip(above, below, strict=True)]
    )


def _quotient(above: Any, below: Any, step: float) -> Any:
    if not dtypes.is_inexact(above.dtype):
        return np.zeros(above.shape, dtypes.float0)
    wide = np.complex128 if dtypes.is_complex(above.dtype) else np.float64
    return ((above.astype(wide) - below.astype(wide)) / (2 * step)).astype(above.dtype)


def _dot(left: Any, right: Any) -> Any:
    """Real part of the sum of products: the pairing of vectors with covectors."""
    total = 0.0
    for x, y in zip(tree_leaves(left), tree_leaves(right), strict=True):
        if y.dtype != dtypes.float0:
            wide = np.asarray(x).astype(np.complex128) * np.asarray(y).astype(np.complex128)
            total += float(np.sum(wide).real)
    return total


def _compare(
    expected: Any,
    found: Any,
    options: tuple[float | None, float | None, float | None],
    what: str,
) -> None:
    for x, y in zip(tree_leaves(expected), tree_leaves(found), strict=True):
        want, got = np.asarray(x), np.asarray(y)
        if got.dtype == dtypes.float0:
            continue
        size = got.dtype.itemsize // (2 if dtypes.is_complex(got.dtype) else 1)
        size = 4 if isinstance(y, float) else size  # a scalar product of lower precision values
        default = _TOLERANCES[size]
        atol = options[0] if options[0] is not None else default
        rtol = options[1] if options[1] is not None else default
        np.testing.assert_allclose(
            got.astype(np.complex128),
            want.astype(np.complex128),
            rtol=rtol,
            atol=atol,
            err_msg=f"check_grads: {what} differs from the numerical derivative",
        )
