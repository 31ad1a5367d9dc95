# The inputs that the text leaves undefined; below the line stands its code, unchanged.
import jax

image_256 = jax.random.uniform(jax.random.PRNGKey(1), (256, 256))
image_512 = jax.random.uniform(jax.random.PRNGKey(2), (512, 512))
# --------------------------------------------------------------------------------------------------
from functools import partial

@partial(jax.jit, static_argnums=(1,))  # 第二个参数是静态的
def resize_image(image, target_size):
    # 假设 target_size 是 (H, W)，不会变
    return jax.image.resize(image, target_size, method='bilinear')

# 调用时，target_size 变化不会触发重新编译
img1 = resize_image(image_256, (128, 128))
img2 = resize_image(image_512, (128, 128))  # 不会重新编译
