// The table of library routines, the external symbols, and the routines that move memory.
#include "library.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "convolution.h"
#include "errors.h"
#include "fft.h"
#include "lapack.h"
#include "matmul.h"
#include "selection.h"
#include "spectra.h"
#include "threadpool.h"

namespace jato {
namespace {

// Ranges of copies and fills: long enough to hand out, short enough to balance.
constexpr int64_t kRangeBytes = 256 << 10;
constexpr size_t kParallelBytes = 1 << 20;

void run_copy(void* const* buffers, const int64_t* params, Context&) {
  copy_bytes(buffers[1], buffers[0], static_cast<size_t>(params[0]));
}

void check_copy(const int64_t* params) {
  if (params[0] < 0) {
    throw Error(ErrorKind::Value,
                "copy: expected a number of bytes of at least 0, got " + std::to_string(params[0]));
  }
}

void fill_range(char* destination, int64_t count, int64_t itemsize, const int64_t* value) {
  if (itemsize == 1) {
    std::memset(destination, static_cast<int>(value[0] & 0xff), static_cast<size_t>(count));
    return;
  }
  const auto fill_as = [&](auto item) {
    std::memcpy(&item, value, sizeof item);
    auto* const items = reinterpret_cast<decltype(item)*>(destination);
    std::fill(items, items + count, item);
  };
  struct Wide {
    int64_t low, high;
  };
  switch (itemsize) {
    case 2:
      return fill_as(uint16_t{});
    case 4:
      return fill_as(uint32_t{});
    case 8:
      return fill_as(uint64_t{});
    default:
      return fill_as(Wide{});
  }
}

void run_fill(void* const* buffers, const int64_t* params, Context&) {
  char* const destination = static_cast<char*>(buffers[0]);
  const int64_t count = params[0], itemsize = params[1];
  if (static_cast<size_t>(count * itemsize) < kParallelBytes) {
    fill_range(destination, count, itemsize, params + 2);
    return;
  }
  parallel_for(count, kRangeBytes / itemsize, [&](int64_t begin, int64_t end, int) {
    fill_range(destination + begin * itemsize, end - begin, itemsize, params + 2);
  });
}

void check_fill(const int64_t* params) {
  const int64_t itemsize = params[1];
  if (params[0] < 0) {
    throw Error(ErrorKind::Value, "fill: expected a count of at least 0, got " + std::to_string(params[0]));
  }
  if (itemsize != 1 && itemsize != 2 && itemsize != 4 && itemsize != 8 && itemsize != 16) {
    throw Error(ErrorKind::Value,
                "fill: expected an itemsize of 1, 2, 4, 8 or 16, got " + std::to_string(itemsize));
  }
}

constexpr int kGemmParams = sizeof(GemmParams) / sizeof(int64_t);
constexpr int kGemvParams = sizeof(GemvParams) / sizeof(int64_t);
constexpr int kConvParams = sizeof(ConvParams) / sizeof(int64_t);

const LibraryRoutine kRoutines[] = {
    {"copy", 2, 1, run_copy, nullptr, check_copy},
    {"fill", 1, 4, run_fill, nullptr, check_fill},
    {"gemm", 3, kGemmParams, run_gemm, run_gemm_tiled, check_gemm},
    {"gemv", 3, kGemvParams, run_gemv, nullptr, check_gemv},
    {"top_k", 3, 4, run_top_k, nullptr, check_top_k},
    {"sort", 2, 3, run_sort, nullptr, check_sort},
    {"sort_pair", 4, 4, run_sort_pair, nullptr, check_sort_pair},
    {"cholesky", 2, 3, run_cholesky, nullptr, check_cholesky},
    {"lu", 4, 4, run_lu, nullptr, check_lu},
    {"lu_solve", 5, 5, run_lu_solve, nullptr, check_lu_solve},
    {"triangular_solve", 3, 9, run_triangular_solve, nullptr, check_triangular_solve},
    {"qr", 3, 5, run_qr, nullptr, check_matrices},
    {"qr_r", 2, 5, run_qr_r, nullptr, check_matrices},
    {"geqrf", 3, 4, run_geqrf, nullptr, check_matrices},
    {"householder", 3, 5, run_householder, nullptr, check_matrices},
    {"svd", 4, 5, run_svd, nullptr, check_matrices},
    {"singular_values", 2, 4, run_singular_values, nullptr, check_matrices},
    {"eigh", 3, 3, run_eigh, nullptr, check_square},
    {"eigvalsh", 2, 3, run_eigvalsh, nullptr, check_square},
    {"eigenvalues", 2, 3, run_eigenvalues, nullptr, check_square},
    {"eig_left", 3, 3, run_eig_left, nullptr, check_square},
    {"eig_right", 3, 3, run_eig_right, nullptr, check_square},
    {"eig", 4, 3, run_eig, nullptr, check_square},
    {"fft", 2, kFftParams, run_fft, nullptr, check_fft},
    {"conv", 3, kConvParams, run_conv, nullptr, check_conv},
    {"conv_kernel", 3, kConvParams, run_conv_kernel, nullptr, check_conv},
};

struct Symbol {
  const char* name;
  std::atomic<void*> address{nullptr};
};

Symbol symbols[] = {
    {"sgemm"}, {"dgemm"}, {"cgemm"},
    {"zgemm"}, {"sgemv"}, {"dgemv"},
    {"cgemv"}, {"zgemv"}, {"openblas_set_num_threads_local"},
    {"strsm"}, {"dtrsm"}, {"ctrsm"}, {"ztrsm"}, {"strsv"}, {"dtrsv"}, {"ctrsv"}, {"ztrsv"},
    {"spotrf"}, {"dpotrf"}, {"cpotrf"}, {"zpotrf"}, {"sgetrf"}, {"dgetrf"}, {"cgetrf"}, {"zgetrf"},
    {"sgeqrf"}, {"dgeqrf"}, {"cgeqrf"}, {"zgeqrf"}, {"sorgqr"}, {"dorgqr"}, {"cungqr"}, {"zungqr"},
    {"sgesdd"}, {"dgesdd"}, {"cgesdd"}, {"zgesdd"}, {"ssyevd"}, {"dsyevd"}, {"cheevd"}, {"zheevd"},
    {"sgeev"}, {"dgeev"}, {"cgeev"}, {"zgeev"},
};

Symbol& find_symbol(std::string_view name) {
  for (Symbol& symbol : symbols) {
    if (name == symbol.name) return symbol;
  }
  std::string known;
  for (const Symbol& symbol : symbols) known += std::string(known.empty() ? "" : ", ") + symbol.name;
  throw Error(ErrorKind::Value,
              "library symbol: expected one of " + known + ", got '" + std::string(name) + "'");
}

// Sets the number of threads BLAS uses and returns the number before.  In builds of OpenBLAS on
// POSIX threads the number is the process's in spite of the name, so it must be put back.
using SetBlasThreads = int (*)(int);

SetBlasThreads set_blas_threads() {
  static const Symbol& symbol = find_symbol("openblas_set_num_threads_local");
  return reinterpret_cast<SetBlasThreads>(symbol.address.load(std::memory_order_acquire));
}

std::mutex blas_threads_mutex;
int blas_threads_users = 0;   // guarded by the mutex
int blas_threads_before = 0;  // guarded by the mutex

}  // namespace

const LibraryRoutine* find_routine(std::string_view name) {
  for (const LibraryRoutine& routine : kRoutines) {
    if (name == routine.name) return &routine;
  }
  return nullptr;
}

std::vector<std::string> library_names() {
  std::vector<std::string> names;
  for (const LibraryRoutine& routine : kRoutines) names.emplace_back(routine.name);
  return names;
}

void set_library_symbol(std::string_view name, void* address) {
  find_symbol(name).address.store(address, std::memory_order_release);
}

void* library_symbol(std::string_view name) {
  return find_symbol(name).address.load(std::memory_order_acquire);
}

std::vector<std::string> library_symbol_names() {
  std::vector<std::string> names;
  for (const Symbol& symbol : symbols) names.emplace_back(symbol.name);
  return names;
}

SingleThreadedBlas::SingleThreadedBlas() : set_(set_blas_threads()) {
  if (set_ == nullptr) return;
  std::lock_guard lock(blas_threads_mutex);
  const int before = set_(1);
  if (blas_threads_users++ == 0) blas_threads_before = before;
}

SingleThreadedBlas::~SingleThreadedBlas() {
  if (set_ == nullptr) return;
  std::lock_guard lock(blas_threads_mutex);
  if (--blas_threads_users == 0) set_(blas_threads_before);
}

bool SingleThreadedBlas::possible() { return set_blas_threads() != nullptr; }

void SingleThreadedBlas::limit_worker() {
  // In builds where the number belongs to a thread, each worker needs it once.
  thread_local bool limited = false;
  if (limited || !in_parallel_region()) return;
  if (const SetBlasThreads set = set_blas_threads()) {
    set(1);
    limited = true;
  }
}

void copy_bytes(void* destination, const void* source, size_t bytes) {
  if (destination == source || bytes == 0) return;
  if (bytes < kParallelBytes) {
    std::memcpy(destination, source, bytes);
    return;
  }
  parallel_for(static_cast<int64_t>(bytes), kRangeBytes, [&](int64_t begin, int64_t end, int) {
    std::memcpy(static_cast<char*>(destination) + begin, static_cast<const char*>(source) + begin,
                static_cast<size_t>(end - begin));
  });
}

}  // namespace jato
