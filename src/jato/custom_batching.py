"""jato.custom_batching: functions with a vectorized form of the user's making."""

from jato.control.custom_batching import custom_vmap as custom_vmap
from jato.control.custom_batching import sequential_vmap as sequential_vmap
