"""jato.numpy.linalg: linear algebra under NumPy's names.

    factorizations    cholesky, qr, svd, eigh, eig        systems    solve, inv, det, lstsq, pinv
    norms             norm, cond                          matrix_products    multi_dot, matrix_power

Matrices are the last two axes; leading axes are batches.  A factorization that does not exist
gives NaN, no error.  Names only; each is defined in one of these files.
"""

from jato.numpy.factorizations import (
    EighResult as EighResult,
    EigResult as EigResult,
    QRResult as QRResult,
    SVDResult as SVDResult,
    cholesky as cholesky,
    eig as eig,
    eigh as eigh,
    eigvals as eigvals,
    eigvalsh as eigvalsh,
    qr as qr,
    svd as svd,
    svdvals as svdvals,
)
from jato.numpy.manipulation import matrix_transpose as matrix_transpose
from jato.numpy.matrix_products import (
    cross as cross,
    diagonal as diagonal,
    matmul as matmul,
    matrix_power as matrix_power,
    multi_dot as multi_dot,
    outer as outer,
    tensordot as tensordot,
    trace as trace,
    vecdot as vecdot,
)
from jato.numpy.norms import (
    cond as cond,
    matrix_norm as matrix_norm,
    norm as norm,
    vector_norm as vector_norm,
)
from jato.numpy.systems import (
    SlogdetResult as SlogdetResult,
    det as det,
    inv as inv,
    lstsq as lstsq,
    matrix_rank as matrix_rank,
    pinv as pinv,
    slogdet as slogdet,
    solve as solve,
    tensorinv as tensorinv,
    tensorsolve as tensorsolve,
)
