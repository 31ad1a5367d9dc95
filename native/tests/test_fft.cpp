// Groups of Fourier transforms, in both kinds of vectors, against the sum that defines them; whole transforms at
// every rank and length against the same.
#include "fft.h"

#include <complex>
#include <limits>
#include <numbers>
#include <vector>

#include "check.h"
#include "fft_groups.h"

namespace jato::test {
namespace {

using Complex = std::complex<double>;

std::vector<Complex> naive(const std::vector<Complex>& x, bool back) {
  const size_t n = x.size();
  std::vector<Complex> out(n);
  for (size_t k = 0; k < n; ++k) {
    for (size_t j = 0; j < n; ++j) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
      out[k] += x[j] * Complex{std::cos(angle), back ? std::sin(angle) : -std::sin(angle)};
    }
  }
  return out;
}

double some(size_t i) { return std::sin(static_cast<double>(i) * 1.7 + 0.3) * static_cast<double>(i % 7 + 1); }

template <class T>
constexpr double kNear = sizeof(T) == 4 ? 3e-6 : 1e-14;

template <class T>
FftGroupFn<T> function_of(const FftGroups& groups) {
  if constexpr (sizeof(T) == 4) return groups.single;
  else return groups.twice;
}

template <class T>
void run_group(const FftGroups& groups, FftGroup<T> g) {
  const int64_t lanes = groups.vector_bytes / static_cast<int64_t>(sizeof(T));
  const int64_t numbers = fft_scratch_numbers(g.plan->n, g.width, lanes);
  std::vector<T> memory(static_cast<size_t>(4 * numbers * lanes) + 64, std::numeric_limits<T>::quiet_NaN());
  g.scratch = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) & ~uintptr_t{63});
  function_of<T>(groups)(g);
}

template <class T>
void complex_groups(const FftGroups& groups) {
  const int64_t vector = groups.vector_bytes / static_cast<int64_t>(sizeof(T));
  for (int64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 15, 16, 17, 25, 31, 32, 49, 60, 64}) {
    const auto plan = fft_plan<T>(n);
    for (int64_t count : {int64_t{1}, vector - 1, vector, 2 * vector, 2 * vector + 3}) {
      for (bool rows : {true, false}) {
        if (rows && count > vector) continue;
        for (bool inverse : {false, true}) {
          std::vector<T> x(static_cast<size_t>(2 * n * count)), y(x.size());
          for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(some(i));
          FftGroup<T> g{};
          g.plan = plan.get();
          g.in = x.data(), g.out = y.data();
          g.lanes = count, g.width = (count + vector - 1) / vector;
          g.in_form = g.out_form = rows ? FftForm::Rows : FftForm::Columns;
          g.in_lane = g.out_lane = 2 * n;
          g.in_element = g.out_element = 2 * count;
          g.scale = T(0.5);
          g.inverse = inverse;
          run_group(groups, g);
          for (int64_t c = 0; c < count; ++c) {
            const auto place = [&](int64_t j) { return static_cast<size_t>(2 * (rows ? c * n + j : j * count + c)); };
            std::vector<Complex> line;
            for (int64_t j = 0; j < n; ++j) line.emplace_back(x[place(j)], x[place(j) + 1]);
            const std::vector<Complex> wanted = naive(line, inverse);
            for (int64_t k = 0; k < n; ++k) {
              const Complex found{y[place(k)], y[place(k) + 1]};
              CHECK(std::abs(found - 0.5 * wanted[static_cast<size_t>(k)]) < kNear<T> * 20 * static_cast<double>(n));
            }
          }
        }
      }
    }
  }
}

// Through the routine: real and complex, both ways, there and back.
template <class T>
void whole_transforms(int64_t real_code, int64_t complex_code, std::vector<int64_t> shape, int64_t rank) {
  int32_t go = 0;
  Context context{&go};
  int64_t batch = 1, points = 1;
  const int64_t all = static_cast<int64_t>(shape.size());
  for (int64_t i = 0; i < all; ++i) (i < all - rank ? batch : points) *= shape[static_cast<size_t>(i)];
  const int64_t n = shape.back(), half = n / 2 + 1, rows = batch * points / n;
  const auto call = [&](int64_t code, int64_t kind, const std::vector<T>& in, std::vector<T>& out) {
    int64_t params[kFftParams] = {code, kind, batch, rank, 1, 1, 1, 1};
    for (int64_t i = 0; i < rank; ++i) params[4 + i] = shape[static_cast<size_t>(all - rank + i)];
    check_fft(params);
    void* buffers[2] = {const_cast<T*>(in.data()), out.data()};
    run_fft(buffers, params, context);
  };
  std::vector<T> real(static_cast<size_t>(rows * n)), complex(2 * real.size(), T(0));
  for (size_t i = 0; i < real.size(); ++i) real[i] = complex[2 * i] = static_cast<T>(some(i));
  std::vector<T> full(complex.size()), of_real(complex.size()), back(complex.size());
  std::vector<T> spectrum(static_cast<size_t>(2 * rows * half)), again(real.size());
  const double near = kNear<T> * 40 * std::sqrt(static_cast<double>(points)) * std::log2(static_cast<double>(2 * points));
  call(complex_code, 0, complex, full);
  if (rank == 1 && n <= 300) {
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<Complex> line;
      for (int64_t j = 0; j < n; ++j) line.emplace_back(real[static_cast<size_t>(r * n + j)]);
      const std::vector<Complex> wanted = naive(line, false);
      for (int64_t k = 0; k < n; ++k) {
        const size_t at = static_cast<size_t>(2 * (r * n + k));
        CHECK(std::abs(Complex{full[at], full[at + 1]} - wanted[static_cast<size_t>(k)]) < near);
      }
    }
  }
  call(real_code, 0, real, of_real);
  for (size_t i = 0; i < full.size(); ++i) CHECK(std::abs(full[i] - of_real[i]) < near);
  call(complex_code, 1, full, back);
  for (size_t i = 0; i < full.size(); ++i) CHECK(std::abs(back[i] - complex[i]) < near);
  call(real_code, 2, real, spectrum);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < 2 * half; ++k) {
      CHECK(std::abs(spectrum[static_cast<size_t>(2 * r * half + k)] - full[static_cast<size_t>(2 * r * n + k)]) < near);
    }
  }
  call(complex_code, 3, spectrum, again);
  for (size_t i = 0; i < real.size(); ++i) CHECK(std::abs(again[i] - real[i]) < near);
}

}  // namespace

void test_fft(Runner& runner) {
  runner.run("groups in vectors of every machine", [] {
    complex_groups<float>(plain_fft_groups());
    complex_groups<double>(plain_fft_groups());
  });
  runner.run("groups in the vectors of this machine", [] {
    complex_groups<float>(fft_groups());
    complex_groups<double>(fft_groups());
  });
  const auto both = [](const std::vector<int64_t>& shape, int64_t rank) {
    whole_transforms<float>(static_cast<int64_t>(DType::Float32), static_cast<int64_t>(DType::Complex64), shape, rank);
    whole_transforms<double>(static_cast<int64_t>(DType::Float64), static_cast<int64_t>(DType::Complex128), shape, rank);
  };
  runner.run("rows", [&] {
    for (int64_t n = 1; n <= 130; ++n) {
      for (int64_t rows : {1, 3, 17}) both({rows, n}, 1);
    }
  });
  runner.run("long rows", [&] {
    for (int64_t n : {243, 256, 514, 1009, 1022, 1024, 3125, 4098, 6000, 65536}) {
      for (int64_t rows : {1, 2, 9}) both({rows, n}, 1);
    }
  });
  runner.run("several axes", [&] {
    both({2, 3, 5}, 2);
    both({37, 2}, 2);
    both({16, 40}, 2);
    both({2, 4, 3, 6}, 3);
    both({2, 3, 4, 5}, 4);
    both({130, 70}, 2);
  });
  runner.run("a NaN stays in its row", [] {
    int32_t go = 0;
    Context context{&go};
    std::vector<float> x(20 * 24, 1.0f), y(2 * 20 * 13);
    x[7 * 24 + 5] = std::numeric_limits<float>::quiet_NaN();
    const int64_t params[kFftParams] = {static_cast<int64_t>(DType::Float32), 2, 20, 1, 24, 1, 1, 1};
    void* buffers[2] = {x.data(), y.data()};
    run_fft(buffers, params, context);
    for (size_t r = 0; r < 20; ++r) CHECK(std::isnan(y[2 * 13 * r + 2]) == (r == 7));
  });
}

}  // namespace jato::test
