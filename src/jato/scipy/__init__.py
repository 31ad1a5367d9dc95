"""jato.scipy: special functions, distributions, linear algebra, signals and more, under SciPy's names."""

from jato.scipy import cluster as cluster
from jato.scipy import fft as fft
from jato.scipy import integrate as integrate
from jato.scipy import interpolate as interpolate
from jato.scipy import linalg as linalg
from jato.scipy import ndimage as ndimage
from jato.scipy import optimize as optimize
from jato.scipy import signal as signal
from jato.scipy import sparse as sparse
from jato.scipy import spatial as spatial
from jato.scipy import special as special
from jato.scipy import stats as stats
