"""jato.random: keys and distributions, under the names of jax.random.

    keys          PRNGKey, key, split, fold_in        uniforms     bits, uniform, randint, bernoulli
    continuous    normal, exponential, gumbel, ...    gammas       gamma, beta, dirichlet, t, ...
    discrete      categorical, poisson, binomial      shuffling    permutation, choice
    multivariate  multivariate_normal, orthogonal

The bits, and so the samples, equal JAX's for the same key (its default, partitionable Threefry).
"""

from jato.random.continuous import (
    cauchy as cauchy,
    double_sided_maxwell as double_sided_maxwell,
    exponential as exponential,
    gumbel as gumbel,
    laplace as laplace,
    logistic as logistic,
    lognormal as lognormal,
    maxwell as maxwell,
    normal as normal,
    pareto as pareto,
    rayleigh as rayleigh,
    triangular as triangular,
    truncated_normal as truncated_normal,
    wald as wald,
    weibull_min as weibull_min,
)
from jato.random.discrete import (
    binomial as binomial,
    categorical as categorical,
    geometric as geometric,
    multinomial as multinomial,
    poisson as poisson,
)
from jato.random.gammas import (
    ball as ball,
    beta as beta,
    chisquare as chisquare,
    dirichlet as dirichlet,
    f as f,
    gamma as gamma,
    generalized_normal as generalized_normal,
    loggamma as loggamma,
    t as t,
)
from jato.random.keys import (
    PRNGKey as PRNGKey,
    clone as clone,
    fold_in as fold_in,
    key as key,
    key_data as key_data,
    key_dtype as key_dtype,
    key_impl as key_impl,
    split as split,
    wrap_key_data as wrap_key_data,
)
from jato.random.multivariate import multivariate_normal as multivariate_normal
from jato.random.multivariate import orthogonal as orthogonal
from jato.random.shuffling import choice as choice
from jato.random.shuffling import permutation as permutation
from jato.random.uniforms import (
    bernoulli as bernoulli,
    bits as bits,
    rademacher as rademacher,
    randint as randint,
    uniform as uniform,
)
