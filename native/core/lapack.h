// Linear systems as library routines, for batches of row-major matrices.
//
//   cholesky          a -> lower factor            params: dtype, batch, n
//   lu                a -> factors, pivots (int32, from 0), permutation (int32)   params: dtype, batch, m, n
//   lu_solve          a (not read), factors, pivots, b -> x       params: dtype, batch, n, columns, operation
//   triangular_solve  a, b -> x    params: dtype, batch, rows and columns of b, left, lower, transpose, conjugate, unit
//
// Small matrices are worked on by loops here, large ones by LAPACK (spotrf ..., set from outside like BLAS); without
// one, the loops do all.  Several matrices are spread over the threads, a single large one is left to LAPACK's own.
// A factorization that does not exist gives NaN.
#pragma once
#include <cstdint>

#include "library.h"

namespace jato {

void run_cholesky(void* const* buffers, const int64_t* params, Context& context);
void run_lu(void* const* buffers, const int64_t* params, Context& context);
void run_lu_solve(void* const* buffers, const int64_t* params, Context& context);
void run_triangular_solve(void* const* buffers, const int64_t* params, Context& context);

void check_cholesky(const int64_t* params);
void check_lu(const int64_t* params);
void check_lu_solve(const int64_t* params);
void check_triangular_solve(const int64_t* params);

}  // namespace jato
