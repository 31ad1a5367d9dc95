"""jato.debug: looking at values while a compiled function runs, under the names of jax.debug."""

from jato.ops.callback import debug_callback as callback
from jato.ops.callback import debug_print as print

__all__ = ["callback", "print"]
