# The inputs that the text leaves undefined; below the line stands its code, unchanged.
import jax
import jax.numpy as jnp


class model:
    """A small model: a 1x1 convolution and the mean over the picture."""

    @staticmethod
    def apply(params, image):
        return jnp.mean(jnp.tanh(image @ params["weight"] + params["bias"]), axis=(-3, -2))


# pmap maps every argument over its first axis: one copy of the parameters for each image.
params = {"weight": jnp.ones((64, 3, 4)) / 3, "bias": jnp.zeros((64, 4))}
# --------------------------------------------------------------------------------------------------
# pmap 示例：多设备并行计算
@jax.pmap
def forward_pass(params, batch):
    return model.apply(params, batch)

# 假设有 8 个设备，batch 的第一个维度会被自动切分
batch = jnp.ones((64, 256, 256, 3))  # 每个设备得到 8 张图
outputs = forward_pass(params, batch)
