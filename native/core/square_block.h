// Square blocks of elements transposed in registers, n log n shuffles for n vectors; for tile_copy.cpp and
// the packing of matrices.
#pragma once
#include "simd.h"

#if JATO_HAS_AVX512_TILES

namespace jato {

// Vectors of `kLanes` elements; `transpose` makes columns of the rows of a square block.
struct Block4x16 {
  using T = float;
  using V = __m512;
  static constexpr int kLanes = 16;
  JATO_AVX512_INLINE static V load(const T* from) { return _mm512_loadu_ps(from); }
  JATO_AVX512_INLINE static V load(const T* from, uint32_t mask) {
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from);
  }
  JATO_AVX512_INLINE static void store(T* to, V v) { _mm512_storeu_ps(to, v); }
  JATO_AVX512_INLINE static void store(T* to, V v, uint32_t mask) {
    _mm512_mask_storeu_ps(to, static_cast<__mmask16>(mask), v);
  }
  JATO_AVX512_INLINE static void transpose(V (&v)[16]) {
    V t[16];
    for (int q = 0; q < 16; q += 4) {  // within 128-bit parts: elements, then pairs of elements
      const V low0 = _mm512_unpacklo_ps(v[q], v[q + 1]), high0 = _mm512_unpackhi_ps(v[q], v[q + 1]);
      const V low1 = _mm512_unpacklo_ps(v[q + 2], v[q + 3]), high1 = _mm512_unpackhi_ps(v[q + 2], v[q + 3]);
      t[q] = pairs_low(low0, low1), t[q + 1] = pairs_high(low0, low1);
      t[q + 2] = pairs_low(high0, high1), t[q + 3] = pairs_high(high0, high1);
    }
    for (int k = 0; k < 4; ++k) {  // parts among the vectors k, k + 4, k + 8, k + 12
      const V even0 = _mm512_shuffle_f32x4(t[k], t[k + 4], 0x88);
      const V odd0 = _mm512_shuffle_f32x4(t[k], t[k + 4], 0xdd);
      const V even1 = _mm512_shuffle_f32x4(t[k + 8], t[k + 12], 0x88);
      const V odd1 = _mm512_shuffle_f32x4(t[k + 8], t[k + 12], 0xdd);
      v[k] = _mm512_shuffle_f32x4(even0, even1, 0x88), v[k + 8] = _mm512_shuffle_f32x4(even0, even1, 0xdd);
      v[k + 4] = _mm512_shuffle_f32x4(odd0, odd1, 0x88), v[k + 12] = _mm512_shuffle_f32x4(odd0, odd1, 0xdd);
    }
  }

 private:
  JATO_AVX512_INLINE static V pairs_low(V a, V b) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  }
  JATO_AVX512_INLINE static V pairs_high(V a, V b) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  }
};

struct Block4x8 {
  using T = float;
  using V = __m256;
  static constexpr int kLanes = 8;
  JATO_AVX512_INLINE static V load(const T* from) { return _mm256_loadu_ps(from); }
  JATO_AVX512_INLINE static V load(const T* from, uint32_t mask) {
    return _mm256_maskz_loadu_ps(static_cast<__mmask8>(mask), from);
  }
  JATO_AVX512_INLINE static void store(T* to, V v) { _mm256_storeu_ps(to, v); }
  JATO_AVX512_INLINE static void store(T* to, V v, uint32_t mask) {
    _mm256_mask_storeu_ps(to, static_cast<__mmask8>(mask), v);
  }
  JATO_AVX512_INLINE static void transpose(V (&v)[8]) {
    V t[8];
    for (int q = 0; q < 8; q += 4) {
      const V low0 = _mm256_unpacklo_ps(v[q], v[q + 1]), high0 = _mm256_unpackhi_ps(v[q], v[q + 1]);
      const V low1 = _mm256_unpacklo_ps(v[q + 2], v[q + 3]), high1 = _mm256_unpackhi_ps(v[q + 2], v[q + 3]);
      t[q] = pairs_low(low0, low1), t[q + 1] = pairs_high(low0, low1);
      t[q + 2] = pairs_low(high0, high1), t[q + 3] = pairs_high(high0, high1);
    }
    for (int k = 0; k < 4; ++k) {
      v[k] = _mm256_permute2f128_ps(t[k], t[k + 4], 0x20);
      v[k + 4] = _mm256_permute2f128_ps(t[k], t[k + 4], 0x31);
    }
  }

 private:
  JATO_AVX512_INLINE static V pairs_low(V a, V b) {
    return _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
  }
  JATO_AVX512_INLINE static V pairs_high(V a, V b) {
    return _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
  }
};

struct Block8x8 {
  using T = double;
  using V = __m512d;
  static constexpr int kLanes = 8;
  JATO_AVX512_INLINE static V load(const T* from) { return _mm512_loadu_pd(from); }
  JATO_AVX512_INLINE static V load(const T* from, uint32_t mask) {
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>(mask), from);
  }
  JATO_AVX512_INLINE static void store(T* to, V v) { _mm512_storeu_pd(to, v); }
  JATO_AVX512_INLINE static void store(T* to, V v, uint32_t mask) {
    _mm512_mask_storeu_pd(to, static_cast<__mmask8>(mask), v);
  }
  JATO_AVX512_INLINE static void transpose(V (&v)[8]) {
    V t[8];
    for (int q = 0; q < 8; q += 2) {
      t[q] = _mm512_unpacklo_pd(v[q], v[q + 1]);
      t[q + 1] = _mm512_unpackhi_pd(v[q], v[q + 1]);
    }
    for (int k = 0; k < 2; ++k) {
      const V even0 = _mm512_shuffle_f64x2(t[k], t[k + 2], 0x88);
      const V odd0 = _mm512_shuffle_f64x2(t[k], t[k + 2], 0xdd);
      const V even1 = _mm512_shuffle_f64x2(t[k + 4], t[k + 6], 0x88);
      const V odd1 = _mm512_shuffle_f64x2(t[k + 4], t[k + 6], 0xdd);
      v[k] = _mm512_shuffle_f64x2(even0, even1, 0x88), v[k + 4] = _mm512_shuffle_f64x2(even0, even1, 0xdd);
      v[k + 2] = _mm512_shuffle_f64x2(odd0, odd1, 0x88), v[k + 6] = _mm512_shuffle_f64x2(odd0, odd1, 0xdd);
    }
  }
};

}  // namespace jato

#endif
