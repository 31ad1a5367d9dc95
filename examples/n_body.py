"""Stars under each other's gravity: a leapfrog integrator as one compiled scan; energy is kept.

    python examples/n_body.py [--bodies 64] [--steps 2000]
"""

import argparse
from functools import partial

import jato
import jato.numpy as jnp
from jato import lax

SOFTENING = 0.1


def potential(positions, masses):
    """Energy of all pairs."""
    apart = positions[:, None] - positions[None]
    distance = jnp.sqrt(jnp.sum(apart**2, axis=-1) + SOFTENING**2)
    pairs = masses[:, None] * masses[None] / distance
    return -0.5 * (jnp.sum(pairs) - jnp.sum(masses**2) / SOFTENING)


def energy(positions, velocities, masses):
    kinetic = 0.5 * jnp.sum(masses * jnp.sum(velocities**2, axis=-1))
    return kinetic + potential(positions, masses)


def acceleration(positions, masses):
    """Minus the slope of the potential."""
    return -jato.grad(potential)(positions, masses) / masses[:, None]


@partial(jato.jit, static_argnums=3)
def simulate(positions, velocities, masses, steps, dt):
    """(positions, velocities, energy every step) after `steps` of kick, drift, kick."""

    def step(state, _):
        x, v, a = state
        v = v + 0.5 * dt * a
        x = x + dt * v
        a = acceleration(x, masses)
        v = v + 0.5 * dt * a
        return (x, v, a), energy(x, v, masses)

    start = (positions, velocities, acceleration(positions, masses))
    (positions, velocities, _), energies = lax.scan(step, start, length=steps)
    return positions, velocities, energies


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bodies", type=int, default=64)
    parser.add_argument("--steps", type=int, default=2000)
    options = parser.parse_args()

    keys = jato.random.split(jato.random.key(0), 3)
    positions = jato.random.normal(keys[0], (options.bodies, 3))
    velocities = 0.4 * jato.random.normal(keys[1], (options.bodies, 3))
    masses = jato.random.uniform(keys[2], (options.bodies,), minval=0.5, maxval=1.5)
    masses = masses / masses.sum()
    velocities = velocities - jnp.sum(masses[:, None] * velocities, axis=0)
    first = energy(positions, velocities, masses)
    _, velocities, energies = simulate(positions, velocities, masses, options.steps, 1e-3)
    drift = jnp.max(jnp.abs(energies - first)) / jnp.abs(first)
    momentum = jnp.max(jnp.abs(jnp.sum(masses[:, None] * velocities, axis=0)))
    print(f"energy {float(first):.5f}; drift {float(drift):.2e}; momentum {float(momentum):.2e}")


if __name__ == "__main__":
    main()
