"""jato.scipy.optimize.minimize on functions with known minima, beside SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import jato
import jato.numpy as jnp
from jato.scipy.optimize import OptimizeResults, minimize

RNG = np.random.default_rng(0)
MATRIX = RNG.normal(size=(6, 6))
MATRIX = MATRIX @ MATRIX.T + np.eye(6)


def rosenbrock(x: Any) -> Any:
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def himmelblau(x: Any) -> Any:
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def quadratic(x: Any) -> Any:
    return 0.5 * x @ MATRIX @ x - jnp.sum(x)


def eggholder_like(x: Any) -> Any:
    return jnp.sum(jnp.exp(x) - 2 * x) + jnp.sum(jnp.cos(3 * x))


CASES = {
    "rosenbrock": (rosenbrock, np.zeros(2)), "rosenbrock 8": (rosenbrock, np.full(8, -1.2)),
    "himmelblau": (himmelblau, np.ones(2)), "quadratic": (quadratic, RNG.normal(size=6)),
    "waves": (eggholder_like, np.array([3.0, -2.0, 0.5])),
}  # fmt: skip


LIMITED = "l-bfgs-experimental-do-not-rely-on-this"


@pytest.mark.parametrize("method", ["BFGS", LIMITED])
@pytest.mark.parametrize("name", CASES)
def test_minima(name: str, method: str) -> None:
    f, start = CASES[name]
    with jato.enable_x64(True):
        found = minimize(f, start, method=method, tol=1e-8)
        assert isinstance(found, OptimizeResults)
        assert bool(found.success)
        assert int(found.status) == 0
        assert float(jnp.max(jnp.abs(found.jac))) < 1e-8
        np.testing.assert_allclose(found.fun, f(found.x), atol=1e-20)
        theirs = scipy.optimize.minimize(
            lambda x: float(f(x)),
            start,
            jac=lambda x: np.asarray(jato.grad(f)(x)),
            method="BFGS",
            tol=1e-8,
        )
        assert int(found.nit) <= 2 * theirs.nit + 5
        if name != "waves":  # more than one minimum
            np.testing.assert_allclose(found.x, theirs.x, atol=1e-6)
        hessian = jato.hessian(f)(found.x)
        assert (found.hess_inv is None) == (method == LIMITED)
        if name == "quadratic" and method == "BFGS":
            np.testing.assert_allclose(found.hess_inv @ hessian, np.eye(6), atol=0.3)


def test_inside_of_programs() -> None:
    found = jato.jit(
        lambda x, c: minimize(lambda x, c: jnp.sum((x - c) ** 4), x, (c,), method="bfgs")
    )
    result = found(jnp.zeros(2), 3.0)
    assert bool(result.success)
    np.testing.assert_allclose(result.x, [3, 3], atol=0.05)
    starts = np.float32([[0, 0], [-1, 2], [3, 3]])
    many = jato.vmap(lambda x: minimize(himmelblau, x, method="BFGS", tol=1e-3))(starts)
    assert many.x.shape == (3, 2)
    assert (np.asarray(many.fun) < 1e-4).all()


def test_endings() -> None:
    stopped = minimize(rosenbrock, jnp.zeros(2), method="BFGS", options={"maxiter": 2})
    assert (int(stopped.status), bool(stopped.success), int(stopped.nit)) == (1, False, 2)
    few = minimize(rosenbrock, jnp.zeros(2), method=LIMITED, options={"maxfun": 5, "maxcor": 3})
    assert (int(few.status), bool(few.success)) == (1, False)
    settled = minimize(rosenbrock, jnp.zeros(2), method=LIMITED, options={"ftol": 1e-2})
    assert bool(settled.success)
    # no minimum: the values fall without end, or are no numbers
    endless = minimize(lambda x: jnp.sum(jnp.log(x - 2)), jnp.ones(1), method="BFGS")
    assert not bool(endless.success)
    assert int(endless.status) == 3
    there = minimize(
        quadratic, np.linalg.solve(MATRIX, np.ones(6)).astype(np.float32), method="BFGS", tol=1e-3
    )
    assert (int(there.nit), int(there.nfev)) == (0, 1)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: minimize(rosenbrock, jnp.ones(2), method="CG"), ValueError, "minimize: argument 'method'"),
        (lambda: minimize(rosenbrock, jnp.ones((2, 2)), method="BFGS"), ValueError, "argument 'x0' must be"),
        (lambda: minimize(lambda x: x, jnp.ones(2), method="BFGS"), ValueError, "argument 'fun' must give"),
        (lambda: minimize(rosenbrock, jnp.ones(2), 3.0, method="BFGS"), TypeError, "argument 'args'"),
        (
            lambda: minimize(rosenbrock, jnp.ones(2), method="BFGS", options={"steps": 2}),
            ValueError, "argument 'options' may have 'gtol'",
        ),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
