// Orthogonal factorizations and spectra of batches of dense row-major matrices, by LAPACK.
//
//   qr               a -> q, r                    params: dtype, batch, m, n, full
//   qr_r             a -> r                       the same
//   geqrf            a -> factors, taus           params: dtype, batch, m, n
//   householder      a, taus -> q                 params: dtype, batch, m, n, number of taus
//   svd              a -> s, u, v adjoint         params: dtype, batch, m, n, full
//   singular_values  a -> s                       params: dtype, batch, m, n
//   eigh             a -> vectors, values         params: dtype, batch, n
//   eigvalsh         a -> values                  the same
//   eigenvalues      a -> values                  params: dtype, batch, n
//   eig_left, eig_right   a -> values, vectors    the same
//   eig              a -> values, left, right     the same
//
// An iteration that does not converge, and a matrix with a NaN or an infinity where it would be iterated on, give NaN for that matrix.
// LAPACK sees transposed copies and so makes the choices (signs, phases) that everybody's LAPACK makes.
#pragma once
#include <cstdint>

#include "library.h"

namespace jato {

void run_qr(void* const* buffers, const int64_t* params, Context& context);
void run_qr_r(void* const* buffers, const int64_t* params, Context& context);
void run_geqrf(void* const* buffers, const int64_t* params, Context& context);
void run_householder(void* const* buffers, const int64_t* params, Context& context);
void run_svd(void* const* buffers, const int64_t* params, Context& context);
void run_singular_values(void* const* buffers, const int64_t* params, Context& context);
void run_eigh(void* const* buffers, const int64_t* params, Context& context);
void run_eigvalsh(void* const* buffers, const int64_t* params, Context& context);
void run_eigenvalues(void* const* buffers, const int64_t* params, Context& context);
void run_eig_left(void* const* buffers, const int64_t* params, Context& context);
void run_eig_right(void* const* buffers, const int64_t* params, Context& context);
void run_eig(void* const* buffers, const int64_t* params, Context& context);

void check_matrices(const int64_t* params);  // dtype, batch, m, n
void check_square(const int64_t* params);    // dtype, batch, n

}  // namespace jato
