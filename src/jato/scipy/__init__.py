"""jato.scipy: special functions, distributions, linear algebra and signals, under SciPy's names."""

from jato.scipy import fft as fft
from jato.scipy import integrate as integrate
from jato.scipy import linalg as linalg
from jato.scipy import signal as signal
from jato.scipy import special as special
from jato.scipy import stats as stats
