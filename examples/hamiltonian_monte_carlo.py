"""Hamiltonian Monte Carlo on the posterior of a linear regression, whose mean and covariance are known.

    python examples/hamiltonian_monte_carlo.py [--samples 1000] [--chains 8]
"""

import argparse
from functools import partial

import jato
import jato.numpy as jnp
import numpy as np
from jato import lax

NOISE = 0.5


def log_density(weights, inputs, targets):
    """Log of the posterior up to a constant: normal prior, normal noise."""
    residual = targets - inputs @ weights
    return -0.5 * jnp.sum(weights**2) - 0.5 * jnp.sum(residual**2) / NOISE**2


def transition(position, key, density, step_size, leaps):
    """One step of the chain: (new position, was it accepted)."""
    momentum_key, accept_key = jato.random.split(key)
    slope = jato.grad(density)

    def leap(_, state):
        x, p = state
        p = p + 0.5 * step_size * slope(x)
        x = x + step_size * p
        return x, p + 0.5 * step_size * slope(x)

    momentum = jato.random.normal(momentum_key, position.shape)
    proposal, final = lax.fori_loop(0, leaps, leap, (position, momentum))
    gain = density(proposal) - density(position)
    gain = gain - 0.5 * jnp.sum(final**2) + 0.5 * jnp.sum(momentum**2)
    accept = jnp.log(jato.random.uniform(accept_key)) < gain
    return jnp.where(accept, proposal, position), accept


@partial(jato.jit, static_argnums=(3, 4))
def sample(key, inputs, targets, samples, chains):
    """Positions [chains, samples, dimension] and the acceptance rate."""
    density = partial(log_density, inputs=inputs, targets=targets)

    def chain(key):
        def step(position, key):
            position, accepted = transition(position, key, density, step_size=0.03, leaps=6)
            return position, (position, accepted)

        keys = jato.random.split(key, samples + samples // 4)
        start = jnp.zeros(inputs.shape[1])
        _, (positions, accepted) = lax.scan(step, start, keys)
        return positions[-samples:], accepted.mean()

    positions, rate = jato.vmap(chain)(jato.random.split(key, chains))
    return positions, rate.mean()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--chains", type=int, default=8)
    options = parser.parse_args()

    random = np.random.default_rng(0)
    inputs = random.normal(size=(100, 3)).astype(np.float32)
    inputs[:, 1] += 0.7 * inputs[:, 0]
    targets = inputs @ np.array([1.0, -2.0, 0.5]) + NOISE * random.normal(size=100)
    positions, rate = sample(
        jato.random.key(1), inputs, targets.astype(np.float32), options.samples, options.chains
    )
    flat = np.asarray(positions).reshape(-1, 3)
    covariance = np.linalg.inv(np.eye(3) + inputs.T @ inputs / NOISE**2)
    mean = covariance @ inputs.T @ targets / NOISE**2
    deviation = np.sqrt(np.diag(covariance))
    mean_error = np.max(np.abs(flat.mean(axis=0) - mean) / deviation)
    scaled = (np.cov(flat.T) - covariance) / np.outer(deviation, deviation)
    print(f"acceptance {float(rate):.3f}")
    print(f"mean off by {mean_error:.4f} standard deviations; covariance by {np.abs(scaled).max():.4f}")


if __name__ == "__main__":
    main()
