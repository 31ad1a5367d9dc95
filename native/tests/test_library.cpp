#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "check.h"
#include "errors.h"
#include "fake_blas.h"
#include "library.h"
#include "threadpool.h"

namespace jato::test {
namespace {

const int32_t never = 0;

void run_routine(const char* name, std::vector<void*> buffers, const void* params) {
  const LibraryRoutine* routine = find_routine(name);
  const auto* values = static_cast<const int64_t*>(params);
  routine->check(values);
  Context context{&never};
  routine->run(buffers.data(), values, context);
}

template <class F>
void use_fake_blas(F body) {
  set_library_symbol("sgemm", reinterpret_cast<void*>(&fake_gemm<float>));
  set_library_symbol("dgemm", reinterpret_cast<void*>(&fake_gemm<double>));
  set_library_symbol("cgemm", reinterpret_cast<void*>(&fake_gemm<std::complex<float>>));
  set_library_symbol("zgemm", reinterpret_cast<void*>(&fake_gemm<std::complex<double>>));
  set_library_symbol("sgemv", reinterpret_cast<void*>(&fake_gemv<float>));
  set_library_symbol("dgemv", reinterpret_cast<void*>(&fake_gemv<double>));
  set_library_symbol("cgemv", reinterpret_cast<void*>(&fake_gemv<std::complex<float>>));
  set_library_symbol("zgemv", reinterpret_cast<void*>(&fake_gemv<std::complex<double>>));
  set_library_symbol("openblas_set_num_threads_local", reinterpret_cast<void*>(&fake_set_num_threads));
  blas_misused = false;
  try {
    body();
  } catch (...) {
    for (const std::string& name : library_symbol_names()) set_library_symbol(name, nullptr);
    throw;
  }
  for (const std::string& name : library_symbol_names()) set_library_symbol(name, nullptr);
  CHECK(!blas_misused);
  CHECK_EQUAL(blas_threads.load(), 8);
}

int64_t bits(double value) { return std::bit_cast<int64_t>(value); }

template <class T>
struct TypeOf;
template <>
struct TypeOf<float> {
  static constexpr DType code = DType::Float32;
};
template <>
struct TypeOf<double> {
  static constexpr DType code = DType::Float64;
};
template <>
struct TypeOf<std::complex<float>> {
  static constexpr DType code = DType::Complex64;
};
template <>
struct TypeOf<std::complex<double>> {
  static constexpr DType code = DType::Complex128;
};

// Small integers: sums are exact in any order.
template <class T>
std::vector<T> small_integers(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(static_cast<int>(random() % 7) - 3);
    } else {
      using Part = typename T::value_type;
      value = T(static_cast<Part>(static_cast<int>(random() % 7) - 3),
                static_cast<Part>(static_cast<int>(random() % 7) - 3));
    }
  }
  return values;
}

struct Shape {
  int64_t m, n, k;
};

template <class T>
void check_gemm_case(Shape s, int64_t form_a, int64_t form_b, int64_t batch, double alpha, double beta,
                     int64_t padding, bool by_rows) {
  GemmParams g{};
  g.dtype = static_cast<int64_t>(TypeOf<T>::code);
  g.operand_a = form_a;
  g.operand_b = form_b;
  g.m = s.m;
  g.n = s.n;
  g.k = s.k;
  const int64_t rows_a = form_a == 0 ? s.m : s.k, rows_b = form_b == 0 ? s.k : s.n;
  g.lda = (form_a == 0 ? s.k : s.m) + padding;
  g.ldb = (form_b == 0 ? s.n : s.k) + padding;
  g.ldc = s.n + padding;
  g.batch = batch;
  g.stride_a = rows_a * g.lda;
  g.stride_b = 0;  // one B for all
  g.stride_c = s.m * g.ldc;
  g.alpha_real = bits(alpha);
  g.outer = 1;
  g.beta_real = bits(beta);
  std::vector<T> a = small_integers<T>(static_cast<size_t>(g.stride_a * batch + 1), 1);
  std::vector<T> b = small_integers<T>(static_cast<size_t>(rows_b * g.ldb + 1), 2);
  std::vector<T> c = small_integers<T>(static_cast<size_t>(g.stride_c * batch + 1), 3);
  std::vector<T> expected = c;
  const auto element = [](const std::vector<T>& x, int64_t form, int64_t base, int64_t ld, int64_t i,
                          int64_t j) {
    const T value = x[static_cast<size_t>(base + (form == 0 ? i * ld + j : j * ld + i))];
    return form == 2 ? blas_conjugate(value) : value;
  };
  for (int64_t q = 0; q < batch; ++q) {
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        T sum{};
        for (int64_t l = 0; l < s.k; ++l) {
          sum += element(a, form_a, q * g.stride_a, g.lda, i, l) * element(b, form_b, 0, g.ldb, l, j);
        }
        T& target = expected[static_cast<size_t>(q * g.stride_c + i * g.ldc + j)];
        target = T(alpha) * sum + (beta == 0 ? T{} : T(beta) * target);
      }
    }
  }
  if (beta == 0) {
    // What C held must not matter.
    for (int64_t q = 0; q < batch; ++q) {
      for (int64_t i = 0; i < s.m; ++i) {
        T* const row = c.data() + q * g.stride_c + i * g.ldc;
        std::fill(row, row + s.n, T(std::numeric_limits<float>::quiet_NaN()));
      }
    }
  }
  std::vector<void*> buffers{a.data(), b.data(), c.data()};
  if (by_rows) {
    const auto* params = reinterpret_cast<const int64_t*>(&g);
    const LibraryRoutine* gemm = find_routine("gemm");
    gemm->check(params);
    // what follows sees each row once, complete, in blocks that begin at multiples of 3
    const int64_t rows = batch * s.m;
    std::vector<std::atomic<int>> seen(static_cast<size_t>(rows));
    std::atomic<bool> aligned{true};
    auto done = [&](int64_t begin, int64_t end) {
      if (begin % 3 != 0 || end > rows) aligned = false;
      for (int64_t row = begin; row < end; ++row) ++seen[static_cast<size_t>(row)];
    };
    const int32_t cancel = 0;
    Context context{&cancel};
    const RowTiles tiles{3,
                         [](void* f, int64_t begin, int64_t end) {
                           (*static_cast<decltype(done)*>(f))(begin, end);
                         },
                         &done};
    const bool by_blocks = gemm->run_tiled(buffers.data(), params, context, tiles);
    if (!by_blocks) gemm->run(buffers.data(), params, context);
    CHECK(aligned);
    for (const auto& times : seen) CHECK_EQUAL(times.load(), by_blocks ? 1 : 0);
  } else {
    run_routine("gemm", buffers, &g);
  }
  for (size_t i = 0; i < c.size(); ++i) {
    if (!(c[i] == expected[i])) {
      check_failed(__FILE__, __LINE__,
                   "gemm " + std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k) +
                       " forms " + std::to_string(form_a) + std::to_string(form_b) + " batch " +
                       std::to_string(batch) + " differs at " + std::to_string(i));
    }
  }
}

template <class T>
void check_all_forms() {
  const Shape shapes[] = {{0, 3, 2}, {3, 0, 2}, {3, 2, 0}, {1, 1, 1},  {1, 1, 9}, {5, 1, 7},
                          {1, 5, 7}, {3, 4, 5}, {8, 8, 8}, {17, 3, 1}, {2, 33, 6}};
  for (const Shape& shape : shapes) {
    for (int64_t form_a = 0; form_a < 3; ++form_a) {
      for (int64_t form_b = 0; form_b < 3; ++form_b) {
        check_gemm_case<T>(shape, form_a, form_b, 1, 1, 0, 0, false);
        check_gemm_case<T>(shape, form_a, form_b, 3, 2, 0.5, 3, false);
        check_gemm_case<T>(shape, form_a, form_b, 2, 1, 0, 1, true);
      }
    }
  }
}

// Large enough to be split in each of the ways.
template <class T>
void check_split_forms() {
  const Shape shapes[] = {{150, 130, 40}, {200, 200, 33}, {3, 5, 60000},  {1, 1, 700000}, {700, 1, 600},
                          {1, 700, 600},  {16, 400, 200}, {2000, 3, 200}, {1, 600000, 1}};
  for (const Shape& shape : shapes) {
    for (int64_t form_a = 0; form_a < 2; ++form_a) {
      for (int64_t form_b = 0; form_b < 2; ++form_b)
        check_gemm_case<T>(shape, form_a, form_b, 1, 1, form_a, 0, false);
    }
  }
  // blocks of rows, their number and their edges
  for (const Shape& shape :
       {Shape{256, 40, 30}, Shape{257, 33, 40}, Shape{520, 24, 513}, Shape{260, 70, 1030}}) {
    for (int64_t form_b = 0; form_b < 2; ++form_b) {
      check_gemm_case<T>(shape, 0, form_b, 1, 1, 0, 1, true);
      check_gemm_case<T>(shape, 1, form_b, 1, 1, 1, 0, true);
      check_gemm_case<T>(shape, 0, form_b, 1, 1, 1, 0, false);
    }
  }
  // whole tiles that pack B: a copy for each thread, and, of fewer rows, one that the threads share
  check_gemm_case<T>({448, 70, 520}, 0, 0, 1, 1, 0, 0, false);
  check_gemm_case<T>({672, 70, 520}, 1, 0, 1, 1, 1, 0, true);
  check_gemm_case<T>({336, 70, 520}, 0, 0, 1, 1, 1, 0, false);
  // more columns than are packed at a time, the rest of them in two strips
  for (const int64_t n : {4096 + 4081, 4096 + 4088, 4096 + 4090}) {
    check_gemm_case<T>({30, n, 40}, 0, 0, 1, 1, 0, 0, false);
    check_gemm_case<T>({30, n, 40}, 0, 1, 1, 1, 0, 0, false);
  }
  // all numbers of columns around whole and half vectors, and depths that do not fill a folded one
  for (int64_t n = 2; n < 70; ++n) {
    for (const int64_t k : {31, 32, 33, 34, 35, 63}) {
      check_gemm_case<T>({n % 3 == 0 ? 260 : 30, n, k}, 0, n % 2, 1, 1, n % 5 == 0, 0, false);
    }
  }
  check_gemm_case<T>({20, 20, 20}, 0, 0, 200, 1, 0, 0, false);
  check_gemm_case<T>({90, 90, 90}, 0, 1, 3, 1, 0, 0, false);
}

}  // namespace

void test_library(Runner& runner) {
  set_num_threads(4);

  runner.run("names", [] {
    for (const char* name : {"copy", "fill", "gemm", "gemv"}) {
      CHECK(find_routine(name) != nullptr);
      const std::vector<std::string> names = library_names();
      CHECK(std::find(names.begin(), names.end(), name) != names.end());
    }
    CHECK(find_routine("nothing") == nullptr);
    CHECK_THROWS(Error, set_library_symbol("nothing", nullptr));
    CHECK(library_symbol("sgemm") == nullptr);
  });

  runner.run("copy", [] {
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, size_t{3000001}}) {
      std::vector<char> source(bytes + 1, 'x'), destination(bytes + 1, 'y');
      const int64_t params[] = {static_cast<int64_t>(bytes)};
      run_routine("copy", {source.data(), destination.data()}, params);
      CHECK(std::all_of(destination.begin(), destination.end() - 1, [](char c) { return c == 'x'; }));
      CHECK(destination.back() == 'y');
    }
    const int64_t negative[] = {-1};
    CHECK_THROWS(Error, find_routine("copy")->check(negative));
  });

  runner.run("fill", [] {
    for (const int64_t itemsize : {1, 2, 4, 8, 16}) {
      for (const int64_t count : {0, 1, 7, 300001}) {
        const int64_t params[] = {count, itemsize, 0x1122334455667788, -5};
        std::vector<char> target(static_cast<size_t>(count * itemsize + 64), 'z');
        // 16-byte items need the alignment that array data has.
        void* data = target.data();
        size_t space = target.size();
        std::align(16, static_cast<size_t>(count * itemsize), data, space);
        run_routine("fill", {data}, params);
        for (int64_t i = 0; i < count; ++i) {
          CHECK(std::memcmp(static_cast<char*>(data) + i * itemsize, params + 2,
                            static_cast<size_t>(itemsize)) == 0);
        }
        CHECK(target.back() == 'z' || count * itemsize + 15 > static_cast<int64_t>(target.size()));
      }
    }
    const int64_t bad[] = {1, 3, 0, 0};
    CHECK_THROWS(Error, find_routine("fill")->check(bad));
  });

  runner.run("gemm without a BLAS", [] {
    check_all_forms<float>();
    check_all_forms<double>();
    check_all_forms<std::complex<double>>();
    check_split_forms<float>();
    check_split_forms<double>();
  });

  runner.run("gemm through a BLAS", [] {
    use_fake_blas([] {
      blas_calls = 0;
      check_all_forms<float>();
      check_all_forms<double>();
      check_all_forms<std::complex<float>>();
      check_all_forms<std::complex<double>>();
      CHECK(blas_calls > 1000);
    });
  });

  // Calls are counted with complex products: real ones have a kernel of their own on some machines.
  runner.run("gemm is split over threads", [] {
    use_fake_blas([] {
      blas_calls = 0;
      check_gemm_case<std::complex<float>>({200, 200, 50}, 0, 0, 1, 1, 0, 0, false);
      CHECK(blas_calls > 1);
      blas_calls = 0;
      check_gemm_case<std::complex<float>>({2, 2, 400000}, 0, 0, 1, 1, 0, 0, false);
      CHECK(blas_calls > 1);
      check_split_forms<float>();
      check_split_forms<std::complex<float>>();
    });
  });

  runner.run("a BLAS that chooses its own threads is called once", [] {
    use_fake_blas([] {
      set_library_symbol("openblas_set_num_threads_local", nullptr);
      blas_calls = 0;
      check_gemm_case<std::complex<float>>({200, 200, 50}, 0, 0, 1, 1, 0, 0, false);
      CHECK_EQUAL(blas_calls.load(), 1);
      check_gemm_case<std::complex<float>>({90, 90, 90}, 0, 0, 3, 1, 0, 0, false);
      CHECK_EQUAL(blas_calls.load(), 4);
    });
  });

  runner.run("gemm from several threads at once", [] {
    use_fake_blas([] {
      std::vector<std::thread> threads;
      std::atomic<bool> right{true};
      for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&right] {
          try {
            check_gemm_case<double>({120, 120, 60}, 0, 1, 1, 1, 0, 0, false);
          } catch (const std::exception&) {
            right = false;
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      CHECK(right);
    });
  });

  runner.run("the number of threads changes while a product runs", [] {
    GemmParams g{};
    g.dtype = static_cast<int64_t>(DType::Float32);
    g.m = 1000;
    g.n = g.k = g.lda = g.ldb = g.ldc = 32;
    g.batch = g.outer = 1;
    g.alpha_real = bits(1);
    g.beta_real = bits(0);
    std::vector<float> a(static_cast<size_t>(g.m * g.k), 1), b(static_cast<size_t>(g.k * g.n), 1), c(a.size());
    void* buffers[] = {a.data(), b.data(), c.data()};
    std::atomic<bool> stop{false};
    std::thread other([&stop] {
      for (int i = 0; !stop; ++i) set_num_threads(1 + 7 * (i % 2));
    });
    bool right = true;
    for (int round = 0; round < 60; ++round) {
      std::fill(c.begin(), c.end(), 0.0f);
      Context context{&never};
      // what follows on the rows takes so long that helpers come
      const auto linger = [](void*, int64_t, int64_t) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      };
      const auto* params = reinterpret_cast<const int64_t*>(&g);
      if (find_routine("gemm")->run_tiled(buffers, params, context, {1, linger, nullptr})) {
        right = right && std::all_of(c.begin(), c.end(), [](float x) { return x == 32; });
      }
    }
    stop = true;
    other.join();
    set_num_threads(4);
    CHECK(right);
  });

  runner.run("gemv", [] {
    const int64_t m = 700, k = 500;
    const std::vector<double> a = small_integers<double>(static_cast<size_t>(m * k), 1);
    const std::vector<double> x = small_integers<double>(static_cast<size_t>(2 * std::max(m, k)), 2);
    const auto check = [&](int64_t form) {
      const int64_t rows = form == 0 ? m : k, columns = form == 0 ? k : m;
      std::vector<double> y(static_cast<size_t>(rows * 3), 1.0);
      GemvParams v{};
      v.dtype = static_cast<int64_t>(DType::Float64);
      v.operand_a = form;
      v.m = rows;
      v.k = columns;
      v.lda = k;
      v.stride_x = 2;
      v.stride_y = 3;
      v.batch = 1;
      v.alpha_real = bits(2);
      v.beta_real = bits(1);
      run_routine("gemv", {const_cast<double*>(a.data()), const_cast<double*>(x.data()), y.data()}, &v);
      for (int64_t i = 0; i < rows; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < columns; ++j) {
          sum += a[static_cast<size_t>(form == 0 ? i * k + j : j * k + i)] * x[static_cast<size_t>(2 * j)];
        }
        CHECK_EQUAL(y[static_cast<size_t>(3 * i)], 2 * sum + 1);
        CHECK_EQUAL(y[static_cast<size_t>(3 * i + 1)], 1.0);
      }
    };
    check(0);
    check(1);
    use_fake_blas([&] {
      check(0);
      check(1);
    });
  });

  runner.run("parameters that make no sense are refused", [] {
    const auto refused = [](auto change) {
      GemmParams g{
          static_cast<int64_t>(DType::Float32), 0, 0, 4, 4, 4, 4, 4, 4, 1, 0, 0, 0, bits(1), 0, 0, 0, 1};
      change(g);
      try {
        find_routine("gemm")->check(reinterpret_cast<const int64_t*>(&g));
      } catch (const Error& error) {
        return error.kind() == ErrorKind::Value;
      }
      return false;
    };
    CHECK(!refused([](GemmParams&) {}));
    CHECK(refused([](GemmParams& g) { g.dtype = static_cast<int64_t>(DType::Int32); }));
    CHECK(refused([](GemmParams& g) { g.dtype = 99; }));
    CHECK(refused([](GemmParams& g) { g.operand_a = 3; }));
    CHECK(refused([](GemmParams& g) { g.m = -1; }));
    CHECK(refused([](GemmParams& g) { g.lda = 3; }));
    CHECK(refused([](GemmParams& g) { g.ldc = 0; }));
    CHECK(!refused([](GemmParams& g) { g.m = 1, g.ldc = 0, g.lda = 0; }));
  });
}

}  // namespace jato::test
