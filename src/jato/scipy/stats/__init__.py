"""jato.scipy.stats: probability distributions, under the names of jax.scipy.stats.

One module for each distribution.  Functions take arrays or numbers, which broadcast; integers become
floats, and the result has the common dtype.  `loc` shifts and `scale` (positive, else NaN) widens.
Outside of the support densities are 0 and their logarithms -inf; NaN stays NaN.  Complex arguments
raise TypeError.

    order_statistics   mode, rankdata, sem      kernel_density   gaussian_kde
    arguments          what the modules share
"""

from jato.scipy.stats import (
    bernoulli as bernoulli,
    beta as beta,
    betabinom as betabinom,
    binom as binom,
    cauchy as cauchy,
    chi2 as chi2,
    dirichlet as dirichlet,
    expon as expon,
    gamma as gamma,
    gennorm as gennorm,
    geom as geom,
    gumbel_l as gumbel_l,
    gumbel_r as gumbel_r,
    laplace as laplace,
    logistic as logistic,
    multinomial as multinomial,
    multivariate_normal as multivariate_normal,
    nbinom as nbinom,
    norm as norm,
    pareto as pareto,
    poisson as poisson,
    t as t,
    truncnorm as truncnorm,
    uniform as uniform,
    vonmises as vonmises,
    wrapcauchy as wrapcauchy,
)
from jato.scipy.stats.kernel_density import gaussian_kde as gaussian_kde
from jato.scipy.stats.order_statistics import (
    mode as mode,
    rankdata as rankdata,
    sem as sem,
)
