"""The price of a European call, by simulation and in closed form, and its slopes by `grad`.

    python examples/option_price.py [--paths 400000]
"""

import argparse
from functools import partial

import jato
import jato.numpy as jnp
from jato.scipy.stats import norm


def black_scholes(spot, strike, rate, volatility, time):
    """The closed form (Black and Scholes, 1973)."""
    spread = volatility * jnp.sqrt(time)
    d1 = (jnp.log(spot / strike) + (rate + volatility**2 / 2) * time) / spread
    return spot * norm.cdf(d1) - strike * jnp.exp(-rate * time) * norm.cdf(d1 - spread)


def simulated(spot, strike, rate, volatility, time, normals):
    """Mean discounted payoff over paths of geometric Brownian motion, and its standard error."""
    drift = (rate - volatility**2 / 2) * time
    final = spot * jnp.exp(drift + volatility * jnp.sqrt(time) * normals)
    payoff = jnp.exp(-rate * time) * jnp.maximum(final - strike, 0)
    return payoff.mean(), payoff.std() / jnp.sqrt(payoff.size)


@partial(jato.jit, static_argnums=(1, 2))
def compare(key, paths, steps, market):
    """Prices, standard error, and the slope in the spot price of both."""
    increments = jato.random.normal(key, (steps, paths))
    normals = increments.sum(axis=0) / jnp.sqrt(steps)
    price, error = simulated(*market, normals)
    delta = jato.grad(lambda *m: simulated(*m, normals)[0])(*market)
    return price, error, black_scholes(*market), delta, jato.grad(black_scholes)(*market)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--paths", type=int, default=400_000)
    parser.add_argument("--steps", type=int, default=16)
    options = parser.parse_args()

    market = (100.0, 105.0, 0.03, 0.2, 1.5)  # spot, strike, rate, volatility, time
    results = compare(jato.random.key(7), options.paths, options.steps, market)
    price, error, exact, delta, exact_delta = map(float, results)
    print(f"simulated {price:.4f} +- {error:.4f}; closed form {exact:.4f}")
    print(f"delta simulated {delta:.4f}; closed form {exact_delta:.4f}")


if __name__ == "__main__":
    main()
