"""jato.scipy.signal: convolution, correlation, spectra, under the names of jax.scipy.signal.

convolution   convolve, correlate, fftconvolve      spectra   stft, istft, csd, welch
trends        detrend
"""

from jato.scipy.signal.convolution import (
    convolve as convolve,
    convolve2d as convolve2d,
    correlate as correlate,
    correlate2d as correlate2d,
    fftconvolve as fftconvolve,
)
from jato.scipy.signal.spectra import (
    csd as csd,
    istft as istft,
    stft as stft,
    welch as welch,
)
from jato.scipy.signal.trends import detrend as detrend
