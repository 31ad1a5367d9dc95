"""jato.experimental: what JAX keeps under jax.experimental."""

from jato.base.config import enable_x64 as enable_x64
from jato.ops.callback import io_callback as io_callback

__all__ = ["enable_x64", "io_callback"]
