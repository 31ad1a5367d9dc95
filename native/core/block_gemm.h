// Matrix products of float and double on AVX-512, for one thread.
//
// A register tile of 14 rows by 2 vectors; B packed into panels of 2 vectors that stay in the first-level
// cache; A read in place where its rows lie well, else packed.  The scheme is that of Goto and
// van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34(3), 2008.
#pragma once
#include <cstdint>

namespace jato {

// C (m x n, rows ldc apart) = A (m x k) B (k x n), or C += A B with `accumulate`.  Strides in elements.
template <class T>
struct BlockProduct {
  const T* a;
  int64_t a_row, a_column;
  const T* b;
  int64_t b_row, b_column;
  T* c;
  int64_t ldc;
  int64_t m, n, k;
  bool accumulate;
};

// False when this machine has no AVX-512: then nothing was done.
bool block_gemm(const BlockProduct<float>& product);
bool block_gemm(const BlockProduct<double>& product);

}  // namespace jato
