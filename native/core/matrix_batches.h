// What the routines over batches of matrices share: element types, routines of LAPACK by name, the spread of a batch
// over the threads, transposition.
#pragma once
#include <algorithm>
#include <complex>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "dtype.h"
#include "errors.h"
#include "library.h"
#include "threadpool.h"

namespace jato {

// Matrices up to this size are quicker with the loops here than with a call of LAPACK.
inline constexpr int64_t kSmall = 32;
// Multiply-adds worth a thread.
inline constexpr double kGrainWork = 16 * 1024;
// Below this work for one matrix the threads of LAPACK's own gain little, and lose much when others need the cores.
inline constexpr double kThreadedWork = 2e8;

template <class T>
constexpr bool is_complex = !std::is_floating_point_v<T>;

template <class T>
T conjugate(T x) {
  if constexpr (is_complex<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}

// Products without the checks for infinities that operator* of std::complex makes.
template <class T>
T product(T x, T y) {
  if constexpr (is_complex<T>) {
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
  } else {
    return x * y;
  }
}

template <class T>
constexpr char kLetter = std::is_same_v<T, float>                 ? 's'
                         : std::is_same_v<T, double>              ? 'd'
                         : std::is_same_v<T, std::complex<float>> ? 'c'
                                                                  : 'z';

template <class T, class F>
F routine(const char* name) {
  const std::string full = std::string(1, kLetter<T>) + name;
  return reinterpret_cast<F>(library_symbol(full));
}

template <class F>
void with_type(int64_t code, F f) {
  switch (static_cast<DType>(code)) {
    case DType::Float32:
      return f(float{});
    case DType::Float64:
      return f(double{});
    case DType::Complex64:
      return f(std::complex<float>{});
    case DType::Complex128:
      return f(std::complex<double>{});
    default:
      throw Error(ErrorKind::Value,
                  "linear algebra: expected float32, float64, complex64 or complex128, got dtype code " +
                      std::to_string(code));
  }
}

// f(i) for each matrix of a batch.  `by_lapack`: f calls it, so it is kept to one thread where f runs on several.
template <class F>
void for_each_matrix(int64_t batch, double work, bool by_lapack, const volatile int32_t* cancel, F f) {
  const auto stopped = [&] { return __atomic_load_n(cancel, __ATOMIC_RELAXED) != 0; };
  std::optional<SingleThreadedBlas> single;
  if (by_lapack && (batch > 1 || work < kThreadedWork || num_threads() == 1)) single.emplace();
  if (batch <= 1 || (by_lapack && !SingleThreadedBlas::possible())) {
    for (int64_t i = 0; i < batch && !stopped(); ++i) f(i);
    return;
  }
  const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(kGrainWork / std::max(work, 1.0)));
  parallel_for(batch, grain, [&](int64_t begin, int64_t end, int) {
    if (by_lapack) SingleThreadedBlas::limit_worker();
    for (int64_t i = begin; i < end && !stopped(); ++i) f(i);
  });
}

// to[j, i] = from[i, j] for i below m and j below n, with to_row and from_row elements between rows.
template <class T>
void transpose_into(T* to, int64_t to_row, const T* from, int64_t from_row, int64_t m, int64_t n) {
  constexpr int64_t kTile = 16;
  const auto rows = [&](int64_t begin, int64_t end) {
    for (int64_t i0 = begin; i0 < end; i0 += kTile) {
      const int64_t i1 = std::min(i0 + kTile, end);
      for (int64_t j0 = 0; j0 < n; j0 += kTile) {
        const int64_t j1 = std::min(j0 + kTile, n);
        for (int64_t j = j0; j < j1; ++j) {
          for (int64_t i = i0; i < i1; ++i) to[j * to_row + i] = from[i * from_row + j];
        }
      }
    }
  };
  if (m * n < 128 * 1024) return rows(0, m);
  parallel_for(m, 4 * kTile, [&](int64_t begin, int64_t end, int) { rows(begin, end); });
}

template <class T>
void transpose_into(T* to, const T* from, int64_t m, int64_t n) {
  transpose_into(to, m, from, n, m, n);
}

inline void check_range(const char* name, const char* what, int64_t value, int64_t lowest, int64_t highest) {
  if (value >= lowest && value <= highest) return;
  throw Error(ErrorKind::Value, std::string(name) + ": expected " + what + " between " +
                                    std::to_string(lowest) + " and " + std::to_string(highest) + ", got " +
                                    std::to_string(value));
}

inline void check_sizes(const char* name, const int64_t* params, int count) {
  with_type(params[0], [](auto) {});
  check_range(name, "a batch", params[1], 0, std::numeric_limits<int64_t>::max());
  for (int i = 0; i < count; ++i)
    check_range(name, "an extent", params[2 + i], 0, std::numeric_limits<int32_t>::max());
}

}  // namespace jato
