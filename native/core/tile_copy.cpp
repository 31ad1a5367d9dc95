#include "tile_copy.h"

#include <algorithm>

#include "register_tile.h"
#include "square_block.h"

namespace jato {

namespace {

template <class T, bool Out>
void plain_copy(void* tile_memory, void* array_memory, int64_t step, int64_t rows, int64_t columns, int64_t pitch) {
  T* const tile = static_cast<T*>(tile_memory);
  T* const array = static_cast<T*>(array_memory);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      T& inside = tile[c * pitch + r];
      T& outside = array[r * step + c];
      if constexpr (Out) outside = inside;
      else inside = outside;
    }
  }
}

#if JATO_HAS_AVX512_TILES

// `kColumns` vectors of rows that follow each other, 16 rows of kColumns elements: places of the elements of
// column c (in) or of the c-th vector (out) among two vectors at a time, for _mm512_permutex2var.  Step s
// takes what the vectors before s gave (the accumulated one, kept places) and vector s.
struct Places {
  alignas(64) int32_t at[8][8][16];
};

constexpr uintptr_t kAhead = 1024;  // bytes

template <int kColumns, bool Out, bool Back>
constexpr Places places_of() {
  Places places{};
  for (int made = 0; made < kColumns; ++made) {
    for (int lane = 0; lane < 16; ++lane) {
      // in: element (row lane, column made) of the array; out: element made * 16 + lane of the array
      const int in_place = Back ? 15 - lane : lane;
      const int flat = Out ? made * 16 + lane : in_place * kColumns + made;
      const int out_place = Back ? 15 - flat / kColumns : flat / kColumns;
      const int source = Out ? flat % kColumns : flat / 16, place = Out ? out_place : flat % 16;
      for (int s = 1; s < kColumns; ++s) {
        // the first step takes from vectors 0 and 1, later ones keep the lane unless it is from vector s
        places.at[made][s][lane] = source == s ? 16 + place : s == 1 && source == 0 ? place : lane;
      }
    }
  }
  return places;
}

template <int kColumns, bool Out, bool Back>
JATO_AVX512_INLINE void copy_contiguous(float* tile, float* array, int64_t pitch) {
  static constexpr Places places = places_of<kColumns, Out, Back>();
  __m512 v[kColumns], made[kColumns];
  for (int s = 0; s < kColumns; ++s) {
    v[s] = Out ? _mm512_load_ps(tile + s * pitch) : _mm512_loadu_ps(array + 16 * s);
    // A later tile's; past the end of the array it does no harm.
    const auto address = reinterpret_cast<uintptr_t>(array + 16 * s);
    __builtin_prefetch(reinterpret_cast<const void*>(Back ? address - kAhead : address + kAhead), Out);
  }
  for (int m = 0; m < kColumns; ++m) {
    made[m] = v[0];
    for (int s = 1; s < kColumns; ++s)
      made[m] = _mm512_permutex2var_ps(made[m], _mm512_load_si512(places.at[m][s]), v[s]);
  }
  for (int m = 0; m < kColumns; ++m) {
    if constexpr (Out) _mm512_storeu_ps(array + 16 * m, made[m]);
    else _mm512_store_ps(tile + m * pitch, made[m]);
  }
}

template <int kColumns, bool Out, bool Back>
JATO_AVX512 void all_contiguous(float* tile, float* array, int64_t rows, int64_t pitch) {
  for (int64_t r = 0; r < rows; r += 16) {
    float* const first = Back ? array - (r + 15) * kColumns : array + r * kColumns;
    copy_contiguous<kColumns, Out, Back>(tile + r, first, pitch);
  }
}

// Whole vectors of rows that follow each other (Back: each before the one before it), of few elements:
// vectors of the array, sorted.
template <bool Out, bool Back>
JATO_AVX512 bool copied_contiguous(float* tile, float* array, int64_t rows, int64_t columns, int64_t pitch) {
  switch (columns) {
    case 2: all_contiguous<2, Out, Back>(tile, array, rows, pitch); return true;
    case 3: all_contiguous<3, Out, Back>(tile, array, rows, pitch); return true;
    case 4: all_contiguous<4, Out, Back>(tile, array, rows, pitch); return true;
    case 5: all_contiguous<5, Out, Back>(tile, array, rows, pitch); return true;
    case 6: all_contiguous<6, Out, Back>(tile, array, rows, pitch); return true;
    default: return false;
  }
}

template <class Block>
JATO_AVX512_INLINE uint32_t present(int64_t count) {
  return count >= Block::kLanes ? (1u << Block::kLanes) - 1 : (1u << count) - 1;
}

// One vector of rows.  Rows beyond the last one are read from the last one again.
template <class Block, class T>
JATO_AVX512 void block_in(T* tile, const T* array, int64_t step, int64_t rows, int64_t columns, int64_t pitch) {
  constexpr int kLanes = Block::kLanes;
  for (int64_t c = 0; c < columns; c += kLanes, array += kLanes, tile += kLanes * pitch) {
    const uint32_t mask = present<Block>(columns - c);
    typename Block::V v[kLanes];
    const T* row = array;
    for (int k = 0; k < kLanes; ++k) {
      v[k] = Block::load(row, mask);
      // the same row of the next tile
      __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(row) +
                                                       static_cast<uintptr_t>(step * pitch) * sizeof(T)));
      row += k + 1 < rows ? step : 0;
    }
    Block::transpose(v);
    for (int k = 0; k < kLanes; ++k) Block::store(tile + k * pitch, v[k]);
  }
}

template <class Block, class T>
JATO_AVX512 void block_out(const T* tile, T* array, int64_t step, int64_t rows, int64_t columns, int64_t pitch) {
  constexpr int kLanes = Block::kLanes;
  for (int64_t c = 0; c < columns; c += kLanes, array += kLanes, tile += kLanes * pitch) {
    const uint32_t mask = present<Block>(columns - c);
    typename Block::V v[kLanes];
    for (int k = 0; k < kLanes; ++k) v[k] = Block::load(tile + k * pitch);
    Block::transpose(v);
    if (rows >= kLanes) {
      for (int k = 0; k < kLanes; ++k) Block::store(array + k * step, v[k], mask);
    } else {
      for (int k = 0; k < kLanes; ++k) {
        if (k < rows) Block::store(array + k * step, v[k], mask);
      }
    }
  }
}

template <class Block, bool Out>
JATO_AVX512 void fast_copy(void* tile_memory, void* array_memory, int64_t step, int64_t rows, int64_t columns,
                           int64_t pitch) {
  using T = typename Block::T;
  constexpr int kLanes = Block::kLanes;
  T* tile = static_cast<T*>(tile_memory);
  T* array = static_cast<T*>(array_memory);
  if constexpr (kLanes == 16) {
    if (rows % kLanes == 0 && step == columns &&
        copied_contiguous<Out, false>(tile, array, rows, columns, pitch)) {
      return;
    }
    if (rows % kLanes == 0 && step == -columns &&
        copied_contiguous<Out, true>(tile, array, rows, columns, pitch)) {
      return;
    }
  }
  for (; rows > 0; rows -= kLanes, tile += kLanes, array += kLanes * step) {
    if constexpr (Out) block_out<Block, T>(tile, array, step, rows, columns, pitch);
    else block_in<Block, T>(tile, array, step, rows, columns, pitch);
  }
}

constexpr TileCopyFn kFast[kTileCopies] = {
    fast_copy<Block4x16, false>, fast_copy<Block4x8, false>, fast_copy<Block8x8, false>,
    fast_copy<Block4x16, true>,  fast_copy<Block4x8, true>,  fast_copy<Block8x8, true>};

#endif

constexpr TileCopyFn kPlain[kTileCopies] = {
    plain_copy<uint32_t, false>, plain_copy<uint32_t, false>, plain_copy<uint64_t, false>,
    plain_copy<uint32_t, true>,  plain_copy<uint32_t, true>,  plain_copy<uint64_t, true>};

}  // namespace

const TileCopyFn* tile_copies() {
#if JATO_HAS_AVX512_TILES
  if (has_avx512()) return kFast;
#endif
  return kPlain;
}

}  // namespace jato
