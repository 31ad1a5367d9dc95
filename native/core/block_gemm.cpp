#include "block_gemm.h"

#include <algorithm>
#include <utility>

#include "threadpool.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define JATO_AVX512 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,fma")))
// Inlined into functions of the same target only.
#define JATO_AVX512_INLINE JATO_AVX512 __attribute__((always_inline)) inline

namespace jato {
namespace {

constexpr int kRows = 14;           // rows of the register tile: 28 accumulators, 2 of B, 1 of A
constexpr int64_t kDepth = 256;     // a panel of B: 256 x 2 vectors = 32 KiB
constexpr int64_t kRowBlock = 336;  // rows of A that stay in the second-level cache: 336 x 256 floats
constexpr int64_t kMostColumns = 4096;

template <class T>
struct Vector;

template <>
struct Vector<float> {
  using Type = __m512;
  using Mask = __mmask16;
  static constexpr int kLanes = 16;
  JATO_AVX512_INLINE static Type zero() { return _mm512_setzero_ps(); }
  JATO_AVX512_INLINE static Type load(const float* p) { return _mm512_loadu_ps(p); }
  JATO_AVX512_INLINE static Type load(const float* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
  JATO_AVX512_INLINE static void store(float* p, Type v) { _mm512_storeu_ps(p, v); }
  JATO_AVX512_INLINE static void store(float* p, Type v, Mask m) { _mm512_mask_storeu_ps(p, m, v); }
  JATO_AVX512_INLINE static Type spread(const float* p) { return _mm512_set1_ps(*p); }
  JATO_AVX512_INLINE static Type add(Type x, Type y) { return _mm512_add_ps(x, y); }
  JATO_AVX512_INLINE static Type fma(Type x, Type y, Type z) { return _mm512_fmadd_ps(x, y, z); }
};

template <>
struct Vector<double> {
  using Type = __m512d;
  using Mask = __mmask8;
  static constexpr int kLanes = 8;
  JATO_AVX512_INLINE static Type zero() { return _mm512_setzero_pd(); }
  JATO_AVX512_INLINE static Type load(const double* p) { return _mm512_loadu_pd(p); }
  JATO_AVX512_INLINE static Type load(const double* p, Mask m) { return _mm512_maskz_loadu_pd(m, p); }
  JATO_AVX512_INLINE static void store(double* p, Type v) { _mm512_storeu_pd(p, v); }
  JATO_AVX512_INLINE static void store(double* p, Type v, Mask m) { _mm512_mask_storeu_pd(p, m, v); }
  JATO_AVX512_INLINE static Type spread(const double* p) { return _mm512_set1_pd(*p); }
  JATO_AVX512_INLINE static Type add(Type x, Type y) { return _mm512_add_pd(x, y); }
  JATO_AVX512_INLINE static Type fma(Type x, Type y, Type z) { return _mm512_fmadd_pd(x, y, z); }
};

template <class T>
typename Vector<T>::Mask mask_of(int64_t lanes) {
  using V = Vector<T>;
  const int64_t count = std::clamp<int64_t>(lanes, 0, V::kLanes);
  return static_cast<typename V::Mask>((1u << count) - 1u);
}

// A tile of C: Rows rows by Vectors vectors, `columns` of whose columns exist.
//
//   a: the tile's rows of A, a_row apart; a_column between its columns
//   b: a packed panel, Vectors vectors for each k
template <class T, int Rows, int Vectors>
JATO_AVX512 void tile(int64_t k, const T* a, int64_t a_row, int64_t a_column, const T* b, T* c, int64_t ldc,
                      int64_t columns, bool accumulate) {
  using V = Vector<T>;
  typename V::Type sum[Rows][Vectors];
#pragma GCC unroll 14
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < Vectors; ++j) sum[i][j] = V::zero();
  }
  for (int64_t l = 0; l < k; ++l) {
    typename V::Type column[Vectors];
#pragma GCC unroll 2
    for (int j = 0; j < Vectors; ++j) column[j] = V::load(b + j * V::kLanes);
#pragma GCC unroll 14
    for (int i = 0; i < Rows; ++i) {
      const typename V::Type factor = V::spread(a + i * a_row);
#pragma GCC unroll 2
      for (int j = 0; j < Vectors; ++j) sum[i][j] = V::fma(factor, column[j], sum[i][j]);
    }
    a += a_column;
    b += Vectors * V::kLanes;
  }
  typename V::Mask mask[Vectors];
#pragma GCC unroll 2
  for (int j = 0; j < Vectors; ++j) mask[j] = mask_of<T>(columns - j * V::kLanes);
#pragma GCC unroll 14
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < Vectors; ++j) {
      T* const place = c + i * ldc + j * V::kLanes;
      typename V::Type value = sum[i][j];
      if (accumulate) value = V::add(value, V::load(place, mask[j]));
      V::store(place, value, mask[j]);
    }
  }
}

template <class T>
using TileFn = void (*)(int64_t, const T*, int64_t, int64_t, const T*, T*, int64_t, int64_t, bool);

template <class T, int Vectors, int... Rows>
constexpr auto tiles(std::integer_sequence<int, Rows...>) {
  struct Table {
    TileFn<T> of_rows[kRows + 1];
  };
  return Table{{nullptr, &tile<T, Rows + 1, Vectors>...}};
}

// k x `columns` of B from `b` on, as `Vectors` vectors for each k, zeros where there is no column.
template <class T>
JATO_AVX512 void pack_panel(const T* b, int64_t b_row, int64_t b_column, int64_t k, int64_t columns,
                            int vectors, T* panel) {
  using V = Vector<T>;
  const int width = vectors * V::kLanes;
  if (b_column == 1) {
    for (int64_t l = 0; l < k; ++l, b += b_row, panel += width) {
      for (int j = 0; j < vectors; ++j)
        V::store(panel + j * V::kLanes, V::load(b + j * V::kLanes, mask_of<T>(columns - j * V::kLanes)));
    }
    return;
  }
  for (int64_t j = 0; j < width; ++j) {
    for (int64_t l = 0; l < k; ++l) panel[l * width + j] = j < columns ? b[l * b_row + j * b_column] : T(0);
  }
}

// `rows` x k of A as `rows` elements for each k.
template <class T>
void pack_rows(const T* a, int64_t a_row, int64_t a_column, int64_t rows, int64_t k, T* packed) {
  if (a_column == 1) {
    for (int64_t i = 0; i < rows; ++i) {
      const T* const row = a + i * a_row;
      for (int64_t l = 0; l < k; ++l) packed[l * rows + i] = row[l];
    }
    return;
  }
  for (int64_t l = 0; l < k; ++l) {
    for (int64_t i = 0; i < rows; ++i) packed[l * rows + i] = a[l * a_column + i * a_row];
  }
}

// Rows of A can be read where they are when they do not fall on the same cache sets and are
// not read often enough to pay for packing.
template <class T>
bool reads_in_place(const BlockProduct<T>& p) {
  if (p.a_column != 1) return false;
  const int64_t bytes = p.a_row * static_cast<int64_t>(sizeof(T));
  const int64_t aliased = bytes % 4096;
  return p.m < kRows || (p.n <= 512 && aliased >= 64 && aliased <= 4096 - 64);
}

int64_t ceil_divide(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

template <class T>
void multiply_block(const BlockProduct<T>& p) {
  using V = Vector<T>;
  constexpr auto wide = tiles<T, 2>(std::make_integer_sequence<int, kRows>{});
  constexpr auto narrow = tiles<T, 1>(std::make_integer_sequence<int, kRows>{});
  constexpr int kColumns = 2 * V::kLanes;
  const int64_t depth = ceil_divide(p.k, ceil_divide(p.k, kDepth));
  const int64_t most_columns = std::min(p.n, kMostColumns);
  const bool in_place = reads_in_place(p);
  const int64_t row_block = std::min(p.m, kRowBlock);
  const int64_t panel_elements = depth * ceil_divide(most_columns, kColumns) * kColumns;
  const int64_t a_elements = in_place ? 0 : depth * row_block;
  T* const panels =
      static_cast<T*>(thread_scratch(static_cast<size_t>(panel_elements + a_elements) * sizeof(T)));
  T* const packed = panels + panel_elements;

  for (int64_t left = 0; left < p.n; left += most_columns) {
    const int64_t columns = std::min(most_columns, p.n - left);
    for (int64_t first = 0; first < p.k; first += depth) {
      const int64_t k = std::min(depth, p.k - first);
      const bool accumulate = p.accumulate || first > 0;
      for (int64_t j = 0; j < columns; j += kColumns) {
        const int64_t here = std::min<int64_t>(kColumns, columns - j);
        pack_panel(p.b + first * p.b_row + (left + j) * p.b_column, p.b_row, p.b_column, k, here,
                   here <= V::kLanes ? 1 : 2, panels + j * k);
      }
      for (int64_t top = 0; top < p.m; top += row_block) {
        const int64_t rows = std::min(row_block, p.m - top);
        const T* const a = p.a + top * p.a_row + first * p.a_column;
        if (!in_place) {
          for (int64_t i = 0; i < rows; i += kRows)
            pack_rows(a + i * p.a_row, p.a_row, p.a_column, std::min<int64_t>(kRows, rows - i), k,
                      packed + i * k);
        }
        for (int64_t j = 0; j < columns; j += kColumns) {
          const int64_t here = std::min<int64_t>(kColumns, columns - j);
          const auto& table = here <= V::kLanes ? narrow.of_rows : wide.of_rows;
          for (int64_t i = 0; i < rows; i += kRows) {
            const int64_t count = std::min<int64_t>(kRows, rows - i);
            const T* const tile_a = in_place ? a + i * p.a_row : packed + i * k;
            table[count](k, tile_a, in_place ? p.a_row : 1, in_place ? 1 : count, panels + j * k,
                         p.c + (top + i) * p.ldc + left + j, p.ldc, here, accumulate);
          }
        }
      }
    }
  }
}

bool has_avx512() {
  static const bool found = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  return found;
}

template <class T>
bool run(const BlockProduct<T>& product) {
  if (!has_avx512() || product.k <= 0) return false;
  multiply_block(product);
  return true;
}

}  // namespace

bool block_gemm(const BlockProduct<float>& product) { return run(product); }
bool block_gemm(const BlockProduct<double>& product) { return run(product); }

}  // namespace jato

#else

namespace jato {

bool block_gemm(const BlockProduct<float>&) { return false; }
bool block_gemm(const BlockProduct<double>&) { return false; }

}  // namespace jato

#endif
