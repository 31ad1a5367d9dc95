// Register tiles for a few columns of C, at most half a vector: each vector of B holds several steps of the
// inner dimension, `fold` of them, so that no lane is idle.
//
//   vector of B   lane j * fold + s: column j at step l + s
//   vector of A   steps l ... l + fold - 1 of one row, again and again
//   in the end    the lanes of a column are added up
//
// A product with 200 columns has 12 whole vectors and one half: 4 % of the work, for 2 %, without this.
#pragma once
#include <cstdint>

#include "register_tile.h"

namespace jato {

// (Forms with a mask of all lanes: the others make GCC 12 warn of uninitialized values in its own header.)

// How many steps of k go into one vector for this many columns; 1: columns fill it.
template <class T>
constexpr int fold_of(int64_t columns) {
  constexpr int kLanes = kTileLanes<T>;
  if (!JATO_HAS_AVX512_TILES || columns > kLanes / 2) return 1;
  return columns > kLanes / 4 ? 2 : 4;
}

// Rows of A are a_row apart and contiguous along k; b is packed by pack_folded.
template <class T>
using FoldedTileFn = void (*)(int64_t k, const T* a, int64_t a_row, const T* b, T* c, int64_t ldc,
                              int64_t columns, bool accumulate);

#if JATO_HAS_AVX512_TILES

JATO_AVX512_INLINE __m512 expand(__m512 others, uint32_t lanes, __m512 v) {
  return _mm512_mask_expand_ps(others, static_cast<__mmask16>(lanes), v);
}
JATO_AVX512_INLINE __m512d expand(__m512d others, uint32_t lanes, __m512d v) {
  return _mm512_mask_expand_pd(others, static_cast<__mmask8>(lanes), v);
}

// pack_folded for rows of B that are contiguous.
template <class T>
JATO_AVX512 void pack_folded_rows(const T* b, int64_t b_row, int64_t k, int64_t columns, int fold, T* panel) {
  using V = Vector<T>;
  const typename V::Mask mask = mask_of<T>(columns);
  const uint32_t firsts = fold == 2 ? 0x5555 : 0x1111;
  for (int64_t l = 0; l < k; l += fold, panel += V::kLanes) {
    typename V::Type steps = V::zero();
    for (int s = 0; s < fold && l + s < k; ++s) {
      steps = expand(steps, firsts << s, V::load(b + (l + s) * b_row, mask));
    }
    V::store(panel, steps);
  }
}

#endif

// k x `columns` of B, `fold` steps in each vector; zeros in lanes without a column or a step.
template <class T>
void pack_folded(const T* b, int64_t b_row, int64_t b_column, int64_t k, int64_t columns, int fold,
                 T* panel) {
#if JATO_HAS_AVX512_TILES
  if (b_column == 1 && has_avx512()) {
    pack_folded_rows(b, b_row, k, columns, fold, panel);
    return;
  }
#endif
  constexpr int kLanes = kTileLanes<T>;
  for (int64_t l = 0; l < k; l += fold, panel += kLanes) {
    const int64_t steps = std::min<int64_t>(fold, k - l);
    std::fill_n(panel, kLanes, T(0));
    for (int64_t s = 0; s < steps; ++s) {
      for (int64_t j = 0; j < columns; ++j) panel[j * fold + s] = b[(l + s) * b_row + j * b_column];
    }
  }
}

#if JATO_HAS_AVX512_TILES

template <class T, int Fold>
struct Folded;

template <>
struct Folded<float, 2> {
  static constexpr uint32_t kFirsts = 0x5555;  // lane 0 of each column
  JATO_AVX512_INLINE static __m512 spread(const float* a) {
    double pair;
    __builtin_memcpy(&pair, a, sizeof pair);
    return _mm512_castpd_ps(_mm512_set1_pd(pair));
  }
  JATO_AVX512_INLINE static __m512 total(__m512 v) {
    return _mm512_maskz_compress_ps(kFirsts, _mm512_add_ps(v, _mm512_maskz_permute_ps(0xffff, v, 0xb1)));
  }
};

template <>
struct Folded<float, 4> {
  static constexpr uint32_t kFirsts = 0x1111;
  JATO_AVX512_INLINE static __m512 spread(const float* a) {
    return _mm512_maskz_broadcast_f32x4(0xffff, _mm_loadu_ps(a));
  }
  JATO_AVX512_INLINE static __m512 total(__m512 v) {
    v = _mm512_add_ps(v, _mm512_maskz_permute_ps(0xffff, v, 0xb1));
    return _mm512_maskz_compress_ps(kFirsts, _mm512_add_ps(v, _mm512_maskz_permute_ps(0xffff, v, 0x4e)));
  }
};

template <>
struct Folded<double, 2> {
  static constexpr uint32_t kFirsts = 0x55;
  JATO_AVX512_INLINE static __m512d spread(const double* a) {
    return _mm512_maskz_broadcast_f64x2(0xff, _mm_loadu_pd(a));
  }
  JATO_AVX512_INLINE static __m512d total(__m512d v) {
    return _mm512_maskz_compress_pd(kFirsts, _mm512_add_pd(v, _mm512_maskz_permute_pd(0xff, v, 0x55)));
  }
};

template <>
struct Folded<double, 4> {
  static constexpr uint32_t kFirsts = 0x11;
  JATO_AVX512_INLINE static __m512d spread(const double* a) {
    return _mm512_maskz_broadcast_f64x4(0xff, _mm256_loadu_pd(a));
  }
  JATO_AVX512_INLINE static __m512d total(__m512d v) {
    v = _mm512_add_pd(v, _mm512_maskz_permute_pd(0xff, v, 0x55));
    return _mm512_maskz_compress_pd(kFirsts, _mm512_add_pd(v, _mm512_maskz_permutex_pd(0xff, v, 0x4e)));
  }
};

JATO_AVX512_INLINE __m512 fma_where(__mmask16 m, __m512 x, __m512 y, __m512 z) {
  return _mm512_mask3_fmadd_ps(x, y, z, m);
}
JATO_AVX512_INLINE __m512d fma_where(__mmask16 m, __m512d x, __m512d y, __m512d z) {
  return _mm512_mask3_fmadd_pd(x, y, z, static_cast<__mmask8>(m));
}

template <class T, int Rows, int Fold>
JATO_AVX512 void folded_tile(int64_t k, const T* a, int64_t a_row, const T* b, T* c, int64_t ldc,
                             int64_t columns, bool accumulate) {
  using V = Vector<T>;
  using F = Folded<T, Fold>;
  typename V::Type sum[Rows];
#pragma GCC unroll 14
  for (int i = 0; i < Rows; ++i) sum[i] = V::zero();
  int64_t l = k;
  for (; l >= Fold; l -= Fold, a += Fold, b += V::kLanes) {
    const typename V::Type column = V::load(b);
#pragma GCC unroll 14
    for (int i = 0; i < Rows; ++i) sum[i] = V::fma(F::spread(a + i * a_row), column, sum[i]);
  }
  // what is left of k, one step at a time: the other lanes must not see infinity times zero
  for (int s = 0; s < l; ++s, ++a) {
    const typename V::Type column = V::load(b);
    const auto lanes = static_cast<__mmask16>(F::kFirsts << s);
#pragma GCC unroll 14
    for (int i = 0; i < Rows; ++i) sum[i] = fma_where(lanes, V::spread(a + i * a_row), column, sum[i]);
  }
  const typename V::Mask mask = mask_of<T>(columns);
#pragma GCC unroll 14
  for (int i = 0; i < Rows; ++i) {
    typename V::Type value = F::total(sum[i]);
    if (accumulate) value = V::add(value, V::load(c + i * ldc, mask));
    V::store(c + i * ldc, value, mask);
  }
}

template <class T, int Fold, int... Rows>
constexpr FoldedTileFn<T> folded_tile_of(int64_t rows, std::integer_sequence<int, Rows...>) {
  constexpr FoldedTileFn<T> table[] = {nullptr, &folded_tile<T, Rows + 1, Fold>...};
  return table[rows];
}

// `fold` is 2 or 4.  Only where has_avx512().
template <class T>
FoldedTileFn<T> folded_tile_of(int64_t rows, int fold) {
  constexpr auto all = std::make_integer_sequence<int, kTileRows>{};
  return fold == 2 ? folded_tile_of<T, 2>(rows, all) : folded_tile_of<T, 4>(rows, all);
}

#else

template <class T>
FoldedTileFn<T> folded_tile_of(int64_t, int) {
  return nullptr;
}

#endif

}  // namespace jato
