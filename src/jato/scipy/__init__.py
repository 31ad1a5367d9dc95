"""jato.scipy: special functions, distributions and signal processing, under SciPy's names."""

from jato.scipy import signal as signal
from jato.scipy import special as special
from jato.scipy import stats as stats
