// Calls of LAPACK's orthogonal and iterative routines; start at the run_ functions.
//
// Small QR factorizations are loops.  Otherwise a matrix is transposed into scratch memory, worked on by one thread there, and its results are transposed out.
// The copies cost n^2 of n^3.  LAPACK's own threads are left out below kThreadedWork (matrix_batches.h): for 128 x
// 128 they made eigh 2 to 10 times slower and svd 1.4 times, because every short product inside waits for them.
#include "spectra.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>

#include "matrix_batches.h"

namespace jato {
namespace {

template <class T>
using Real = decltype(std::real(T{}));

using Geqrf = void (*)(const int* m, const int* n, void* a, const int* lda, void* tau, void* work, const int* lwork,
                       int* info);
using Orgqr = void (*)(const int* m, const int* n, const int* k, void* a, const int* lda, const void* tau, void* work,
                       const int* lwork, int* info);
using RealGesdd = void (*)(const char* job, const int* m, const int* n, void* a, const int* lda, void* s, void* u,
                           const int* ldu, void* vt, const int* ldvt, void* work, const int* lwork, int* iwork,
                           int* info);
using ComplexGesdd = void (*)(const char* job, const int* m, const int* n, void* a, const int* lda, void* s, void* u,
                              const int* ldu, void* vt, const int* ldvt, void* work, const int* lwork, void* rwork,
                              int* iwork, int* info);
using Syevd = void (*)(const char* job, const char* uplo, const int* n, void* a, const int* lda, void* w, void* work,
                       const int* lwork, int* iwork, const int* liwork, int* info);
using Heevd = void (*)(const char* job, const char* uplo, const int* n, void* a, const int* lda, void* w, void* work,
                       const int* lwork, void* rwork, const int* lrwork, int* iwork, const int* liwork, int* info);
using RealGeev = void (*)(const char* left, const char* right, const int* n, void* a, const int* lda, void* wr,
                          void* wi, void* vl, const int* ldvl, void* vr, const int* ldvr, void* work,
                          const int* lwork, int* info);
using ComplexGeev = void (*)(const char* left, const char* right, const int* n, void* a, const int* lda, void* w,
                             void* vl, const int* ldvl, void* vr, const int* ldvr, void* work, const int* lwork,
                             void* rwork, int* info);

template <class T, class F>
F required(const char* name) {
  const F function = routine<T, F>(name);
  if (function == nullptr) throw Error(ErrorKind::Runtime, std::string(name) + ": no LAPACK has been set");
  return function;
}

// Scratch memory of this thread as one array of each type.
template <class... Ts, class... Counts>
std::tuple<Ts*...> scratch_arrays(Counts... counts) {
  const auto rounded = [](size_t bytes) { return (bytes + 63) / 64 * 64; };
  const size_t total = (rounded(static_cast<size_t>(counts) * sizeof(Ts)) + ...);
  char* next = static_cast<char*>(thread_scratch(total));
  const auto take = [&](size_t bytes) {
    char* const here = next;
    next += rounded(bytes);
    return here;
  };
  return std::tuple<Ts*...>{reinterpret_cast<Ts*>(take(static_cast<size_t>(counts) * sizeof(Ts)))...};
}

// What a workspace query wrote: a size as a number of the element type.
template <class T>
int work_size(T answer) {
  // above 2^24 a float has lost the last bits
  return std::max(1, static_cast<int>(std::real(answer) * (1 + std::numeric_limits<Real<T>>::epsilon())));
}

template <class T>
bool is_finite_part(T x) {
  if constexpr (is_complex<T>) {
    return std::isfinite(x.real()) && std::isfinite(x.imag());
  } else {
    return std::isfinite(x);
  }
}

template <class T>
bool all_finite(const T* x, int64_t count) {
  // no early exit: so it is a vector loop
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) finite &= is_finite_part(x[i]);
  return finite;
}

template <class T>
void fill_nan(T* x, int64_t count) {
  std::fill(x, x + count, T(std::numeric_limits<Real<T>>::quiet_NaN()));
}

template <class T>
void set_identity(T* x, int64_t n) {
  std::fill(x, x + n * n, T{});
  for (int64_t i = 0; i < n; ++i) x[i * n + i] = T(1);
}

double product_of(int64_t a, int64_t b, int64_t c) {
  return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
}

// ---- qr

template <class T>
class Qr {
 public:
  Qr(int64_t m, int64_t n, int64_t q_columns) : m_(static_cast<int>(m)), n_(static_cast<int>(n)) {
    k_ = std::min(m_, n_);
    q_columns_ = static_cast<int>(q_columns);
    geqrf_ = required<T, Geqrf>("geqrf");
    orgqr_ = required<T, Orgqr>(is_complex<T> ? "ungqr" : "orgqr");
    const int query = -1;
    int info = 0;
    T answer{};
    geqrf_(&m_, &n_, &answer, &m_, &answer, &answer, &query, &info);
    work_ = work_size(answer);
    if (q_columns_ > 0) {
      orgqr_(&m_, &q_columns_, &k_, &answer, &m_, &answer, &answer, &query, &info);
      work_ = std::max(work_, work_size(answer));
    }
  }

  // R on and above the diagonal of `columns` and reflectors below.
  void factor(T* columns, T* taus, T* work) const {
    int info = 0;
    geqrf_(&m_, &n_, columns, &m_, taus, work, &work_, &info);
  }

  // The first columns of Q, in place of the reflectors.
  void expand(T* columns, const T* taus, T* work) const {
    int info = 0;
    orgqr_(&m_, &q_columns_, &k_, columns, &m_, taus, work, &work_, &info);
  }

  int work() const { return work_; }

 private:
  int m_, n_, k_, q_columns_, work_;
  Geqrf geqrf_;
  Orgqr orgqr_;
};

// A reflector 1 - tau v v^H, v[0] = 1, that takes x (m numbers, `step` apart) to beta times the first unit vector; v
// replaces x but for beta at its head.  Signs and phases are those of LAPACK's larfg.
template <class T>
T make_reflector(T* x, int64_t m, int64_t step) {
  using R = Real<T>;
  double largest = 0, squares = 0;
  bool valid = true;  // no NaN, which max would lose
  for (int64_t i = 1; i < m; ++i) {
    const double re = std::real(x[i * step]), im = std::imag(x[i * step]);
    largest = std::max({largest, std::abs(re), std::abs(im)});
    squares += re * re + im * im;
    valid &= re == re && im == im;
  }
  const double alpha_re = std::real(x[0]), alpha_im = std::imag(x[0]);
  if (largest == 0 && alpha_im == 0 && valid) return T{};
  double norm = std::sqrt(alpha_re * alpha_re + alpha_im * alpha_im + squares);
  if (valid && !(norm > 1e-140 && norm < 1e140)) {  // squares of doubles may have been lost
    const double scale = std::max({largest, std::abs(alpha_re), std::abs(alpha_im)});
    squares = 0;
    for (int64_t i = 0; i < m; ++i) {
      const double re = std::real(x[i * step]) / scale, im = std::imag(x[i * step]) / scale;
      squares += re * re + im * im;
    }
    norm = scale * std::sqrt(squares);
  }
  const double beta = std::signbit(alpha_re) ? norm : -norm;
  std::complex<double> tau((beta - alpha_re) / beta, -alpha_im / beta);
  const std::complex<double> head(alpha_re - beta, alpha_im);
  T result, inverse;
  const std::complex<double> wide_inverse = 1.0 / head;
  // tiny columns: the reciprocal overflows, the quotient does not
  const bool divided = !std::isfinite(static_cast<R>(std::abs(wide_inverse)));
  if constexpr (is_complex<T>) {
    result = T(static_cast<R>(tau.real()), static_cast<R>(tau.imag()));
    inverse = T(static_cast<R>(wide_inverse.real()), static_cast<R>(wide_inverse.imag()));
    for (int64_t i = 1; i < m; ++i) {
      T& v = x[i * step];
      v = divided ? T(std::complex<double>(v) / head) : product(v, inverse);
    }
  } else {
    result = static_cast<T>(tau.real());
    inverse = static_cast<T>(wide_inverse.real());
    for (int64_t i = 1; i < m; ++i) {
      T& v = x[i * step];
      v = divided ? static_cast<T>(v / head.real()) : v * inverse;
    }
  }
  x[0] = static_cast<R>(beta);
  return result;
}

// Rows of x [m, columns], `row` apart, times 1 - tau v v^H from the left; v[0] = 1, the others `step` apart.
template <class T>
void reflect(T* x, int64_t m, int64_t columns, int64_t row, const T* v, int64_t step, T tau, T* sums) {
  std::copy_n(x, columns, sums);
  for (int64_t i = 1; i < m; ++i) {
    const T factor = conjugate(v[i * step]);
    for (int64_t j = 0; j < columns; ++j) sums[j] += product(factor, x[i * row + j]);
  }
  for (int64_t j = 0; j < columns; ++j) {
    sums[j] = product(tau, sums[j]);
    x[j] -= sums[j];
  }
  for (int64_t i = 1; i < m; ++i) {
    const T factor = v[i * step];
    for (int64_t j = 0; j < columns; ++j) x[i * row + j] -= product(factor, sums[j]);
  }
}

// QR of a small matrix a [m, n], which is overwritten, along its rows; q [m, width] may be null.
template <class T>
void factor_small_qr(T* a, T* q, T* r, int64_t m, int64_t n, int64_t width, T* taus, T* sums) {
  const int64_t k = std::min(m, n);
  for (int64_t i = 0; i < k; ++i) {
    T* const head = a + i * n + i;
    taus[i] = make_reflector(head, m - i, n);
    reflect(head + 1, m - i, n - i - 1, n, head, n, conjugate(taus[i]), sums);
  }
  for (int64_t i = 0; i < width; ++i) {
    std::fill(r + i * n, r + i * n + std::min(i, n), T{});
    for (int64_t j = i; j < n; ++j) r[i * n + j] = a[i * n + j];
  }
  if (q == nullptr) return;
  std::fill(q, q + m * width, T{});
  for (int64_t i = 0; i < width; ++i) q[i * width + i] = T(1);
  for (int64_t i = k - 1; i >= 0; --i) {
    reflect(q + i * width + i, m - i, width - i, width, a + i * n + i, n, taus[i], sums);
  }
}

// q_out: null where Q is not wanted.
void factor_qr(const void* from, void* q_out, void* r_out, const int64_t* params, Context& context) {
  with_type(params[0], [&](auto zero) {
    using T = decltype(zero);
    const int64_t batch = params[1], m = params[2], n = params[3], k = std::min(m, n);
    const int64_t width = params[4] != 0 ? m : k;  // columns of Q, rows of R
    const bool q_wanted = q_out != nullptr;
    T* const q = static_cast<T*>(q_out);
    if (k == 0) {  // then R is empty, and Q is empty or the unit matrix
      for (int64_t i = 0; i < batch && width > 0 && q_wanted; ++i) set_identity(q + i * m * m, m);
      return;
    }
    const double work = product_of(m, n, k) + (q_wanted ? product_of(m, width, k) : 0);
    if (std::max(m, n) <= kSmall) {
      for_each_matrix(batch, work, false, context.cancel, [&](int64_t i) {
        auto [a, taus, sums] = scratch_arrays<T, T, T>(m * n, k, std::max(n, width));
        std::copy_n(static_cast<const T*>(from) + i * m * n, m * n, a);
        factor_small_qr(a, q_wanted ? q + i * m * width : nullptr, static_cast<T*>(r_out) + i * width * n, m, n, width,
                        taus, sums);
      });
      return;
    }
    const Qr<T> qr(m, n, q_wanted ? width : 0);
    for_each_matrix(batch, work, true, context.cancel, [&](int64_t i) {
      auto [columns, taus, space] = scratch_arrays<T, T, T>(m * std::max(n, width), k, qr.work());
      T* const r = static_cast<T*>(r_out) + i * width * n;
      transpose_into(columns, static_cast<const T*>(from) + i * m * n, m, n);
      qr.factor(columns, taus, space);
      transpose_into(r, n, columns, m, n, std::min(width, m));
      for (int64_t row = 1; row < width; ++row) std::fill(r + row * n, r + row * n + std::min(row, n), T{});
      if (!q_wanted) return;
      qr.expand(columns, taus, space);
      transpose_into(q + i * m * width, width, columns, m, width, m);
    });
  });
}

// ---- svd

template <class T>
class Svd {
 public:
  // job: A and S for all or min(m, n) singular vectors, N for none.
  Svd(char job, int64_t m, int64_t n) : job_(job), m_(static_cast<int>(m)), n_(static_cast<int>(n)) {
    k_ = std::min(m_, n_);
    vt_rows_ = job == 'A' ? n_ : k_;
    function_ = required<T, void*>("gesdd");
    const int query = -1;
    T answer{}, unused{};
    Real<T> real_answer{};
    int integer_answer = 0;
    call(&unused, &real_answer, &unused, &unused, &answer, query, &real_answer, &integer_answer);
    work_ = work_size(answer);
    // LAPACK's documentation of cgesdd, for the larger of its cases; 7 min(m, n) without vectors for old versions
    const int64_t k = k_, large = std::max(m_, n_);
    if (is_complex<T>) rwork_ = job == 'N' ? 7 * k : std::max(5 * k * k + 5 * k, 2 * large * k + 2 * k * k + k);
    rwork_ = std::max<int64_t>(rwork_, 1);
  }

  // False where the iteration did not converge.
  bool run(T* a, Real<T>* s, T* u, T* vt, T* work, Real<T>* rwork, int* iwork) const {
    return call(a, s, u, vt, work, work_, rwork, iwork) == 0;
  }

  int work() const { return work_; }
  int64_t rwork() const { return rwork_; }
  int64_t iwork() const { return 8 * static_cast<int64_t>(k_); }

 private:
  int call(T* a, Real<T>* s, T* u, T* vt, T* work, int work_count, Real<T>* rwork, int* iwork) const {
    int info = 0;
    if constexpr (is_complex<T>) {
      reinterpret_cast<ComplexGesdd>(function_)(&job_, &m_, &n_, a, &m_, s, u, &m_, vt, &vt_rows_, work, &work_count,
                                                rwork, iwork, &info);
    } else {
      reinterpret_cast<RealGesdd>(function_)(&job_, &m_, &n_, a, &m_, s, u, &m_, vt, &vt_rows_, work, &work_count,
                                             iwork, &info);
    }
    return info;
  }

  char job_;
  int m_, n_, k_, vt_rows_, work_ = 1;
  int64_t rwork_ = 1;
  void* function_;
};

// ---- eigh

template <class T>
class Eigh {
 public:
  Eigh(bool vectors, int64_t n) : job_(vectors ? 'V' : 'N'), n_(static_cast<int>(n)) {
    function_ = required<T, void*>(is_complex<T> ? "heevd" : "syevd");
    T answer{};
    Real<T> real_answer{};
    int integer_answer = 1;
    T unused{};
    Real<T> value{};
    call(&unused, &value, &answer, -1, &real_answer, -1, &integer_answer, -1);
    work_ = work_size(answer);
    rwork_ = work_size(real_answer);
    iwork_ = std::max(1, integer_answer);
  }

  // a: the lower triangle, by columns; its eigenvectors replace it.
  bool run(T* a, Real<T>* values, T* work, Real<T>* rwork, int* iwork) const {
    return call(a, values, work, work_, rwork, rwork_, iwork, iwork_) == 0;
  }

  int work() const { return work_; }
  int rwork() const { return rwork_; }
  int iwork() const { return iwork_; }

 private:
  int call(T* a, Real<T>* values, T* work, int work_count, Real<T>* rwork, int rwork_count, int* iwork,
           int iwork_count) const {
    int info = 0;
    if constexpr (is_complex<T>) {
      reinterpret_cast<Heevd>(function_)(&job_, "L", &n_, a, &n_, values, work, &work_count, rwork, &rwork_count,
                                         iwork, &iwork_count, &info);
    } else {
      reinterpret_cast<Syevd>(function_)(&job_, "L", &n_, a, &n_, values, work, &work_count, iwork, &iwork_count,
                                         &info);
    }
    return info;
  }

  char job_;
  int n_, work_ = 1, rwork_ = 1, iwork_ = 1;
  void* function_;
};

// Whether the lower triangle, all that is read, is finite.  The imaginary part of a diagonal is not read either.
template <class T>
bool finite_triangle(const T* a, int64_t n) {
  bool finite = true;
  for (int64_t i = 0; i < n; ++i) finite &= all_finite(a + i * n, i) && std::isfinite(std::real(a[i * n + i]));
  return finite;
}

// vectors_out: null where they are not wanted.
void solve_hermitian(const void* from_all, void* vectors_out, void* values_out, const int64_t* params,
                     Context& context) {
  with_type(params[0], [&](auto zero) {
    using T = decltype(zero);
    const int64_t batch = params[1], n = params[2];
    const bool vectors = vectors_out != nullptr;
    if (n == 0 || batch == 0) return;
    const Eigh<T> eigh(vectors, n);
    for_each_matrix(batch, (vectors ? 3 : 1.5) * product_of(n, n, n), true, context.cancel, [&](int64_t i) {
      auto [a, space, rwork, iwork] =
          scratch_arrays<T, T, Real<T>, int>(n * n, eigh.work(), eigh.rwork(), eigh.iwork());
      const T* const from = static_cast<const T*>(from_all) + i * n * n;
      T* const to = vectors ? static_cast<T*>(vectors_out) + i * n * n : nullptr;
      Real<T>* const values = static_cast<Real<T>*>(values_out) + i * n;
      transpose_into(a, from, n, n);
      if (!finite_triangle(from, n) || !eigh.run(a, values, space, rwork, iwork)) {
        fill_nan(values, n);
        if (vectors) fill_nan(to, n * n);
        return;
      }
      if (vectors) transpose_into(to, a, n, n);
    });
  });
}

// ---- eig

template <class T>
class Eig {
 public:
  Eig(bool left, bool right, int64_t n) : left_(left ? 'V' : 'N'), right_(right ? 'V' : 'N') {
    n_ = static_cast<int>(n);
    function_ = required<T, void*>("geev");
    T answer{}, unused{};
    Real<T> real_answer{};  // ctrevc3, which is asked too, writes a size of its own there
    call(&unused, &unused, &real_answer, &unused, &unused, &answer, -1);
    work_ = work_size(answer);
  }

  // values: n complex ones, or for real matrices the real parts; `more`: the imaginary parts of real ones, else 2 n
  // numbers of workspace.
  bool run(T* a, T* values, Real<T>* more, T* left, T* right, T* work) const {
    return call(a, values, more, left, right, work, work_) == 0;
  }

  int work() const { return work_; }

 private:
  int call(T* a, T* values, Real<T>* more, T* left, T* right, T* work, int work_count) const {
    int info = 0;
    if constexpr (is_complex<T>) {
      reinterpret_cast<ComplexGeev>(function_)(&left_, &right_, &n_, a, &n_, values, left, &n_, right, &n_, work,
                                               &work_count, more, &info);
    } else {
      reinterpret_cast<RealGeev>(function_)(&left_, &right_, &n_, a, &n_, values, more, left, &n_, right, &n_, work,
                                            &work_count, &info);
    }
    return info;
  }

  char left_, right_;
  int n_, work_ = 1;
  void* function_;
};

// Vectors out of LAPACK's columns.  Those of a real matrix hold the real and imaginary part of the vectors of a
// complex pair in two neighbours.
template <class T, class C>
void store_vectors(C* out, const T* columns, const Real<T>* imaginary, int64_t n) {
  if constexpr (is_complex<T>) {
    transpose_into(out, columns, n, n);
  } else {
    for (int64_t j = 0; j < n; ++j) {
      const T* const column = columns + j * n;
      if (imaginary[j] == 0 || j + 1 == n) {
        for (int64_t i = 0; i < n; ++i) out[i * n + j] = column[i];
        continue;
      }
      for (int64_t i = 0; i < n; ++i) {
        out[i * n + j] = C(column[i], column[n + i]);
        out[i * n + j + 1] = C(column[i], -column[n + i]);
      }
      ++j;
    }
  }
}

void run_eigen(void* const* buffers, const int64_t* params, Context& context, void* left_out, void* right_out) {
  with_type(params[0], [&](auto zero) {
    using T = decltype(zero);
    using C = std::complex<Real<T>>;
    const int64_t batch = params[1], n = params[2];
    if (n == 0 || batch == 0) return;
    const bool left = left_out != nullptr, right = right_out != nullptr;
    const Eig<T> eig(left, right, n);
    for_each_matrix(batch, 10 * product_of(n, n, n), true, context.cancel, [&](int64_t i) {
      auto [a, values, more, vl, vr, work] = scratch_arrays<T, T, Real<T>, T, T, T>(
          n * n, n, 2 * n, left ? n * n : 0, right ? n * n : 0, eig.work());
      const T* const from = static_cast<const T*>(buffers[0]) + i * n * n;
      C* const to = static_cast<C*>(buffers[1]) + i * n;
      C* const to_left = left ? static_cast<C*>(left_out) + i * n * n : nullptr;
      C* const to_right = right ? static_cast<C*>(right_out) + i * n * n : nullptr;
      transpose_into(a, from, n, n);
      if (!all_finite(a, n * n) || !eig.run(a, values, more, vl, vr, work)) {
        fill_nan(to, n);
        if (left) fill_nan(to_left, n * n);
        if (right) fill_nan(to_right, n * n);
        return;
      }
      for (int64_t j = 0; j < n; ++j) {
        if constexpr (is_complex<T>) {
          to[j] = values[j];
        } else {
          to[j] = C(values[j], more[j]);
        }
      }
      if (left) store_vectors(to_left, vl, more, n);
      if (right) store_vectors(to_right, vr, more, n);
    });
  });
}

}  // namespace

void check_matrices(const int64_t* params) { check_sizes("matrix routine", params, 2); }

void check_square(const int64_t* params) { check_sizes("matrix routine", params, 1); }

void run_qr(void* const* buffers, const int64_t* params, Context& context) {
  factor_qr(buffers[0], buffers[1], buffers[2], params, context);
}

void run_qr_r(void* const* buffers, const int64_t* params, Context& context) {
  factor_qr(buffers[0], nullptr, buffers[1], params, context);
}

void run_geqrf(void* const* buffers, const int64_t* params, Context& context) {
  with_type(params[0], [&](auto zero) {
    using T = decltype(zero);
    const int64_t batch = params[1], m = params[2], n = params[3], k = std::min(m, n);
    if (k == 0) return;
    const Qr<T> qr(m, n, 0);
    for_each_matrix(batch, product_of(m, n, k), true, context.cancel, [&](int64_t i) {
      auto [columns, space] = scratch_arrays<T, T>(m * n, qr.work());
      transpose_into(columns, static_cast<const T*>(buffers[0]) + i * m * n, m, n);
      qr.factor(columns, static_cast<T*>(buffers[2]) + i * k, space);
      transpose_into(static_cast<T*>(buffers[1]) + i * m * n, columns, n, m);
    });
  });
}

void run_householder(void* const* buffers, const int64_t* params, Context& context) {
  with_type(params[0], [&](auto zero) {
    using T = decltype(zero);
    const int64_t batch = params[1];
    const int m = static_cast<int>(params[2]), n = static_cast<int>(params[3]), k = static_cast<int>(params[4]);
    if (n == 0) return;
    const auto orgqr = required<T, Orgqr>(is_complex<T> ? "ungqr" : "orgqr");
    const int query = -1;
    int info = 0;
    T answer{};
    orgqr(&m, &n, &k, &answer, &m, &answer, &answer, &query, &info);
    const int work = work_size(answer);
    for_each_matrix(batch, product_of(m, n, k), true, context.cancel, [&](int64_t i) {
      auto [columns, space] = scratch_arrays<T, T>(static_cast<int64_t>(m) * n, work);
      const int64_t size = static_cast<int64_t>(m) * n;
      int failed = 0;
      transpose_into(columns, static_cast<const T*>(buffers[0]) + i * size, m, n);
      orgqr(&m, &n, &k, columns, &m, static_cast<const T*>(buffers[1]) + i * k, space, &work, &failed);
      transpose_into(static_cast<T*>(buffers[2]) + i * size, columns, n, m);
    });
  });
}

void run_singular_values(void* const* buffers, const int64_t* params, Context& context) {
  with_type(params[0], [&](auto zero) {
    using T = decltype(zero);
    const int64_t batch = params[1], m = params[2], n = params[3], k = std::min(m, n);
    if (k == 0 || batch == 0) return;
    const Svd<T> svd('N', n, m);  // the transpose has the same values
    for_each_matrix(batch, 2 * product_of(m, n, k), true, context.cancel, [&](int64_t i) {
      auto [a, unused, space, rwork, iwork] =
          scratch_arrays<T, T, T, Real<T>, int>(m * n, 1, svd.work(), svd.rwork(), svd.iwork());
      Real<T>* const s = static_cast<Real<T>*>(buffers[1]) + i * k;
      std::memcpy(a, static_cast<const T*>(buffers[0]) + i * m * n, static_cast<size_t>(m * n) * sizeof(T));
      if (!all_finite(a, m * n) || !svd.run(a, s, unused, unused, space, rwork, iwork)) fill_nan(s, k);
    });
  });
}

void run_svd(void* const* buffers, const int64_t* params, Context& context) {
  with_type(params[0], [&](auto zero) {
    using T = decltype(zero);
    const int64_t batch = params[1], m = params[2], n = params[3], k = std::min(m, n);
    const bool full = params[4] != 0;
    const int64_t left = full ? m : k, right = full ? n : k;
    T* const u = static_cast<T*>(buffers[2]);
    T* const v = static_cast<T*>(buffers[3]);
    if (k == 0) {
      for (int64_t i = 0; i < batch && full; ++i) {
        set_identity(u + i * m * m, m);
        set_identity(v + i * n * n, n);
      }
      return;
    }
    if (batch == 0) return;
    const Svd<T> svd(full ? 'A' : 'S', m, n);
    for_each_matrix(batch, 6 * product_of(std::max(m, n), full ? std::max(m, n) : k, k), true, context.cancel,
                    [&](int64_t i) {
      auto [a, u_columns, v_columns, space, rwork, iwork] = scratch_arrays<T, T, T, T, Real<T>, int>(
          m * n, m * left, right * n, svd.work(), svd.rwork(), svd.iwork());
      Real<T>* const s = static_cast<Real<T>*>(buffers[1]) + i * k;
      T* const to_u = u + i * m * left;
      T* const to_v = v + i * right * n;
      transpose_into(a, static_cast<const T*>(buffers[0]) + i * m * n, m, n);
      if (!all_finite(a, m * n) || !svd.run(a, s, u_columns, v_columns, space, rwork, iwork)) {
        fill_nan(s, k);
        fill_nan(to_u, m * left);
        fill_nan(to_v, right * n);
        return;
      }
      transpose_into(to_u, u_columns, left, m);
      transpose_into(to_v, v_columns, n, right);
    });
  });
}

void run_eigh(void* const* buffers, const int64_t* params, Context& context) {
  solve_hermitian(buffers[0], buffers[1], buffers[2], params, context);
}

void run_eigvalsh(void* const* buffers, const int64_t* params, Context& context) {
  solve_hermitian(buffers[0], nullptr, buffers[1], params, context);
}

void run_eigenvalues(void* const* buffers, const int64_t* params, Context& context) {
  run_eigen(buffers, params, context, nullptr, nullptr);
}

void run_eig_left(void* const* buffers, const int64_t* params, Context& context) {
  run_eigen(buffers, params, context, buffers[2], nullptr);
}

void run_eig_right(void* const* buffers, const int64_t* params, Context& context) {
  run_eigen(buffers, params, context, nullptr, buffers[2]);
}

void run_eig(void* const* buffers, const int64_t* params, Context& context) {
  run_eigen(buffers, params, context, buffers[2], buffers[3]);
}

}  // namespace jato
