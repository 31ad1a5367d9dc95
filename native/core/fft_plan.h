// Plans of Fourier transforms: the passes of a length, and tables of roots of unity.
//
//   FftPlan<T>     of a complex transform: radices of its passes, their factors
//   fft_plan(n)    the plan of a length, null when a prime factor is above kLargestRadix
//   half_roots(n)  exp(-2 pi i k / n) for k up to n / 4: splits and joins half spectra of real arrays
//   grid_roots     exp(-2 pi i j k / (rows columns)), laid out for lanes: joins the two steps of a long transform
//
//   chirp_tables   what turns a transform of any length n into a convolution (L. Bluestein, 1970): n numbers
//                  exp(-pi i k^2 / n), then the transform of their conjugates, of length `padded`
//
// All are kept for the next transform, up to kCacheBytes.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace jato {

constexpr int64_t kLargestRadix = 31;

// One pass of Stockham's algorithm over blocks of `stride` numbers: `count` butterflies of `radix` each.
struct FftPass {
  int64_t radix, count, stride;
  int64_t factors;  // where its factors begin: radix - 1 complex ones for each butterfly
  int64_t roots;    // of general radices: where exp(-2 pi i k / radix) begin
};

template <class T>
struct FftPlan {
  int64_t n = 1;
  std::vector<FftPass> passes;
  std::vector<T> numbers;  // real and imaginary parts in turn
};

template <class T>
using Numbers = std::shared_ptr<const std::vector<T>>;

// Whether all prime factors of n have a pass.
bool fft_factors(int64_t n);

template <class T>
std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n);
template <class T>
Numbers<T> half_roots(int64_t n);
// For each block of `lanes` columns, for each row: `lanes` real parts, then as many imaginary ones.
template <class T>
Numbers<T> grid_roots(int64_t rows, int64_t columns, int64_t lanes);

// padded: a power of two, at least 2 n - 1.
template <class T>
Numbers<T> chirp_tables(int64_t n, int64_t padded);

}  // namespace jato
