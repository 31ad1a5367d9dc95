import jax
import jax.numpy as jnp

@jax.jit
def compute_convolution(x, kernel):
    return jnp.convolve(x, kernel, mode='same')

# 第一次调用会触发编译，后续调用直接使用缓存
x = jnp.ones((1024,))
kernel = jnp.array([0.5, 0.25, 0.125])
result = compute_convolution(x, kernel)
