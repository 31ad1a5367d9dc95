"""jato.scipy.linalg: linear algebra under the names of jax.scipy.linalg.

solves             factors of Cholesky and LU, solve, inv, det
decompositions     qr, svd, eigh, schur, hessenberg, polar
matrix_functions   expm, sqrtm, funm, solve_sylvester
special_matrices   toeplitz, block_diag, hilbert, pascal, ...
"""

from jato.scipy.linalg.decompositions import (
    eigh as eigh,
    eigh_tridiagonal as eigh_tridiagonal,
    hessenberg as hessenberg,
    polar as polar,
    qr as qr,
    qr_multiply as qr_multiply,
    rsf2csf as rsf2csf,
    schur as schur,
    svd as svd,
)
from jato.scipy.linalg.matrix_functions import (
    expm as expm,
    expm_frechet as expm_frechet,
    funm as funm,
    solve_sylvester as solve_sylvester,
    sqrtm as sqrtm,
)
from jato.scipy.linalg.solves import (
    cho_factor as cho_factor,
    cho_solve as cho_solve,
    cholesky as cholesky,
    det as det,
    inv as inv,
    lu as lu,
    lu_factor as lu_factor,
    lu_solve as lu_solve,
    solve as solve,
    solve_triangular as solve_triangular,
)
from jato.scipy.linalg.special_matrices import (
    block_diag as block_diag,
    circulant as circulant,
    companion as companion,
    convolution_matrix as convolution_matrix,
    dft as dft,
    fiedler as fiedler,
    fiedler_companion as fiedler_companion,
    hadamard as hadamard,
    hankel as hankel,
    helmert as helmert,
    hilbert as hilbert,
    invhilbert as invhilbert,
    invpascal as invpascal,
    leslie as leslie,
    pascal as pascal,
    toeplitz as toeplitz,
)
