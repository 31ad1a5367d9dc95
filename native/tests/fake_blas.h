// A naive BLAS with the Fortran interface, for tests: column-major loops, and a thread-count switch that
// records what it was told.
#pragma once
#include <atomic>
#include <complex>
#include <type_traits>

namespace jato::test {

inline std::atomic<int> blas_calls{0};
inline std::atomic<int> blas_threads{8};
inline std::atomic<bool> blas_misused{false};  // a call that BLAS would refuse

template <class T>
T blas_conjugate(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return value;
  } else {
    return std::conj(value);
  }
}

template <class T>
void fake_gemm(const char* ta, const char* tb, const int* m, const int* n, const int* k, const void* alpha_p,
               const void* a_p, const int* lda, const void* b_p, const int* ldb, const void* beta_p,
               void* c_p, const int* ldc) {
  ++blas_calls;
  const T* a = static_cast<const T*>(a_p);
  const T* b = static_cast<const T*>(b_p);
  T* c = static_cast<T*>(c_p);
  const T alpha = *static_cast<const T*>(alpha_p), beta = *static_cast<const T*>(beta_p);
  if (*lda < std::max(1, *ta == 'N' ? *m : *k) || *ldb < std::max(1, *tb == 'N' ? *k : *n) ||
      *ldc < std::max(1, *m)) {
    blas_misused = true;
  }
  const auto element = [](const T* x, char t, int64_t ld, int64_t i, int64_t j) {
    if (t == 'N') return x[i + j * ld];
    return t == 'T' ? x[j + i * ld] : blas_conjugate(x[j + i * ld]);
  };
  for (int j = 0; j < *n; ++j) {
    for (int i = 0; i < *m; ++i) {
      T sum{};
      for (int l = 0; l < *k; ++l) sum += element(a, *ta, *lda, i, l) * element(b, *tb, *ldb, l, j);
      T& target = c[i + static_cast<int64_t>(j) * *ldc];
      target = alpha * sum + (beta == T{} ? T{} : beta * target);
    }
  }
}

template <class T>
void fake_gemv(const char* t, const int* m, const int* n, const void* alpha_p, const void* a_p,
               const int* lda, const void* x_p, const int* incx, const void* beta_p, void* y_p,
               const int* incy) {
  ++blas_calls;
  const T* a = static_cast<const T*>(a_p);
  const T* x = static_cast<const T*>(x_p);
  T* y = static_cast<T*>(y_p);
  const T alpha = *static_cast<const T*>(alpha_p), beta = *static_cast<const T*>(beta_p);
  if (*lda < std::max(1, *m) || *incx == 0 || *incy == 0) blas_misused = true;
  const int rows = *t == 'N' ? *m : *n, columns = *t == 'N' ? *n : *m;
  for (int64_t i = 0; i < rows; ++i) {
    T sum{};
    for (int64_t j = 0; j < columns; ++j) sum += a[*t == 'N' ? i + j * *lda : j + i * *lda] * x[j * *incx];
    T& target = y[i * *incy];
    target = alpha * sum + (beta == T{} ? T{} : beta * target);
  }
}

inline int fake_set_num_threads(int n) { return blas_threads.exchange(n); }

}  // namespace jato::test
