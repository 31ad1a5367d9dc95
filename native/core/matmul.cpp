// Matrix products: which BLAS routine computes which part on which thread.
//
//   Matrix<T>      an operand: pointer, strides between its rows and columns, conjugation
//   Product<T>     C = alpha A B + beta C for one matrix, strides and all
//   multiply       one part, on this thread: BLAS when it can, else a plain loop
//   split_product  cuts a product into parts: blocks of C, or, when C is small, ranges of k
//
// A vector operand or result makes a product memory bound: then gemv, and parts by bytes.
#include "matmul.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <climits>
#include <complex>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "block_gemm.h"
#include "dtype.h"
#include "errors.h"
#include "pool.h"
#include "threadpool.h"

namespace jato {
namespace {

// Multiply-adds that one thread does in about 10 us when they are in cache: not worth splitting.
constexpr double kSplitWork = 256 * 1024;
// The same for memory-bound products, counted in elements of the matrix.
constexpr double kSplitElements = 128 * 1024;
// BLAS itself starts no threads below this number of multiply-adds (OpenBLAS: 4 * 65536).
constexpr double kBlasSerialWork = 200 * 1024;
// With more work than this for each thread there are two parts for each, for balance.
constexpr double kBalanceWork = 64e6;
// No part is larger than about 20 ms of work on one thread: between parts a run can be cancelled.
constexpr double kLargestPart = 1e9;
constexpr int64_t kBlockEdge = 64;  // smallest edge of a block of C worth a thread
constexpr int64_t kRounding = 16;   // edges are multiples: the width of BLAS's kernels
constexpr int64_t kSmallestDepth = 256;
constexpr double kLargestSum = 1e6;  // elements of a C of which each thread may have its own

bool is_raised(const volatile int32_t* flag) { return __atomic_load_n(flag, __ATOMIC_RELAXED) != 0; }

template <class T>
constexpr bool is_complex = !std::is_floating_point_v<T>;

template <class T>
T conjugate(T value) {
  if constexpr (is_complex<T>) {
    return std::conj(value);
  } else {
    return value;
  }
}

using BlasGemm = void (*)(const char* transa, const char* transb, const int* m, const int* n, const int* k,
                          const void* alpha, const void* a, const int* lda, const void* b, const int* ldb,
                          const void* beta, void* c, const int* ldc);
using BlasGemv = void (*)(const char* trans, const int* m, const int* n, const void* alpha, const void* a,
                          const int* lda, const void* x, const int* incx, const void* beta, void* y,
                          const int* incy);

template <class T>
constexpr char kLetter = std::is_same_v<T, float>                 ? 's'
                         : std::is_same_v<T, double>              ? 'd'
                         : std::is_same_v<T, std::complex<float>> ? 'c'
                                                                  : 'z';

template <class T>
BlasGemm blas_gemm() {
  constexpr char name[] = {kLetter<T>, 'g', 'e', 'm', 'm'};
  return reinterpret_cast<BlasGemm>(library_symbol({name, sizeof name}));
}

template <class T>
BlasGemv blas_gemv() {
  constexpr char name[] = {kLetter<T>, 'g', 'e', 'm', 'v'};
  return reinterpret_cast<BlasGemv>(library_symbol({name, sizeof name}));
}

// A row-major matrix in memory, used as stored, transposed or conjugate-transposed.
template <class T>
struct Matrix {
  T* data;
  int64_t leading;  // elements between stored rows
  Operand operand;

  bool transposed() const { return operand != Operand::AsStored; }
  bool conjugated() const { return is_complex<T> && operand == Operand::ConjugateTranspose; }
  int64_t row_stride() const { return transposed() ? 1 : leading; }
  int64_t column_stride() const { return transposed() ? leading : 1; }
  Matrix at(int64_t row, int64_t column) const {
    return {data + row * row_stride() + column * column_stride(), leading, operand};
  }
};

template <class T>
struct Product {
  Matrix<T> a, b;
  T* c;
  int64_t ldc;
  int64_t m, n, k;
  T alpha, beta;

  double work() const { return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
  // One factor is a vector that BLAS can take as one, and so is the result.
  bool is_vector() const { return (n == 1 || m == 1) && !a.conjugated() && !b.conjugated(); }
  Product block(int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    return {a.at(row, 0), b.at(0, column), c + row * ldc + column, ldc, rows, columns, k, alpha, beta};
  }
  Product depth(int64_t first, int64_t count, T* target, int64_t target_ldc, T target_beta) const {
    return {a.at(0, first), b.at(first, 0), target, target_ldc, m, n, count, alpha, target_beta};
  }
};

// C = beta C; exact zeros for beta = 0, whatever C holds.
template <class T>
void scale(const Product<T>& p) {
  if (p.beta == T(1)) return;
  for (int64_t i = 0; i < p.m; ++i) {
    T* const row = p.c + i * p.ldc;
    if (p.beta == T(0)) {
      std::fill(row, row + p.n, T(0));
    } else {
      for (int64_t j = 0; j < p.n; ++j) row[j] *= p.beta;
    }
  }
}

template <class T>
void multiply_plainly(const Product<T>& p) {
  scale(p);
  const int64_t a_row = p.a.row_stride(), a_column = p.a.column_stride();
  const int64_t b_row = p.b.row_stride(), b_column = p.b.column_stride();
  const bool conjugate_a = p.a.conjugated(), conjugate_b = p.b.conjugated();
  for (int64_t i = 0; i < p.m; ++i) {
    T* const row = p.c + i * p.ldc;
    for (int64_t l = 0; l < p.k; ++l) {
      const T stored = p.a.data[i * a_row + l * a_column];
      const T factor = p.alpha * (conjugate_a ? conjugate(stored) : stored);
      const T* const b = p.b.data + l * b_row;
      if (conjugate_b) {
        for (int64_t j = 0; j < p.n; ++j) row[j] += factor * conjugate(b[j * b_column]);
      } else {
        for (int64_t j = 0; j < p.n; ++j) row[j] += factor * b[j * b_column];
      }
    }
  }
}

bool fits_int(int64_t value) { return value <= INT_MAX; }

// BLAS wants leading dimensions of at least the length of a stored row, even if there is only one.
template <class T>
int blas_leading(const Matrix<T>& matrix, int64_t rows, int64_t columns) {
  const int64_t length = matrix.transposed() ? rows : columns;
  return static_cast<int>(std::max<int64_t>({matrix.leading, length, 1}));
}

template <class T>
char blas_letter(const Matrix<T>& matrix) {
  // BLAS sees the transpose of what is stored, and computes the transpose of the product.
  return matrix.operand == Operand::AsStored ? 'N' : matrix.conjugated() ? 'C' : 'T';
}

// y = alpha op(matrix) x + beta y, with op(matrix) rows x columns.
template <class T>
struct VectorProduct {
  Matrix<T> matrix;
  int64_t rows, columns;
  const T* x;
  int64_t x_stride;
  T* y;
  int64_t y_stride;
  T alpha, beta;
};

template <class T>
VectorProduct<T> as_vector_product(const Product<T>& p) {
  if (p.n == 1) {
    return {p.a, p.m, p.k, p.b.data, p.b.row_stride(), p.c, p.ldc, p.alpha, p.beta};
  }
  const Operand flipped = p.b.transposed() ? Operand::AsStored : Operand::Transpose;
  return {{p.b.data, p.b.leading, flipped}, p.n, p.k, p.a.data, p.a.column_stride(), p.c, 1, p.alpha, p.beta};
}

template <class T>
bool try_blas_gemv(const Product<T>& p) {
  const BlasGemv gemv = blas_gemv<T>();
  if (gemv == nullptr || !p.is_vector()) return false;
  const VectorProduct<T> v = as_vector_product(p);
  if (!fits_int(v.rows) || !fits_int(v.columns) || !fits_int(v.matrix.leading) || !fits_int(v.x_stride) ||
      !fits_int(v.y_stride)) {
    return false;
  }
  const bool transposed = v.matrix.transposed();
  const char letter = transposed ? 'N' : 'T';
  const int m = static_cast<int>(transposed ? v.rows : v.columns);
  const int n = static_cast<int>(transposed ? v.columns : v.rows);
  const int leading = blas_leading(v.matrix, v.rows, v.columns);
  const int x_stride = static_cast<int>(std::max<int64_t>(v.x_stride, 1));
  const int y_stride = static_cast<int>(std::max<int64_t>(v.y_stride, 1));
  gemv(&letter, &m, &n, &v.alpha, v.matrix.data, &leading, v.x, &x_stride, &v.beta, v.y, &y_stride);
  return true;
}

template <class T>
bool try_blas_gemm(const Product<T>& p) {
  const BlasGemm gemm = blas_gemm<T>();
  const int64_t lda = p.a.leading, ldb = p.b.leading;
  if (gemm == nullptr || !fits_int(lda) || !fits_int(ldb) || !fits_int(p.ldc)) return false;
  if (!fits_int(p.m) || !fits_int(p.n)) return false;
  const char letter_a = blas_letter(p.a), letter_b = blas_letter(p.b);
  const int m = static_cast<int>(p.m), n = static_cast<int>(p.n);
  const int leading_c = static_cast<int>(std::max<int64_t>({p.ldc, p.n, 1}));
  T beta = p.beta;
  constexpr int64_t step = INT_MAX / 64 * 64;
  for (int64_t first = 0; first < p.k; first += step) {
    const int k = static_cast<int>(std::min(step, p.k - first));
    const Matrix<T> a = p.a.at(0, first), b = p.b.at(first, 0);
    const int leading_a = blas_leading(a, m, k), leading_b = blas_leading(b, k, n);
    gemm(&letter_b, &letter_a, &n, &m, &k, &p.alpha, b.data, &leading_b, a.data, &leading_a, &beta, p.c,
         &leading_c);
    beta = T(1);
  }
  return true;
}

// The form of the product that block_gemm.h takes; nothing for those that it does not.
template <class T>
std::optional<BlockProduct<T>> block_product(const Product<T>& p) {
  if (p.is_vector() || p.alpha != T(1) || (p.beta != T(0) && p.beta != T(1))) return {};
  return BlockProduct<T>{p.a.data,          p.a.row_stride(), p.a.column_stride(), p.b.data,
                         p.b.row_stride(),  p.b.column_stride(), p.c, p.ldc, p.m, p.n, p.k, p.beta == T(1)};
}

// The kernel of block_gemm.h, where the machine has it.
template <class T>
bool try_block_gemm(const Product<T>& p) {
  if constexpr (is_complex<T>) {
    return false;
  } else {
    const auto block = block_product(p);
    return block && block_gemm(*block);
  }
}

// One part, on this thread.
template <class T>
void multiply(const Product<T>& p) {
  if (p.m <= 0 || p.n <= 0) return;
  if (p.k <= 0) {
    scale(p);
    return;
  }
  if (try_block_gemm(p) || try_blas_gemv(p) || try_blas_gemm(p)) return;
  multiply_plainly(p);
}

template <class T>
void multiply_as_worker(const Product<T>& p) {
  SingleThreadedBlas::limit_worker();
  multiply(p);
}

int64_t ceil_divide(int64_t value, int64_t divisor) { return (value - 1) / divisor + 1; }

int64_t round_up(int64_t value, int64_t multiple) { return ceil_divide(value, multiple) * multiple; }

// C in blocks: `parts` of them in a grid whose blocks have the least circumference, because
// every block packs its rows of A and its columns of B.
template <class T>
void split_result(const Product<T>& p, int64_t parts, const volatile int32_t* cancel) {
  int64_t best_rows = p.m, best_columns = p.n, best = INT64_MAX;
  for (int64_t down = 1; down <= parts; ++down) {
    if (parts % down != 0) continue;
    const int64_t rows = ceil_divide(p.m, down), columns = ceil_divide(p.n, parts / down);
    if (rows + columns < best) {
      best = rows + columns;
      best_rows = rows;
      best_columns = columns;
    }
  }
  const int64_t rows = round_up(best_rows, kRounding), columns = round_up(best_columns, kRounding);
  const int64_t across = ceil_divide(p.n, columns);
  parallel_for(ceil_divide(p.m, rows) * across, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t part = begin; part < end && !is_raised(cancel); ++part) {
      const int64_t row = part / across * rows, column = part % across * columns;
      multiply_as_worker(p.block(row, std::min(rows, p.m - row), column, std::min(columns, p.n - column)));
    }
  });
}

// A small C with a large k: each part sums its range of k into a C of its own; these are added in order,
// so that the result does not depend on which thread was first.
template <class T>
void split_depth(const Product<T>& p, int64_t parts) {
  const int64_t depth = round_up(ceil_divide(p.k, parts), kRounding);
  parts = ceil_divide(p.k, depth);
  const int64_t size = p.m * p.n;
  const Ref<Block> block = Pool::allocate(static_cast<size_t>(parts * size) * sizeof(T));
  T* const sums = static_cast<T*>(block->data());
  parallel_for(parts, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t first = part * depth;
      multiply_as_worker(p.depth(first, std::min(depth, p.k - first), sums + part * size, p.n, T(0)));
    }
  });
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      T sum = sums[i * p.n + j];
      for (int64_t part = 1; part < parts; ++part) sum += sums[part * size + i * p.n + j];
      T& c = p.c[i * p.ldc + j];
      c = p.beta == T(0) ? sum : sum + p.beta * c;
    }
  }
}

// Whether products may be cut into parts: not when BLAS would start threads of its own for each.
template <class T>
bool may_split() {
  return !in_parallel_region() &&
         (SingleThreadedBlas::possible() || (blas_gemm<T>() == nullptr && blas_gemv<T>() == nullptr));
}

// The smallest edge of a block of C that is worth a thread of its own.
template <class T>
int64_t block_edge(const Product<T>& p) {
  if (!p.is_vector()) return kBlockEdge;
  // Rows of what is stored can be dealt out in small groups; columns should be long pieces of rows.
  const bool by_rows = p.n == 1 ? !p.a.transposed() : p.b.transposed();
  return by_rows ? 4 : 512;
}

// Ends of the blocks of rows: for each thread as many, which together are its rows.  Blocks are multiples of
// `unit` and have at most about `wanted` rows; a thread's last ones shrink, so that a thread that was slower
// (by 4 %, measured, when something else used its processor) leaves the others little to wait for.  `least`
// rows are worth a block.  Some of the last thread's blocks may be empty.
std::vector<int64_t> ends_of_blocks(int64_t rows, int64_t unit, int64_t wanted, int64_t least, int64_t threads) {
  const int64_t share = ceil_divide(ceil_divide(rows, unit), threads) * unit;
  least = threads > 1 ? std::min(least, wanted) : wanted;
  std::vector<int64_t> ends;
  for (int64_t end = 0; end < share;) {
    const int64_t size = std::clamp((share - end) / 2, least, wanted);
    end = std::min(end + std::max<int64_t>(size / unit, 1) * unit, share);
    ends.push_back(end);
  }
  const size_t count = ends.size();
  for (int64_t i = 1; i < threads; ++i) {
    for (size_t j = 0; j < count; ++j) ends.push_back(i * share + ends[j]);
  }
  for (int64_t& end : ends) end = std::min(end, rows);
  return ends;
}

// C by blocks of rows, all threads sharing the packed B; done(begin, end) after each block.  Blocks begin
// at multiples of `unit` and have at most about `wanted` rows.  False, and nothing done, when there are too
// few rows for the threads or there is no memory for B.
template <class T, class Done>
bool multiply_in_row_blocks(const Product<T>& p, int64_t unit, int64_t wanted, const volatile int32_t* cancel,
                            Done&& done) {
  if constexpr (is_complex<T>) {
    return false;
  } else {
    const int threads = in_parallel_region() ? 1 : num_threads();  // asked once: another thread may set it
    const auto block = block_product(p);
    if (p.m < kBlockEdge * threads || !block || !SharedProduct<T>::suits(*block)) return false;
    if (ceil_divide(p.m, unit) < threads) return false;
    std::optional<SharedProduct<T>> shared;
    try {
      shared.emplace(*block, threads);
    } catch (const OutOfMemory&) {  // the other ways need no block for all of B
      return false;
    }
    const std::vector<int64_t> ends = ends_of_blocks(p.m, unit, wanted, shared->least_rows(), threads);
    const auto count = static_cast<int64_t>(ends.size());
    std::vector<std::optional<typename SharedProduct<T>::Part>> parts(static_cast<size_t>(threads));
    parallel_for_each(count, threads, [&](int64_t i, int worker) {
      const int64_t first = i > 0 ? ends[static_cast<size_t>(i) - 1] : 0, last = ends[static_cast<size_t>(i)];
      if (first == last || is_raised(cancel)) return;
      auto& part = parts[static_cast<size_t>(worker)];
      if (!part) part.emplace(*shared);
      part->multiply_rows(first, last - first);
      done(first, last);
    });
    return true;
  }
}

template <class T>
void split_product(const Product<T>& p, const volatile int32_t* cancel) {
  const double work = p.work();
  const bool vector = p.is_vector();
  const double threshold = vector ? kSplitElements : kSplitWork;
  if (work <= kBlasSerialWork && work <= threshold) {
    multiply(p);
    return;
  }
  const SingleThreadedBlas single_threaded_blas;
  const double pieces = work / threshold;
  const int64_t threads = std::min<int64_t>(num_threads(), static_cast<int64_t>(std::min(pieces, 1e6)));
  if (!may_split<T>() || (threads < 2 && work <= kLargestPart)) {
    multiply(p);
    return;
  }
  const int64_t edge = block_edge(p);
  const int64_t blocks = std::max<int64_t>(p.m / edge, 1) * std::max<int64_t>(p.n / edge, 1);
  if (blocks < threads && p.k >= 2 * kSmallestDepth &&
      static_cast<double>(p.m) * static_cast<double>(p.n) < kLargestSum) {
    split_depth(p, std::min(threads, p.k / kSmallestDepth));
    return;
  }
  const bool balance = work / static_cast<double>(threads) > (vector ? 16 * kSplitElements : kBalanceWork);
  const int64_t wanted =
      std::max(balance ? 2 * threads : threads, static_cast<int64_t>(std::min(work / kLargestPart, 1e6)));
  if (multiply_in_row_blocks(p, 1, ceil_divide(p.m, wanted), cancel, [](int64_t, int64_t) {})) return;
  split_result(p, std::min(wanted, blocks), cancel);
}

template <class T>
T scalar_of(int64_t real_bits, int64_t imag_bits) {
  const double real = std::bit_cast<double>(real_bits);
  if constexpr (is_complex<T>) {
    using Part = typename T::value_type;
    return T(static_cast<Part>(real), static_cast<Part>(std::bit_cast<double>(imag_bits)));
  } else {
    (void)imag_bits;
    return static_cast<T>(real);
  }
}

template <class T>
Product<T> product_of(void* const* buffers, const GemmParams& g, int64_t index) {
  const int64_t inner = index % g.batch, outer = index / g.batch;
  return {{static_cast<T*>(buffers[0]) + inner * g.stride_a + outer * g.outer_stride_a, g.lda,
           static_cast<Operand>(g.operand_a)},
          {static_cast<T*>(buffers[1]) + inner * g.stride_b + outer * g.outer_stride_b, g.ldb,
           static_cast<Operand>(g.operand_b)},
          static_cast<T*>(buffers[2]) + inner * g.stride_c + outer * g.outer_stride_c,
          g.ldc,
          g.m,
          g.n,
          g.k,
          scalar_of<T>(g.alpha_real, g.alpha_imag),
          scalar_of<T>(g.beta_real, g.beta_imag)};
}

template <class T>
void run_batch(void* const* buffers, const GemmParams& g, const volatile int32_t* cancel) {
  const double work =
      static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(std::max<int64_t>(g.k, 1));
  const int64_t batch = g.batch * g.outer;
  const bool spread = batch >= num_threads() || work <= kSplitWork;
  if (batch > 1 && spread && work * static_cast<double>(batch) > kSplitWork && may_split<T>() &&
      work <= kLargestPart) {
    const SingleThreadedBlas single_threaded_blas;
    const int64_t grain = std::max<int64_t>(static_cast<int64_t>(kSplitWork / 4 / work), 1);
    parallel_for(batch, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end && !is_raised(cancel); ++i)
        multiply_as_worker(product_of<T>(buffers, g, i));
    });
    return;
  }
  for (int64_t i = 0; i < batch && !is_raised(cancel); ++i)
    split_product(product_of<T>(buffers, g, i), cancel);
}

// A product and what follows on its rows, by blocks of rows that stay in the second-level cache.
template <class T>
bool run_tiled(void* const* buffers, const GemmParams& g, const volatile int32_t* cancel,
               const RowTiles& tiles) {
  constexpr int64_t kRows = 168, kBlockBytes = 256 * 1024, kFewestOfBlas = 112;
  const int64_t by_size = kBlockBytes / std::max<int64_t>(g.n * static_cast<int64_t>(sizeof(T)), 1);
  const auto done = [&](int64_t begin, int64_t end) { tiles.done(tiles.context, begin, end); };
  const int64_t batch = g.batch * g.outer;
  if (batch == 1) {
    const Product<T> p = product_of<T>(buffers, g, 0);
    if (multiply_in_row_blocks(p, tiles.unit, kRows, cancel, done)) return true;
  }
  // Every block of rows packs all of B again: with fewer rows that shows.  And row blocks in parallel would
  // have every worker start BLAS's own threads.
  const int64_t rows = batch * g.m, threads = in_parallel_region() ? 1 : num_threads();
  const int64_t block = round_up(std::max(by_size, kFewestOfBlas), tiles.unit);
  if (rows < block * threads || (threads > 1 && !SingleThreadedBlas::possible())) return false;
  const SingleThreadedBlas single_threaded_blas;
  parallel_for(rows, block, [&](int64_t begin, int64_t end, int) {
    while (begin < end && !is_raised(cancel)) {
      const int64_t stop = std::min(begin + block, end);
      for (int64_t row = begin; row < stop;) {
        const int64_t first = row % g.m, count = std::min(stop - row, g.m - first);
        multiply_as_worker(product_of<T>(buffers, g, row / g.m).block(first, count, 0, g.n));
        row += count;
      }
      done(begin, stop);
      begin = stop;
    }
  });
  return true;
}

// Calls body with a value of the C++ type of `dtype`.
template <class Body>
void with_type(int64_t dtype, Body&& body) {
  switch (static_cast<DType>(dtype)) {
    case DType::Float32:
      return body(float{});
    case DType::Float64:
      return body(double{});
    case DType::Complex64:
      return body(std::complex<float>{});
    case DType::Complex128:
      return body(std::complex<double>{});
    default:
      throw Error(ErrorKind::Value,
                  "matrix product: expected float32, float64, complex64 or complex128, got " +
                      (is_valid_dtype(dtype) ? std::string(name(static_cast<DType>(dtype)))
                                             : "dtype code " + std::to_string(dtype)));
  }
}

const GemmParams& gemm_params(const int64_t* params) { return *reinterpret_cast<const GemmParams*>(params); }

void check_range(const char* routine, const char* what, int64_t value, int64_t lowest,
                 int64_t highest = INT64_MAX) {
  if (value >= lowest && value <= highest) return;
  throw Error(ErrorKind::Value, std::string(routine) + ": expected " + what + " of at least " +
                                    std::to_string(lowest) +
                                    (highest == INT64_MAX ? "" : " and at most " + std::to_string(highest)) +
                                    ", got " + std::to_string(value));
}

// Stored rows must not overlap.
void check_leading(const char* routine, const char* what, int64_t leading, int64_t operand, int64_t rows,
                   int64_t columns) {
  const bool transposed = operand != static_cast<int64_t>(Operand::AsStored);
  const int64_t stored_rows = transposed ? columns : rows, length = transposed ? rows : columns;
  check_range(routine, what, leading, stored_rows > 1 ? length : 0);
}

// A gemv as the gemm it is: x is k x 1, y is m x 1.
GemmParams gemm_of(const GemvParams& v) {
  const auto as_stored = static_cast<int64_t>(Operand::AsStored);
  return {v.dtype,
          v.operand_a,
          as_stored,
          v.m,
          1,
          v.k,
          v.lda,
          v.stride_x,
          v.stride_y,
          v.batch,
          v.batch_stride_a,
          v.batch_stride_x,
          v.batch_stride_y,
          v.alpha_real,
          v.alpha_imag,
          v.beta_real,
          v.beta_imag,
          1,
          0,
          0,
          0};
}

}  // namespace

void run_gemm(void* const* buffers, const int64_t* params, Context& context) {
  const GemmParams& g = gemm_params(params);
  with_type(g.dtype, [&](auto zero) { run_batch<decltype(zero)>(buffers, g, context.cancel); });
}

bool run_gemm_tiled(void* const* buffers, const int64_t* params, Context& context, const RowTiles& tiles) {
  const GemmParams& g = gemm_params(params);
  bool done = false;
  with_type(g.dtype,
            [&](auto zero) { done = run_tiled<decltype(zero)>(buffers, g, context.cancel, tiles); });
  return done;
}

void check_gemm(const int64_t* params) {
  const GemmParams& g = gemm_params(params);
  with_type(g.dtype, [](auto) {});
  check_range("gemm", "a form of the first operand", g.operand_a, 0, 2);
  check_range("gemm", "a form of the second operand", g.operand_b, 0, 2);
  check_range("gemm", "m", g.m, 0);
  check_range("gemm", "n", g.n, 0);
  check_range("gemm", "k", g.k, 0);
  check_range("gemm", "a batch", g.batch, 0);
  check_range("gemm", "an outer batch", g.outer, 0);
  check_leading("gemm", "a leading dimension of the first operand", g.lda, g.operand_a, g.m, g.k);
  check_leading("gemm", "a leading dimension of the second operand", g.ldb, g.operand_b, g.k, g.n);
  check_leading("gemm", "a leading dimension of the result", g.ldc, 0, g.m, g.n);
}

void run_gemv(void* const* buffers, const int64_t* params, Context& context) {
  const GemmParams g = gemm_of(*reinterpret_cast<const GemvParams*>(params));
  with_type(g.dtype, [&](auto zero) { run_batch<decltype(zero)>(buffers, g, context.cancel); });
}

void check_gemv(const int64_t* params) {
  const GemmParams g = gemm_of(*reinterpret_cast<const GemvParams*>(params));
  check_gemm(reinterpret_cast<const int64_t*>(&g));
}

}  // namespace jato
