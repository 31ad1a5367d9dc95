"""jato.image: resizing and resampling, under the names of jax.image."""

from jato.image.methods import ResizeMethod as ResizeMethod
from jato.image.resizing import resize as resize
from jato.image.resampling import scale_and_translate as scale_and_translate
