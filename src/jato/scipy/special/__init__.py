"""jato.scipy.special: special functions, under the names of jax.scipy.special.

error_functions   erf, ndtr, ndtri, log_ndtr      gamma_functions   gamma, beta, polygamma, ...
entropies         xlogy, entr, rel_entr, logit    bessel            i0, i1 and scaled forms
"""

from jato.nn.normalization import logsumexp as logsumexp
from jato.scipy.special.bessel import (
    i0 as i0,
    i0e as i0e,
    i1 as i1,
    i1e as i1e,
)
from jato.scipy.special.entropies import (
    boxcox as boxcox,
    boxcox1p as boxcox1p,
    entr as entr,
    expit as expit,
    kl_div as kl_div,
    log_softmax as log_softmax,
    logit as logit,
    rel_entr as rel_entr,
    softmax as softmax,
    xlog1py as xlog1py,
    xlogy as xlogy,
)
from jato.scipy.special.error_functions import (
    erf as erf,
    erfc as erfc,
    erfcinv as erfcinv,
    erfinv as erfinv,
    log_ndtr as log_ndtr,
    ndtr as ndtr,
    ndtri as ndtri,
)
from jato.scipy.special.gamma_functions import (
    beta as beta,
    betainc as betainc,
    betaln as betaln,
    comb as comb,
    digamma as digamma,
    factorial as factorial,
    gamma as gamma,
    gammainc as gammainc,
    gammaincc as gammaincc,
    gammaln as gammaln,
    gammasgn as gammasgn,
    loggamma as loggamma,
    multigammaln as multigammaln,
    poch as poch,
    polygamma as polygamma,
    zeta as zeta,
)
