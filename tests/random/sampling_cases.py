"""Calls of jato.random whose results must equal jax.random's for the same key.

jax's results are kept in sampling_results.npz, since it takes long to compile some of them:

    python tests/random/sampling_cases.py       writes that file anew
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).with_name("sampling_results.npz")

GRID = np.arange(24, dtype=np.float32).reshape(4, 6)
WEIGHTS = np.float32([0.1, 0.2, 0.3, 0.4])
RATES = np.float32([0.0, 0.5, 3, 9.5, 10, 50, 1e4, 5])
SHAPES = np.float32([0.01, 0.3, 1, 2.5, 10, 100])
COUNTS = np.float32([0, 1, 5, 20, 100, 1e5, -1, np.inf, np.nan])

# (function, arguments after the key, keywords)
CASES = [
    ("bits", ((5,),), {}),
    ("bits", ((5,), np.uint8), {}),
    ("bits", ((2, 3), np.uint16), {}),
    ("split", (3,), {}),
    ("split", ((2, 3),), {}),
    ("fold_in", (7,), {}),
    ("uniform", ((101,),), {}),
    ("uniform", ((2, 3), np.float32, -3.0, 2.0), {}),
    ("uniform", ((50,), "bfloat16"), {}),
    ("uniform", ((50,), "float16"), {}),
    ("randint", ((100,), -5, 100), {}),
    ("randint", ((100,), 0, 2**31 - 1), {}),
    ("randint", ((300,), -128, 128, np.int8), {}),
    ("randint", ((3,), np.int32([0, 5, 9]), np.int32([1, 5, 4])), {}),
    ("bernoulli", (0.3, (50,)), {}),
    ("bernoulli", (0.3, (50,)), {"mode": "high"}),
    ("bernoulli", (np.float32([0.1, 0.9]),), {}),
    ("rademacher", ((20,),), {}),
    ("normal", ((7, 5),), {}),
    ("normal", ((50,), "bfloat16"), {}),
    ("normal", ((50,), "float16"), {}),
    ("normal", ((50,), "complex64"), {}),
    ("truncated_normal", (-1.0, np.float32([0, 2, 0.5])), {}),
    ("lognormal", (0.5, (4,)), {}),
    ("exponential", ((9,),), {}),
    ("laplace", ((90,),), {}),
    ("logistic", ((90,),), {}),
    ("cauchy", ((90,),), {}),
    ("gumbel", ((90,),), {}),
    ("gumbel", ((90,),), {"mode": "high"}),
    ("gumbel", ((90,),), {"mode": "highest"}),
    ("pareto", (2.0, (9,)), {}),
    ("rayleigh", (np.float32(2.0), (9,)), {}),
    ("triangular", (1.0, 2.0, 4.0, (9,)), {}),
    ("wald", (np.float32([1, 2]),), {}),
    ("weibull_min", (1.0, 2.0, (4,)), {}),
    ("maxwell", ((4,),), {}),
    ("double_sided_maxwell", (1.0, 2.0, (4,)), {}),
    ("categorical", (GRID,), {}),
    ("categorical", (GRID, 0), {}),
    ("categorical", (GRID / 9, -1, (3, 4)), {}),
    ("categorical", (GRID, 1, (3, 4)), {"replace": False}),
    ("geometric", (0.2, (40,)), {}),
    ("poisson", (RATES,), {}),
    ("poisson", (3.0, (50,)), {}),
    ("binomial", (COUNTS, 0.3), {}),
    ("binomial", (20.0, 0.8, (30,)), {}),
    ("binomial", (2000.0, 0.8, (30,)), {}),
    ("multinomial", (100.0, WEIGHTS), {}),
    ("gamma", (SHAPES,), {}),
    ("gamma", (0.5, (100,)), {}),
    ("loggamma", (SHAPES,), {}),
    ("beta", (SHAPES, 2.0), {}),
    ("dirichlet", (SHAPES, (3,)), {}),
    ("chisquare", (3.0, (10,)), {}),
    ("t", (3.0, (10,)), {}),
    ("f", (3.0, 4.0, (10,)), {}),
    ("generalized_normal", (1.5, (10,)), {}),
    ("ball", (3, 2, (4,)), {}),
    ("permutation", (10,), {}),
    ("permutation", (5000,), {}),
    ("permutation", (GRID,), {}),
    ("permutation", (GRID, 1), {}),
    ("permutation", (GRID, 1), {"independent": True}),
    ("choice", (10, (3,)), {}),
    ("choice", (10, (3,)), {"replace": False}),
    ("choice", (GRID, (2,)), {"axis": 1}),
    ("choice", (GRID, (2, 3)), {"axis": 1, "replace": False}),
    ("choice", (4, (20,)), {"p": WEIGHTS}),
    ("choice", (4, (3,)), {"p": WEIGHTS, "replace": False}),
    ("choice", (GRID, (3,)), {"p": WEIGHTS, "replace": False}),
]


def label(i: int) -> str:
    return f"{i:02d}-{CASES[i][0]}"


def samples(module: Any, i: int) -> Any:
    """The result of a case with jato or jax."""
    name, args, keywords = CASES[i]
    return getattr(module.random, name)(module.random.PRNGKey(11), *args, **keywords)


def vectorized(module: Any) -> list[Any]:
    """Distributions with loops, mapped over keys and parameters."""
    keys = module.random.split(module.random.PRNGKey(1), 5)
    rates = np.float32([0.5, 3, 20, 100, 0])
    gammas = module.vmap(lambda k, a: module.random.gamma(k, a + 0.1))(keys, rates)
    return [gammas, module.vmap(module.random.poisson)(keys, rates)]


def as_numpy(x: Any) -> np.ndarray:
    """bfloat16, which NumPy's files do not know, becomes float32."""
    x = np.asarray(x)
    return x.astype(np.float32) if x.dtype.kind == "V" or x.dtype.name == "bfloat16" else x


def record(module: Any) -> None:
    found = {label(i): as_numpy(samples(module, i)) for i in range(len(CASES))}
    found |= {f"vectorized{i}": as_numpy(x) for i, x in enumerate(vectorized(module))}
    np.savez_compressed(RESULTS, **found)


if __name__ == "__main__":
    record(importlib.import_module("jax"))
