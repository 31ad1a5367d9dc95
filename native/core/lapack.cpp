// Loops for small matrices, calls of LAPACK for large ones, batches over the thread pool.
//
// A row-major matrix is its transpose to Fortran.  A Cholesky factor and triangular systems need no copy for that:
// the sides and triangles change places.  Only the LU factorization, whose pivots are rows, works on a transposed
// copy.
#include "lapack.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "matrix_batches.h"

namespace jato {
namespace {

// What LAPACK compares when it looks for a pivot.
template <class T>
auto magnitude(T x) {
  if constexpr (is_complex<T>) {
    return std::abs(x.real()) + std::abs(x.imag());
  } else {
    return std::abs(x);
  }
}

using Potrf = void (*)(const char* uplo, const int* n, void* a, const int* lda, int* info);
using Getrf = void (*)(const int* m, const int* n, void* a, const int* lda, int* pivots, int* info);
using Trsm = void (*)(const char* side, const char* uplo, const char* trans, const char* diag, const int* m,
                      const int* n, const void* alpha, const void* a, const int* lda, void* b, const int* ldb);
using Trsv = void (*)(const char* uplo, const char* trans, const char* diag, const int* n, const void* a,
                      const int* lda, void* x, const int* incx);

// ---- cholesky

// The lower factor in the lower triangle.  The work is done on the upper one, where the row of U = L^H that is ready is
// taken from the rows below it: loops along rows, which are vector code, as sums of products in order are not.
template <class T>
bool factor_cholesky(T* a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) a[j * n + i] = conjugate(a[i * n + j]);
  }
  for (int64_t k = 0; k < n; ++k) {
    T* const top = a + k * n;
    const auto pivot = std::real(top[k]);
    if (!(pivot > 0)) return false;
    const auto root = std::sqrt(pivot);
    top[k] = root;
    for (int64_t j = k + 1; j < n; ++j) top[j] /= root;
    for (int64_t i = k + 1; i < n; ++i) {
      T* const row = a + i * n;
      const T factor = conjugate(top[i]);
      for (int64_t j = i; j < n; ++j) row[j] -= product(factor, top[j]);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) a[i * n + j] = conjugate(a[j * n + i]);
  }
  return true;
}

template <class T>
void cholesky(T* out, const T* a, int64_t n, Potrf potrf) {
  std::memcpy(out, a, static_cast<size_t>(n * n) * sizeof(T));
  bool found;
  if (potrf) {
    int info = 0;
    const int size = static_cast<int>(n);
    potrf("U", &size, out, &size, &info);
    found = info == 0;
  } else {
    found = factor_cholesky(out, n);
  }
  const T nan = std::numeric_limits<decltype(std::real(T{}))>::quiet_NaN();
  for (int64_t i = 0; i < n; ++i) {
    if (!found) std::fill(out + i * n, out + i * n + i + 1, nan);
    std::fill(out + i * n + i + 1, out + (i + 1) * n, T{});
  }
}

// ---- lu

template <class T>
void factor_lu(T* a, int32_t* pivots, int64_t m, int64_t n) {
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    int64_t best = k;
    auto size = magnitude(a[k * n + k]);
    for (int64_t i = k + 1; i < m; ++i) {
      const auto here = magnitude(a[i * n + k]);
      if (here > size) {
        size = here;
        best = i;
      }
    }
    pivots[k] = static_cast<int32_t>(best);
    T* const top = a + k * n;
    if (best != k) std::swap_ranges(top, top + n, a + best * n);
    if (top[k] == T{}) continue;
    const T inverse = T(1) / top[k];
    for (int64_t i = k + 1; i < m; ++i) {
      T* const row = a + i * n;
      // LAPACK multiplies by the reciprocal too, unless it overflows
      const T factor = std::isfinite(magnitude(inverse)) ? product(row[k], inverse) : row[k] / top[k];
      row[k] = factor;
      for (int64_t j = k + 1; j < n; ++j) row[j] -= product(factor, top[j]);
    }
  }
}

template <class T>
void lu(T* out, int32_t* pivots, int32_t* permutation, const T* a, int64_t m, int64_t n, Getrf getrf) {
  if (getrf) {
    T* const columns = static_cast<T*>(thread_scratch(static_cast<size_t>(m * n) * sizeof(T)));
    transpose_into(columns, a, m, n);
    const int rows = static_cast<int>(m), width = static_cast<int>(n);
    int info = 0;
    getrf(&rows, &width, columns, &rows, pivots, &info);
    for (int64_t k = 0; k < std::min(m, n); ++k) --pivots[k];
    transpose_into(out, columns, n, m);
  } else {
    std::memcpy(out, a, static_cast<size_t>(m * n) * sizeof(T));
    factor_lu(out, pivots, m, n);
  }
  for (int64_t i = 0; i < m; ++i) permutation[i] = static_cast<int32_t>(i);
  for (int64_t k = 0; k < std::min(m, n); ++k) std::swap(permutation[k], permutation[pivots[k]]);
}

// ---- triangular systems

// op(A) X = B or X op(A) = B for an n x n matrix A and an X of rows x columns, in place of B.
template <class T>
struct Triangular {
  const T* a;
  int64_t n;
  bool left, lower;
  char operation;  // N or T
  bool unit;
};

template <class T>
void solve_by_loops(const Triangular<T>& s, T* b, int64_t rows, int64_t columns) {
  const auto element = [&](int64_t i, int64_t k) {
    return s.operation == 'N' ? s.a[i * s.n + k] : s.a[k * s.n + i];
  };
  const bool lower = s.lower == (s.operation == 'N');  // of op(A)
  if (s.left) {
    for (int64_t step = 0; step < rows; ++step) {
      const int64_t i = lower ? step : rows - 1 - step;
      T* const row = b + i * columns;
      const int64_t begin = lower ? 0 : i + 1, end = lower ? i : rows;
      if (columns == 1) {
        T sum = row[0];
        for (int64_t k = begin; k < end; ++k) sum -= product(element(i, k), b[k]);
        row[0] = s.unit ? sum : sum / element(i, i);
        continue;
      }
      for (int64_t k = begin; k < end; ++k) {
        const T factor = element(i, k);
        const T* const done = b + k * columns;
        for (int64_t j = 0; j < columns; ++j) row[j] -= product(factor, done[j]);
      }
      if (s.unit) continue;
      const T pivot = element(i, i);
      for (int64_t j = 0; j < columns; ++j) row[j] /= pivot;
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    T* const row = b + r * columns;
    for (int64_t step = 0; step < columns; ++step) {
      const int64_t j = lower ? columns - 1 - step : step;
      const int64_t begin = lower ? j + 1 : 0, end = lower ? columns : j;
      T sum = row[j];
      for (int64_t k = begin; k < end; ++k) sum -= product(row[k], element(k, j));
      row[j] = s.unit ? sum : sum / element(j, j);
    }
  }
}

template <class T>
void solve_triangular(const Triangular<T>& s, T* b, int64_t rows, int64_t columns, Trsm trsm, Trsv trsv) {
  if (!trsm) return solve_by_loops(s, b, rows, columns);
  const char* const triangle = s.lower ? "U" : "L";
  const char* const diagonal = s.unit ? "U" : "N";
  const int size = static_cast<int>(s.n);
  if (s.left && columns == 1) {
    const int one = 1;
    trsv(triangle, s.operation == 'N' ? "T" : "N", diagonal, &size, s.a, &size, b, &one);
    return;
  }
  const T one = 1;
  const int m = static_cast<int>(columns), n = static_cast<int>(rows);
  trsm(s.left ? "R" : "L", triangle, &s.operation, diagonal, &m, &n, &one, s.a, &size, b, &m);
}

template <class T>
void swap_rows(T* b, const int32_t* pivots, int64_t n, int64_t columns, bool backwards) {
  for (int64_t step = 0; step < n; ++step) {
    const int64_t k = backwards ? n - 1 - step : step;
    if (pivots[k] != k) std::swap_ranges(b + k * columns, b + (k + 1) * columns, b + pivots[k] * columns);
  }
}

template <class T>
void conjugate_all(T* x, int64_t count) {
  if constexpr (is_complex<T>) {
    for (int64_t i = 0; i < count; ++i) x[i] = std::conj(x[i]);
  }
}

bool is_small(int64_t n, int64_t columns) { return n <= kSmall && n * columns <= kSmall * kSmall; }

}  // namespace

void run_cholesky(void* const* buffers, const int64_t* params, Context& context) {
  with_type(params[0], [&](auto zero) {
    using T = decltype(zero);
    const int64_t batch = params[1], n = params[2];
    const auto potrf = n > kSmall ? routine<T, Potrf>("potrf") : nullptr;
    const double work = static_cast<double>(n * n) * static_cast<double>(n) / 6;
    for_each_matrix(batch, work, potrf, context.cancel, [&](int64_t i) {
      cholesky(static_cast<T*>(buffers[1]) + i * n * n, static_cast<const T*>(buffers[0]) + i * n * n, n, potrf);
    });
  });
}

void check_cholesky(const int64_t* params) { check_sizes("cholesky", params, 1); }

void run_lu(void* const* buffers, const int64_t* params, Context& context) {
  with_type(params[0], [&](auto zero) {
    using T = decltype(zero);
    const int64_t batch = params[1], m = params[2], n = params[3], k = std::min(m, n);
    const auto getrf = is_small(m, n) && k <= kSmall ? nullptr : routine<T, Getrf>("getrf");
    const double work = static_cast<double>(m * n) * static_cast<double>(k) / 3;
    for_each_matrix(batch, work, k > 0 && getrf, context.cancel, [&](int64_t i) {
      lu(static_cast<T*>(buffers[1]) + i * m * n, static_cast<int32_t*>(buffers[2]) + i * k,
         static_cast<int32_t*>(buffers[3]) + i * m, static_cast<const T*>(buffers[0]) + i * m * n, m, n,
         k > 0 ? getrf : nullptr);
    });
  });
}

void check_lu(const int64_t* params) { check_sizes("lu", params, 2); }

void run_lu_solve(void* const* buffers, const int64_t* params, Context& context) {
  with_type(params[0], [&](auto zero) {
    using T = decltype(zero);
    const int64_t batch = params[1], n = params[2], columns = params[3], operation = params[4];
    if (n * columns == 0) return;
    const bool small = is_small(n, columns);
    const auto trsm = small ? nullptr : routine<T, Trsm>("trsm");
    const auto trsv = small ? nullptr : routine<T, Trsv>("trsv");
    // conj(A)^T X = B  is  A^T conj(X) = conj(B): trsv knows no conjugation without a transpose
    const bool conjugated = operation == 2 && is_complex<T>;
    for_each_matrix(batch, static_cast<double>(n * n * columns), trsm, context.cancel, [&](int64_t i) {
      const T* const factors = static_cast<const T*>(buffers[1]) + i * n * n;
      const int32_t* const pivots = static_cast<const int32_t*>(buffers[2]) + i * n;
      T* const x = static_cast<T*>(buffers[4]) + i * n * columns;
      std::memcpy(x, static_cast<const T*>(buffers[3]) + i * n * columns,
                  static_cast<size_t>(n * columns) * sizeof(T));
      const auto solve = [&](bool lower, char op) {
        solve_triangular<T>({factors, n, true, lower, op, lower}, x, n, columns, trsm, trsv);
      };
      if (operation == 0) {
        swap_rows(x, pivots, n, columns, false);
        solve(true, 'N');
        solve(false, 'N');
        return;
      }
      if (conjugated) conjugate_all(x, n * columns);
      solve(false, 'T');
      solve(true, 'T');
      swap_rows(x, pivots, n, columns, true);
      if (conjugated) conjugate_all(x, n * columns);
    });
  });
}

void check_lu_solve(const int64_t* params) {
  check_sizes("lu_solve", params, 2);
  check_range("lu_solve", "an operation", params[4], 0, 2);
}

void run_triangular_solve(void* const* buffers, const int64_t* params, Context& context) {
  with_type(params[0], [&](auto zero) {
    using T = decltype(zero);
    const int64_t batch = params[1], rows = params[2], columns = params[3];
    const bool left = params[4] != 0, transpose = params[6] != 0, conjugated = is_complex<T> && params[7] != 0;
    const int64_t n = left ? rows : columns, size = rows * columns;
    if (size == 0) return;
    const bool small = is_small(n, left ? columns : rows);
    const auto trsm = small ? nullptr : routine<T, Trsm>("trsm");
    const auto trsv = small ? nullptr : routine<T, Trsv>("trsv");
    for_each_matrix(batch, static_cast<double>(size * n) / 2, trsm, context.cancel, [&](int64_t i) {
      const T* const a = static_cast<const T*>(buffers[0]) + i * n * n;
      T* const x = static_cast<T*>(buffers[2]) + i * size;
      std::memcpy(x, static_cast<const T*>(buffers[1]) + i * size, static_cast<size_t>(size) * sizeof(T));
      // conj(A) X = B  is  A conj(X) = conj(B)
      if (conjugated) conjugate_all(x, size);
      solve_triangular<T>({a, n, left, params[5] != 0, transpose ? 'T' : 'N', params[8] != 0}, x, rows, columns,
                          trsm, trsv);
      if (conjugated) conjugate_all(x, size);
    });
  });
}

void check_triangular_solve(const int64_t* params) { check_sizes("triangular_solve", params, 2); }

}  // namespace jato
