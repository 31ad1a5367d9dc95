// The register tile of matrix products: up to 14 rows by 2 vectors of C, held in registers while the
// inner dimension runs.  Shared by block_gemm.cpp and convolution.cpp.
//
//   Run         a stretch of the inner dimension: where it begins in A and in B, and its length
//   TileShape   the strides within A and B, for all runs of a tile
//   tile_table  the routine for each number of rows, for one or two vectors
//
// Where the machine has no AVX-512 the tiles are plain loops: right, and slow.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

#include "simd.h"
#include "square_block.h"

namespace jato {

constexpr int kTileRows = 14;  // 28 accumulators, 2 vectors of B, 1 of A
// Elements of one vector.
template <class T>
constexpr int kTileLanes = 64 / static_cast<int>(sizeof(T));
template <class T>
constexpr int kTileColumns = 2 * kTileLanes<T>;

// Elements from the tile's pointers on.
struct Run {
  int64_t a, b, length;
};

struct TileShape {
  int64_t a_row, a_column, b_row;  // elements between rows and columns of A, between rows of B
};

// `columns` of C exist (at most two vectors); its rows are ldc apart.
template <class T>
using TileFn = void (*)(const Run* runs, int64_t count, const TileShape& shape, const T* a, const T* b, T* c,
                        int64_t ldc, int64_t columns, bool accumulate);

template <class T>
struct TileTable {
  TileFn<T> narrow[kTileRows + 1];  // by number of rows; one vector
  TileFn<T> wide[kTileRows + 1];    // two vectors
  TileFn<T> of(int64_t rows, int64_t columns) const {
    return columns <= kTileLanes<T> ? narrow[rows] : wide[rows];
  }
};

template <class T, int Rows, int Vectors>
void plain_tile(const Run* runs, int64_t count, const TileShape& shape, const T* a, const T* b, T* c,
                int64_t ldc, int64_t columns, bool accumulate) {
  constexpr int kWidth = Vectors * kTileLanes<T>;
  T sum[Rows][kWidth] = {};
  for (int64_t r = 0; r < count; ++r) {
    const T *left = a + runs[r].a, *right = b + runs[r].b;
    for (int64_t l = 0; l < runs[r].length; ++l, left += shape.a_column, right += shape.b_row) {
      for (int i = 0; i < Rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) sum[i][j] += left[i * shape.a_row] * right[j];
      }
    }
  }
  for (int i = 0; i < Rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      c[i * ldc + j] = accumulate ? c[i * ldc + j] + sum[i][j] : sum[i][j];
    }
  }
}

#if JATO_HAS_AVX512_TILES

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

// With Packs, rows of B are copied to `packed` one after another as they pass.
template <class T, int Rows, int Vectors, bool Packs>
JATO_AVX512_INLINE void run_tile(const Run* runs, int64_t count, const TileShape& shape, const T* a_start,
                                 const T* b_start, T* c, int64_t ldc, int64_t columns, bool accumulate,
                                 T* packed) {
  using V = Vector<T>;
  const int64_t a_row = shape.a_row, a_column = shape.a_column, b_row = shape.b_row;
  typename V::Mask mask[Vectors];
#pragma GCC unroll 2
  for (int j = 0; j < Vectors; ++j) mask[j] = mask_of<T>(columns - j * V::kLanes);
  typename V::Type sum[Rows][Vectors];
#pragma GCC unroll 14
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < Vectors; ++j) sum[i][j] = V::zero();
  }
  // C arrives while the products are summed
#pragma GCC unroll 14
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < Vectors; ++j) __builtin_prefetch(c + i * ldc + j * V::kLanes, 1, 3);
  }
  for (int64_t r = 0; r < count; ++r) {
    const T* a = a_start + runs[r].a;
    const T* b = b_start + runs[r].b;
    for (int64_t l = runs[r].length; l > 0; --l) {
      typename V::Type column[Vectors];
#pragma GCC unroll 2
      for (int j = 0; j < Vectors; ++j) {
        column[j] = V::load(b + j * V::kLanes, mask[j]);
        if constexpr (Packs) V::store(packed + j * V::kLanes, column[j]);
      }
      if constexpr (Packs) packed += Vectors * V::kLanes;
#pragma GCC unroll 14
      for (int i = 0; i < Rows; ++i) {
        const typename V::Type factor = V::spread(a + i * a_row);
#pragma GCC unroll 2
        for (int j = 0; j < Vectors; ++j) sum[i][j] = V::fma(factor, column[j], sum[i][j]);
      }
      a += a_column;
      b += b_row;
    }
  }
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

template <class T, int Rows, int Vectors>
JATO_AVX512 void tile(const Run* runs, int64_t count, const TileShape& shape, const T* a, const T* b, T* c,
                      int64_t ldc, int64_t columns, bool accumulate) {
  run_tile<T, Rows, Vectors, false>(runs, count, shape, a, b, c, ldc, columns, accumulate, nullptr);
}

// A whole tile of kTileRows x kTileColumns from an unpacked B, which it packs on the way: that costs less than
// half of packing beforehand, which waits for memory while nothing is computed.
template <class T>
JATO_AVX512 void packing_tile(int64_t k, const TileShape& shape, const T* a, const T* b, T* c, int64_t ldc,
                              bool accumulate, T* packed) {
  const Run run{0, 0, k};
  run_tile<T, kTileRows, 2, true>(&run, 1, shape, a, b, c, ldc, kTileColumns<T>, accumulate, packed);
}

// Copies at most kTileRows elements; may write zeros up to a whole vector beyond them.
template <class T>
JATO_AVX512 void copy_short(const T* from, int64_t count, T* to) {
  using V = Vector<T>;
  for (int64_t i = 0; i < count; i += V::kLanes) V::store(to + i, V::load(from + i, mask_of<T>(count - i)));
}

inline bool has_avx512() {
  static const bool found = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  return found;
}

template <class T, int... Rows>
constexpr TileTable<T> avx512_tiles(std::integer_sequence<int, Rows...>) {
  return {{nullptr, &tile<T, Rows + 1, 1>...}, {nullptr, &tile<T, Rows + 1, 2>...}};
}

#else

template <class T>
void copy_short(const T* from, int64_t count, T* to) {
  std::copy_n(from, count, to);
}

inline bool has_avx512() { return false; }

template <class T>
void packing_tile(int64_t, const TileShape&, const T*, const T*, T*, int64_t, bool, T*) {}  // never called

#endif

template <class T, int... Rows>
constexpr TileTable<T> plain_tiles(std::integer_sequence<int, Rows...>) {
  return {{nullptr, &plain_tile<T, Rows + 1, 1>...}, {nullptr, &plain_tile<T, Rows + 1, 2>...}};
}

template <class T>
const TileTable<T>& tile_table() {
#if JATO_HAS_AVX512_TILES
  static constexpr TileTable<T> fast = avx512_tiles<T>(std::make_integer_sequence<int, kTileRows>{});
  if (has_avx512()) return fast;
#endif
  static constexpr TileTable<T> plain = plain_tiles<T>(std::make_integer_sequence<int, kTileRows>{});
  return plain;
}

// Rows of each of the tiles that `rows` rows are cut into: about equal, none above kTileRows.
inline int64_t tile_rows(int64_t rows) {
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  return tiles == 0 ? 1 : (rows + tiles - 1) / tiles;
}

#if JATO_HAS_AVX512_TILES

template <class T>
struct SquareOf;
template <>
struct SquareOf<float> {
  using Type = Block4x16;
};
template <>
struct SquareOf<double> {
  using Type = Block8x8;
};

// A panel of kTileColumns from a B whose columns are contiguous: square blocks, transposed.
template <class T>
JATO_AVX512 void pack_transposed(const T* b, int64_t b_column, int64_t k, int64_t columns, T* panel) {
  using Square = typename SquareOf<T>::Type;
  constexpr int kLanes = Square::kLanes;
  for (int64_t left = 0; left < kTileColumns<T>; left += kLanes) {
    const int64_t here = std::clamp<int64_t>(columns - left, 0, kLanes);
    for (int64_t l = 0; l < k; l += kLanes) {
      const int64_t steps = std::min<int64_t>(kLanes, k - l);
      const uint32_t mask = (1u << steps) - 1u;
      typename Square::V v[kLanes];
      for (int j = 0; j < kLanes; ++j) {
        v[j] = Square::load(b + std::min<int64_t>(left + j, columns - 1) * b_column + l, j < here ? mask : 0);
      }
      Square::transpose(v);
      T* const rows = panel + l * kTileColumns<T> + left;
      if (steps == kLanes) {
        for (int i = 0; i < kLanes; ++i) Square::store(rows + i * kTileColumns<T>, v[i]);
      } else {
        for (int i = 0; i < kLanes; ++i) {
          if (i < steps) Square::store(rows + i * kTileColumns<T>, v[i]);
        }
      }
    }
  }
}

#endif

// k x `columns` of B from `b` on as a packed panel: `width` elements for each k, zeros where there is
// no column.
template <class T>
void pack_panel(const T* b, int64_t b_row, int64_t b_column, int64_t k, int64_t columns, int64_t width,
                T* panel) {
  if (b_column == 1 && columns == kTileColumns<T> && width == kTileColumns<T>) {
    // a number of elements that the compiler knows: no call for each row
    for (int64_t l = 0; l < k; ++l, b += b_row, panel += kTileColumns<T>) {
      std::copy_n(b, kTileColumns<T>, panel);
    }
    return;
  }
  if (b_column == 1) {
    for (int64_t l = 0; l < k; ++l, b += b_row, panel += width) {
      std::copy_n(b, columns, panel);
      std::fill(panel + columns, panel + width, T(0));
    }
    return;
  }
#if JATO_HAS_AVX512_TILES
  if (b_row == 1 && width == kTileColumns<T> && has_avx512()) {
    pack_transposed(b, b_column, k, columns, panel);
    return;
  }
#endif
  // a few rows of what is stored at a time, so that both sides stay in the first-level cache
  constexpr int64_t kStretch = 64;
  for (int64_t first = 0; first < k; first += kStretch) {
    const int64_t last = std::min(k, first + kStretch);
    for (int64_t j = 0; j < width; ++j) {
      if (j >= columns) {
        for (int64_t l = first; l < last; ++l) panel[l * width + j] = T(0);
      } else {
        const T* const column = b + j * b_column;
        for (int64_t l = first; l < last; ++l) panel[l * width + j] = column[l * b_row];
      }
    }
  }
}

}  // namespace jato
