"""gaussian_kde: a density estimated from samples, a sum of normal densities around each.

The kernels share one covariance, that of the samples times the square of a bandwidth factor:
D. Scott, "Multivariate Density Estimation" (1992); B. Silverman, "Density Estimation" (1986).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jato.numpy as jnp
from jato import random
from jato.jit.eager import public
from jato.nn.normalization import logsumexp
from jato.scipy.linalg import solve_triangular
from jato.scipy.special.error_functions import ndtr
from jato.scipy.stats import multivariate_normal
from jato.scipy.stats.arguments import named_operands
from jato.tree_util import register_pytree_node_class


def _factor(bandwidth: Any, estimator: gaussian_kde) -> Any:
    n, d = estimator.neff, estimator.d
    if bandwidth is None or bandwidth == "scott":
        return n ** (-1 / (d + 4))
    if bandwidth == "silverman":
        return (n * (d + 2) / 4) ** (-1 / (d + 4))
    if isinstance(bandwidth, str) or not (callable(bandwidth) or jnp.ndim(bandwidth) == 0):
        raise ValueError(
            "gaussian_kde: argument 'bw_method' must be 'scott', 'silverman', a number or a function, got "
            f"{bandwidth!r}"
        )
    return bandwidth(estimator) if callable(bandwidth) else bandwidth


@public()
def _log_evaluate(dataset: Any, weights: Any, covariance: Any, points: Any) -> Any:
    factor = jnp.linalg.cholesky(covariance)
    centres = solve_triangular(factor, dataset, lower=True)
    places = solve_triangular(factor, points, lower=True)
    distance = jnp.sum(jnp.square(places[:, :, None] - centres[:, None, :]), 0)
    log_scale = jnp.sum(jnp.log(jnp.diagonal(factor))) + 0.5 * len(dataset) * math.log(2 * math.pi)
    return logsumexp(-0.5 * distance, 1, b=weights) - log_scale


@public()
def _box_mass(dataset: Any, weights: Any, covariance: Any, low: Any, high: Any) -> Any:
    spread = jnp.sqrt(covariance[0, 0])
    low, high = ((x - dataset[0]) / spread for x in (low, high))
    return jnp.sum(weights * (ndtr(high) - ndtr(low)))


@public()
def _product(
    dataset: Any, weights: Any, covariance: Any, others: Any, other_weights: Any, other_cov: Any
) -> Any:
    offsets = (dataset[:, :, None] - others[:, None, :]).reshape(len(dataset), -1).T
    zero = jnp.zeros(len(dataset), offsets.dtype)
    densities = multivariate_normal.pdf(offsets, zero, covariance + other_cov)
    return jnp.sum(densities * (weights[:, None] * other_weights).reshape(-1))


@register_pytree_node_class
class gaussian_kde:
    """The density estimated from samples.

    dataset: real samples of shape (n,), or (d, n) in d dimensions; bw_method: "scott" (the default),
    "silverman", the factor itself, or a function of the estimator that gives it; weights: one for each
    sample, or all are equal.  Raises ValueError for other shapes and methods, TypeError for complex
    samples.

    It has `dataset` (d, n), `weights` (n,) of sum 1, `neff`, the effective number of samples,
    `covariance` and `inv_cov` (d, d), `d` and `n`.  It is a pytree: pass it to jitted functions.

    >>> import jato.numpy as jnp
    >>> density = gaussian_kde(jnp.array([-1.0, 1.0]))
    >>> round(float(density(0.0)[0]), 4)
    0.233
    """

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        (samples,) = named_operands("gaussian_kde", dataset=dataset)
        samples = jnp.atleast_2d(samples)
        if samples.ndim != 2 or samples.shape[1] < 2:
            raise ValueError(
                "gaussian_kde: argument 'dataset' must hold two samples or more, in shape (n,) or (d, n), "
                f"got shape {jnp.shape(dataset)}"
            )
        n = samples.shape[1]
        if weights is None:
            weights = jnp.full(n, 1 / n, samples.dtype)
        else:
            samples, weights = named_operands("gaussian_kde", dataset=samples, weights=weights)
            if weights.shape != (n,):
                raise ValueError(
                    f"gaussian_kde: argument 'weights' must have shape ({n},), one for each sample, got "
                    f"shape {weights.shape}"
                )
            weights = weights / jnp.sum(weights)
        self.dataset, self.weights = samples, weights
        self.neff = 1 / jnp.sum(jnp.square(weights))
        factor = _factor(bw_method, self)
        covariance = jnp.atleast_2d(jnp.cov(samples, aweights=weights))
        self.covariance = covariance * factor**2
        self.inv_cov = jnp.linalg.inv(covariance) / factor**2

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Sequence[Any]) -> gaussian_kde:
        new = object.__new__(cls)
        new.neff, new.dataset, new.weights, new.covariance, new.inv_cov = children
        return new

    @property
    def d(self) -> int:
        return int(self.dataset.shape[0])

    @property
    def n(self) -> int:
        return int(self.dataset.shape[1])

    def _state(self) -> tuple[Any, Any, Any]:
        return self.dataset, self.weights, self.covariance

    def _points(self, function: str, points: Any) -> Any:
        _, points = named_operands(function, dataset=self.dataset, points=points)
        points = jnp.atleast_2d(points)
        if points.shape[0] == 1 and points.shape[1] == self.d:
            points = points.reshape(self.d, 1)
        if points.ndim != 2 or points.shape[0] != self.d:
            raise ValueError(
                f"{function}: argument 'points' must have shape ({self.d}, m) or ({self.d},), got shape "
                f"{points.shape}"
            )
        return points

    def evaluate(self, points: Any) -> Any:
        """The density at `points`, of shape (d, m), or (d,) for one: shape (m,)."""
        return jnp.exp(_log_evaluate(*self._state(), self._points("gaussian_kde.evaluate", points)))

    __call__ = evaluate

    def pdf(self, x: Any) -> Any:
        """The density at the points x.  See `evaluate`."""
        return jnp.exp(_log_evaluate(*self._state(), self._points("gaussian_kde.pdf", x)))

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density at the points x, accurate far from the samples."""
        return _log_evaluate(*self._state(), self._points("gaussian_kde.logpdf", x))

    def integrate_gaussian(self, mean: Any, cov: Any) -> Any:
        """The integral of the density times a normal density of `mean` (d,) and `cov` (d, d)."""
        _, mean, cov = named_operands(
            "gaussian_kde.integrate_gaussian", dataset=self.dataset, mean=mean, cov=cov
        )
        mean, cov = jnp.atleast_1d(mean), jnp.atleast_2d(cov)
        d = self.d
        if mean.shape != (d,) or cov.shape != (d, d):
            raise ValueError(
                f"gaussian_kde.integrate_gaussian: arguments 'mean' and 'cov' must have shapes ({d},) and "
                f"({d}, {d}), got {mean.shape} and {cov.shape}"
            )
        return _product(*self._state(), mean[:, None], jnp.ones(1, mean.dtype), cov)

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """The probability between the numbers low and high, in one dimension (else ValueError)."""
        if self.d != 1:
            raise ValueError(
                f"gaussian_kde.integrate_box_1d: the samples must have one dimension, not {self.d}"
            )
        _, low, high = named_operands(
            "gaussian_kde.integrate_box_1d", dataset=self.dataset, low=low, high=high
        )
        if low.shape or high.shape:
            raise ValueError(
                "gaussian_kde.integrate_box_1d: arguments 'low' and 'high' must be numbers, got shapes "
                f"{low.shape} and {high.shape}"
            )
        return _box_mass(*self._state(), low, high)

    def integrate_kde(self, other: gaussian_kde) -> Any:
        """The integral of the product of two estimated densities of equal dimension."""
        if not isinstance(other, gaussian_kde) or other.d != self.d:
            raise ValueError(
                "gaussian_kde.integrate_kde: argument 'other' must be a gaussian_kde of dimension "
                f"{self.d}, got {getattr(other, 'd', type(other).__name__)}"
            )
        return _product(*self._state(), *other._state())

    def resample(self, key: Any, shape: tuple[int, ...] = ()) -> Any:
        """Samples of the estimated density, of shape (d, *shape), from the random key."""
        which, noise = random.split(key)
        centres = random.choice(which, self.n, tuple(shape), p=self.weights)
        zero = jnp.zeros(self.d, self.dataset.dtype)
        steps = random.multivariate_normal(
            noise, zero, self.covariance, tuple(shape), self.dataset.dtype
        )
        return self.dataset[:, centres] + jnp.moveaxis(steps, -1, 0)

    def set_bandwidth(self, bw_method: str | float | Callable[..., Any] | None = None) -> None:
        """Not there: NotImplementedError.  Make another estimator."""
        raise NotImplementedError(
            "gaussian_kde.set_bandwidth: the estimator does not change; make one with gaussian_kde("
            "dataset, bw_method)"
        )

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> None:
        """Not there: NotImplementedError.  In one dimension there is integrate_box_1d."""
        raise NotImplementedError(
            "gaussian_kde.integrate_box: only integrate_box_1d is there, for one dimension"
        )
