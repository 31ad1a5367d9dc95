"""Parameters and points at which the distributions are tested; the test files import it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from jato import _native

NAN, INF = np.nan, np.inf

# a place whose arithmetic is exact, so that the ends of a support stay where they are
PLACES = {2: (0.5, 2.0), 1: (3.0,), 0: ()}
POINTS = {
    "real": np.array([-INF, -30, -2, -1, -0.25, 0, 0.5, 1, 1.75, 3, 8, 40, INF, NAN]),
    "positive": np.array([-INF, -1, 0, 0.125, 0.5, 1, 1.75, 3, 8, 40, INF, NAN]),
    "unit": np.array([-INF, -1, 0, 0.0625, 0.5, 0.75, 0.9375, 1, 1.5, INF, NAN]),
    "angle": np.array([-7, -1, 0, 0.5, 2, 3.25, 6.25, NAN]),
    "count": np.array([-INF, -2, -1, 0, 1, 2, 3, 7, 12, 60, 1.5, INF, NAN]),
    "probability": np.array([-0.5, 0, 1e-6, 0.125, 0.25, 0.5, 0.75, 0.875, 1, 1.5, NAN]),
}


@dataclass(frozen=True)
class Case:
    points: str
    parameters: tuple[list[float], ...] = ()
    places: int = 2  # 2: loc and scale, 1: loc, 0: none


CASES = {
    "norm": Case("real"),
    "beta": Case("unit", ([0.5, 1, 2.5, 30, -1], [1, 0.5, 3, 40, 1])),
    "cauchy": Case("real"),
    "chi2": Case("positive", ([0.5, 1, 2, 7.5, 50, -1],)),
    "expon": Case("positive"),
    "gamma": Case("positive", ([0.25, 1, 2.5, 30, -1],)),
    "gennorm": Case("real", ([0.5, 1, 2, 3.5, -1],), 0),
    "gumbel_l": Case("real"),
    "gumbel_r": Case("real"),
    "laplace": Case("real"),
    "logistic": Case("real"),
    "pareto": Case("positive", ([0.5, 1, 4, -1],)),
    "t": Case("real", ([0.5, 1, 4, 100, 1e6, -1],)),
    "truncnorm": Case(
        "real", ([-1, -INF, 0.25, 2, -6, -INF, 5, 1], [1, 0.5, INF, 4, -3, INF, 6, 0.5])
    ),
    "uniform": Case("unit"),
    "vonmises": Case("angle", ([0.25, 1, 30, 4000, -1],), 0),
    "wrapcauchy": Case("angle", ([0.125, 0.5, 0.99, 1.5],), 0),
    "bernoulli": Case("count", ([0, 0.25, 0.5, 1, 1.5],), 1),
    "betabinom": Case("count", ([0, 7, 12, 60, 2.5], [0.5, 1, 3, 20, 1], [1, 0.5, 4, 30, 1]), 1),
    "binom": Case("count", ([0, 7, 12, 60, 2.5, 7], [0.5, 0, 1, 0.25, 0.5, -1]), 1),
    "geom": Case("count", ([0.125, 0.5, 1, 1.5],), 1),
    "nbinom": Case("count", ([0.5, 1, 12, 30, -1], [0.5, 1, 0.25, 0.75, 0.5]), 1),
    "poisson": Case("count", ([0, 0.25, 2, 30, -1],), 1),
}
DISCRETE = {name for name, case in CASES.items() if case.points == "count"}


def functions(name: str) -> list[str]:
    """The functions of points or probabilities that a distribution has."""
    module = importlib.import_module(f"jato.scipy.stats.{name}")
    own = [
        n for n, f in vars(module).items()
        if isinstance(f, _native.JitFunction) and f.__module__ == module.__name__
    ]  # fmt: skip
    return [n for n in own if n != "entropy"]


SPECS = [(name, function) for name in CASES for function in functions(name)]


def arguments(name: str, function: str, dtype: Any) -> list[Any]:
    """Points (or probabilities) as a column, parameters as rows, the place as numbers."""
    case = CASES[name]
    place = () if name == "bernoulli" and function in ("cdf", "ppf") else PLACES[case.places]
    if function in ("ppf", "isf"):
        points = POINTS["probability"]
    else:
        points = POINTS[case.points] * (place[1] if len(place) == 2 else 1)
        points = points + (place[0] if place else 0)
    return [dtype(points)[:, None], *[dtype(p) for p in case.parameters], *place]
