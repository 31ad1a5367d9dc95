"""The primitives under the names of jax.lax (`add_p`, ...).  Names only."""

from jato.ops.arithmetic import (
    CLAMP as clamp_p,
    DIV as div_p,
    INTEGER_POW as integer_pow_p,
    MAX as max_p,
    MIN as min_p,
    MUL as mul_p,
    NEG as neg_p,
    REM as rem_p,
    SQUARE as square_p,
    SUB as sub_p,
)
from jato.ops.complex_parts import (
    ABS as abs_p,
    COMPLEX as complex_p,
    CONJ as conj_p,
    IMAG as imag_p,
    REAL as real_p,
    SIGN as sign_p,
)
from jato.ops.contract import (
    DOT_GENERAL as dot_general_p,
)
from jato.ops.convert import (
    BITCAST as bitcast_convert_type_p,
    CONVERT as convert_element_type_p,
    REDUCE_PRECISION as reduce_precision_p,
)
from jato.ops.convolution import (
    CONV as conv_general_dilated_p,
)
from jato.ops.cumulative import (
    CUMLOGSUMEXP as cumlogsumexp_p,
    CUMMAX as cummax_p,
    CUMMIN as cummin_p,
    CUMPROD as cumprod_p,
    CUMSUM as cumsum_p,
)
from jato.ops.dynamic_slices import (
    DYNAMIC_SLICE as dynamic_slice_p,
    DYNAMIC_UPDATE_SLICE as dynamic_update_slice_p,
)
from jato.ops.elementwise_family import (
    ADD as add_p,
)
from jato.ops.gather_scatter import (
    GATHER as gather_p,
    SCATTER as scatter_p,
    SCATTER_ADD as scatter_add_p,
    SCATTER_MAX as scatter_max_p,
    SCATTER_MIN as scatter_min_p,
    SCATTER_MUL as scatter_mul_p,
)
from jato.ops.pooling import (
    REDUCE_WINDOW_MAX as reduce_window_max_p,
    REDUCE_WINDOW_MIN as reduce_window_min_p,
    REDUCE_WINDOW_SUM as reduce_window_sum_p,
)
from jato.ops.fft import (
    FFT_PRIMITIVE as fft_p,
)
from jato.ops.linalg import (
    CHOLESKY as cholesky_p,
    LU_FACTOR as lu_p,
    PIVOTS_TO_PERMUTATION as lu_pivots_to_permutation_p,
    TRIANGULAR_SOLVE as triangular_solve_p,
    TRIDIAGONAL_SOLVE as tridiagonal_solve_p,
)
from jato.ops.power import (
    POW as pow_p,
)
from jato.ops.reduce import (
    ARGMAX as argmax_p,
    ARGMIN as argmin_p,
    REDUCE_AND as reduce_and_p,
    REDUCE_MAX as reduce_max_p,
    REDUCE_MIN as reduce_min_p,
    REDUCE_OR as reduce_or_p,
    REDUCE_PROD as reduce_prod_p,
    REDUCE_XOR as reduce_xor_p,
)
from jato.ops.rounding import (
    CEIL as ceil_p,
    FLOOR as floor_p,
    IS_FINITE as is_finite_p,
    NEXTAFTER as nextafter_p,
    ROUND as round_p,
)
from jato.ops.selection import (
    CLZ as clz_p,
    EQ as eq_p,
    GE as ge_p,
    GT as gt_p,
    LE as le_p,
    LT as lt_p,
    MULHI as mulhi_p,
    NE as ne_p,
    POPULATION_COUNT as population_count_p,
    SELECT_N as select_n_p,
    SHL as shift_left_p,
    SHR_ARITHMETIC as shift_right_arithmetic_p,
    SHR_LOGICAL as shift_right_logical_p,
)
from jato.ops.selection import AND as and_p, NOT as not_p, OR as or_p, XOR as xor_p
from jato.ops.shapes import (
    BARRIER as optimization_barrier_p,
    BROADCAST_IN_DIM as broadcast_in_dim_p,
    IOTA as iota_p,
    REDUCE_SUM as reduce_sum_p,
    RESHAPE as reshape_p,
    REV as rev_p,
    STOP_GRADIENT as stop_gradient_p,
    TRANSPOSE as transpose_p,
)
from jato.ops.slicing import (
    CONCATENATE as concatenate_p,
    PAD as pad_p,
    SLICE as slice_p,
)
from jato.ops.sort import (
    SORT as sort_p,
    TOP_K as top_k_p,
)
from jato.ops.special import (
    DIGAMMA as digamma_p,
    ERF as erf_p,
    ERFC as erfc_p,
    ERF_INV as erf_inv_p,
    LGAMMA as lgamma_p,
)
from jato.ops.spectral import (
    EIG as eig_p,
    EIGH as eigh_p,
    HESSENBERG as hessenberg_p,
    HOUSEHOLDER_PRODUCT as householder_product_p,
    ORMQR as ormqr_p,
    QR_FACTOR as qr_p,
    SCHUR as schur_p,
    SVD_FACTOR as svd_p,
    TRIDIAGONAL as tridiagonal_p,
)
from jato.ops.transcendental import (
    ACOS as acos_p,
    ACOSH as acosh_p,
    ASIN as asin_p,
    ASINH as asinh_p,
    ATAN as atan_p,
    ATAN2 as atan2_p,
    ATANH as atanh_p,
    CBRT as cbrt_p,
    COS as cos_p,
    COSH as cosh_p,
    EXP as exp_p,
    EXP2 as exp2_p,
    EXPM1 as expm1_p,
    LOG as log_p,
    LOG1P as log1p_p,
    LOG2 as log2_p,
    LOGISTIC as logistic_p,
    RSQRT as rsqrt_p,
    SIN as sin_p,
    SINH as sinh_p,
    SQRT as sqrt_p,
    TAN as tan_p,
    TANH as tanh_p,
)
from jato.control.cond import (
    cond_p as cond_p,
)
from jato.control.scan_primitive import (
    scan_p as scan_p,
)
from jato.control.while_loop import (
    while_p as while_p,
)
from jato.parallel.collective_primitives import (
    ALL_GATHER as all_gather_p,
    ALL_TO_ALL as all_to_all_p,
    AXIS_INDEX as axis_index_p,
    PMAX as pmax_p,
    PMIN as pmin_p,
    PPERMUTE as ppermute_p,
    PSUM as psum_p,
    PSUM_SCATTER as reduce_scatter_p,
)
