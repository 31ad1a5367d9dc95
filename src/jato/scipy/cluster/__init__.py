"""jato.scipy.cluster: vector quantization."""

from jato.scipy.cluster import vq as vq
