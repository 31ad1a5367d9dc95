"""jato.scipy.stats: probability distributions, under the names of jax.scipy.stats."""

from jato.scipy.stats import norm as norm
