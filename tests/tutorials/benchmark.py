# The inputs that the text leaves undefined; below the line stands its code, unchanged.
import jax
import jax.numpy as jnp

image = jax.random.uniform(jax.random.PRNGKey(0), (1024, 1024))
kernel = jnp.outer(jnp.array([1.0, 4, 6, 4, 1]), jnp.array([1.0, 4, 6, 4, 1])) / 256
# --------------------------------------------------------------------------------------------------
import time
import jax.numpy as jnp
from jax import jit, pmap

def gaussian_blur(image, kernel):
    return jnp.convolve(image.flatten(), kernel.flatten(), mode='same').reshape(image.shape)

# Eager 模式
start = time.time()
for _ in range(100):
    result_eager = gaussian_blur(image, kernel)
eager_time = time.time() - start

# JIT 模式
gaussian_blur_jit = jit(gaussian_blur)
# 先热身一次
_ = gaussian_blur_jit(image, kernel)
start = time.time()
for _ in range(100):
    result_jit = gaussian_blur_jit(image, kernel)
jit_time = time.time() - start

print(f"Eager: {eager_time:.3f}s, JIT: {jit_time:.3f}s")
print(f"加速比: {eager_time / jit_time:.1f}x")
