"""A Gaussian blur as a stencil, written with `import jax`: `python -m jato run examples/blur.py`.

Run by plain Python it uses jax; run by jato it uses jato.  The 25 shifted reads become one loop.
"""

import time

import jax
import jax.numpy as jnp


def gaussian_blur(image, kernel):
    """[height, width] blurred with a small square kernel; the edges repeat."""
    size = kernel.shape[0]
    padded = jnp.pad(image, size // 2, mode="edge")
    height, width = image.shape
    return sum(
        kernel[i, j] * padded[i : i + height, j : j + width]
        for i in range(size)
        for j in range(size)
    )


if __name__ == "__main__":
    line = jnp.exp(-((jnp.arange(5.0) - 2) ** 2) / 3)
    kernel = jnp.outer(line, line) / jnp.sum(line) ** 2
    image = jax.random.uniform(jax.random.PRNGKey(0), (1024, 1024))
    jitted = jax.jit(gaussian_blur)

    for name, function in [("eager", gaussian_blur), ("jit", jitted)]:
        function(image, kernel).block_until_ready()
        start = time.perf_counter()
        for _ in range(20):
            result = function(image, kernel).block_until_ready()
        print(f"{name:6}{(time.perf_counter() - start) / 20 * 1e3:8.2f} ms, mean {result.mean():.4f}")
