import jax
import jax.numpy as jnp
import time

# 一个包含一些数值计算的函数
def complex_computation(x, weight, bias):
  y = jnp.dot(x, weight) + bias
  z = jnp.tanh(y)
  return jnp.mean(z)

# 生成一些随机数据
key = jax.random.PRNGKey(0)
x_data = jax.random.normal(key, (1000, 500))
weight_data = jax.random.normal(key, (500, 200))
bias_data = jax.random.normal(key, (200,))

# --- 方法一：将 jit 作为装饰器使用 ---
@jax.jit
def compiled_computation_decorator(x, weight, bias):
  y = jnp.dot(x, weight) + bias
  z = jnp.tanh(y)
  return jnp.mean(z)

# --- 方法二：将 jit 作为函数使用 ---
compiled_computation_functional = jax.jit(complex_computation)

# --- 测量执行时间 ---

# 测量原始 Python 函数的时间
# 运行一次以避免与 JAX 无关的初始开销
_ = complex_computation(x_data, weight_data, bias_data).block_until_ready()

start_time = time.time()
result_original = complex_computation(x_data, weight_data, bias_data).block_until_ready()
end_time = time.time()
print(f"原始函数时间: {end_time - start_time:.6f} seconds")

# 测量 JIT 编译函数的时间（装饰器版本）
# 首次调用包含编译时间
start_time_compile = time.time()
result_compiled_decorator = compiled_computation_decorator(x_data, weight_data, bias_data).block_until_ready()
end_time_compile = time.time()
print(f"编译函数（装饰器）首次调用（含编译）: {end_time_compile - start_time_compile:.6f} seconds")

# 第二次调用使用缓存的编译代码
start_time_cached = time.time()
result_compiled_decorator_cached = compiled_computation_decorator(x_data, weight_data, bias_data).block_until_ready()
end_time_cached = time.time()
print(f"编译函数（装饰器）第二次调用（已缓存）: {end_time_cached - start_time_cached:.6f} seconds")

# 验证结果是否相同（在浮点容差范围内）
print(f"结果匹配: {jnp.allclose(result_original, result_compiled_decorator)}")

# 测量函数式版本的时间（首次编译后应相似）
_ = compiled_computation_functional(x_data, weight_data, bias_data).block_until_ready() # 编译
start_time_func = time.time()
result_compiled_functional = compiled_computation_functional(x_data, weight_data, bias_data).block_until_ready()
end_time_func = time.time()
print(f"编译函数（函数式）后续调用: {end_time_func - start_time_func:.6f} seconds")
