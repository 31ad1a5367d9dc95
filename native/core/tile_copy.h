// Rows of an array into a tile that holds them column by column, and back.  Compiled kernels call these
// through KernelArgs::routines.
//
//   in    tile[c * pitch + r] = array[r * step + c]        r < rows <= pitch, c < columns
//   out   array[r * step + c] = tile[c * pitch + r]
//
// The pitch is a multiple of the lanes, the tile has room for a multiple of `lanes` columns; what it holds beyond `rows` and `columns` is not
// defined.  Blocks of lanes x lanes elements are transposed in registers: n log n shuffles for n vectors,
// where a gather takes some twenty cycles for each.
#pragma once
#include <cstdint>

namespace jato {

// `step` in elements.
using TileCopyFn = void (*)(void* tile, void* array, int64_t step, int64_t rows, int64_t columns,
                            int64_t pitch);

// By element and lanes: 4 bytes x 16, 4 bytes x 8, 8 bytes x 8; first `in`, then `out`.
// Mirrored by ROUTINES in compiler/llvm/abi.py.
constexpr int kTileCopies = 6;
const TileCopyFn* tile_copies();

}  // namespace jato
