"""A Kalman filter that tracks a moving point as a scan; its noise is learned by `grad`.

    python examples/kalman_filter.py [--steps 500]
"""

import argparse

import jato
import jato.numpy as jnp
import numpy as np
from jato import lax

DT = 0.1
MOTION = np.kron([[1, DT], [0, 1]], np.eye(2)).astype(np.float32)  # place, place, speed, speed
LOOK = np.eye(2, 4, dtype=np.float32)


def kalman_filter(measured, process_noise, measurement_noise):
    """Means [time, 4], covariances [time, 4, 4] and the log likelihood of measured [time, 2]."""
    noise = process_noise * jnp.eye(4)
    spread = measurement_noise * jnp.eye(2)

    def step(state, z):
        mean, covariance = state
        mean = MOTION @ mean
        covariance = MOTION @ covariance @ MOTION.T + noise
        surprise = z - LOOK @ mean
        total = LOOK @ covariance @ LOOK.T + spread
        inverse = jnp.linalg.inv(total)
        gain = covariance @ LOOK.T @ inverse
        mean = mean + gain @ surprise
        covariance = covariance - gain @ LOOK @ covariance
        log_density = -0.5 * (surprise @ inverse @ surprise) - 0.5 * jnp.log(
            (2 * jnp.pi) ** 2 * jnp.linalg.det(total)
        )
        return (mean, covariance), (mean, covariance, log_density)

    start = (jnp.zeros(4), jnp.eye(4))
    _, (means, covariances, log_densities) = lax.scan(step, start, measured)
    return means, covariances, jnp.sum(log_densities)


@jato.jit
def improve(logs, measured):
    """One step of gradient ascent on the log of both noises; the log likelihood before it."""

    def objective(logs):
        return kalman_filter(measured, *jnp.exp(logs))[2] / len(measured)

    value, slope = jato.value_and_grad(objective)(logs)
    return logs + 0.5 * slope, value


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_args()

    random = np.random.default_rng(0)
    state, truth = np.array([0.0, 0.0, 1.0, 0.5]), []
    for _ in range(options.steps):
        state = MOTION @ state + np.sqrt(1e-3) * random.normal(size=4)
        truth.append(state[:2])
    truth = np.array(truth)
    measured = (truth + 0.5 * random.normal(size=truth.shape)).astype(np.float32)

    means, _, likelihood = jato.jit(kalman_filter)(measured, 1e-3, 0.25)
    reference = filter_numpy(measured, 1e-3, 0.25)
    raw = np.sqrt(np.mean((measured - truth) ** 2))
    error = np.sqrt(np.mean((np.asarray(means)[:, :2] - truth) ** 2))
    print(f"error {error:.4f}; of the measurements {raw:.4f}")
    print(f"largest difference to NumPy {np.max(np.abs(means - reference)):.2e}")
    logs = jnp.log(jnp.array([1e-2, 1.0]))
    for _ in range(100):
        logs, value = improve(logs, measured)
    learned = np.exp(logs)
    print(f"learned measurement noise {learned[1]:.4f} (true 0.25); log likelihood per step {value:.4f}"
          f", at the true noise {float(likelihood) / options.steps:.4f}")  # fmt: skip


def filter_numpy(measured, process_noise, measurement_noise):
    """The same filter as a loop in NumPy and double precision."""
    mean, covariance, means = np.zeros(4), np.eye(4), []
    motion, look = MOTION.astype(float), LOOK.astype(float)
    for z in measured.astype(float):
        mean = motion @ mean
        covariance = motion @ covariance @ motion.T + process_noise * np.eye(4)
        total = look @ covariance @ look.T + measurement_noise * np.eye(2)
        gain = covariance @ look.T @ np.linalg.inv(total)
        mean = mean + gain @ (z - look @ mean)
        covariance = covariance - gain @ look @ covariance
        means.append(mean)
    return np.array(means)


if __name__ == "__main__":
    main()
