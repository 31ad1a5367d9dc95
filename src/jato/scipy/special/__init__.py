"""jato.scipy.special: special functions, under the names of jax.scipy.special.

error_functions   erf, ndtr, ndtri, log_ndtr       gamma_functions         gamma, beta, polygamma, ...
entropies         xlogy, entr, rel_entr, logit     bessel                  i0, i1, scaled; bessel_jn
faddeeva          wofz, dawsn, erfcx               exponential_integrals   exp1, expi, expn
normal_integrals  owens_t                          trigonometric_integrals sici, fresnel
hypergeometric    hyp1f1, hyp2f1                   spherical_harmonics     sph_harm_y
dilogarithm       spence                           bernoulli_numbers       bernoulli
series            what these share
"""

from jato.nn.normalization import logsumexp as logsumexp
from jato.scipy.special.bernoulli_numbers import bernoulli as bernoulli
from jato.scipy.special.bessel import (
    bessel_jn as bessel_jn,
    i0 as i0,
    i0e as i0e,
    i1 as i1,
    i1e as i1e,
)
from jato.scipy.special.dilogarithm import spence as spence
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
from jato.scipy.special.exponential_integrals import (
    exp1 as exp1,
    expi as expi,
    expn as expn,
)
from jato.scipy.special.faddeeva import (
    dawsn as dawsn,
    erfcx as erfcx,
    wofz as wofz,
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
from jato.scipy.special.hypergeometric import (
    hyp1f1 as hyp1f1,
    hyp2f1 as hyp2f1,
)
from jato.scipy.special.normal_integrals import owens_t as owens_t
from jato.scipy.special.spherical_harmonics import sph_harm_y as sph_harm_y
from jato.scipy.special.trigonometric_integrals import (
    fresnel as fresnel,
    sici as sici,
)
