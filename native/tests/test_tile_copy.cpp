// Tile copies against element by element, at every number of rows and columns, within exact bounds.
#include "tile_copy.h"

#include <vector>

#include "check.h"

namespace jato::test {
namespace {

// The same with row 0 last in memory.
template <class T>
void rows_backwards(TileCopyFn in, TileCopyFn out, int64_t step, int64_t rows, int64_t columns, int64_t pitch,
                    int64_t lanes) {
  std::vector<T> array(static_cast<size_t>((rows - 1) * step + columns));
  for (size_t i = 0; i < array.size(); ++i) array[i] = static_cast<T>(i * 5 + 2);
  std::vector<T> room(static_cast<size_t>((columns + lanes - 1) / lanes * lanes * pitch) + 64);
  T* const tile = reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(room.data()) + 63) & ~uintptr_t{63});
  in(tile, array.data() + (rows - 1) * step, -step, rows, columns, pitch);
  std::vector<T> back(array.size(), T{0});
  out(tile, back.data() + (rows - 1) * step, -step, rows, columns, pitch);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < step; ++c) {
      const int64_t at = (rows - 1 - r) * step + c;
      if (at >= static_cast<int64_t>(array.size())) continue;
      const T value = array[static_cast<size_t>(at)];
      if (c < columns) CHECK(tile[static_cast<size_t>(c * pitch + r)] == value);
      CHECK(back[static_cast<size_t>(at)] == (c < columns ? value : T{0}));
    }
  }
}

template <class T>
void copies_both_ways(int position, int64_t lanes) {
  const TileCopyFn in = tile_copies()[position], out = tile_copies()[position + 3];
  for (int64_t pitch : {lanes, 4 * lanes})
  for (int64_t rows = 1; rows <= pitch; ++rows) {
    for (int64_t columns : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 33}) {
      for (int64_t gap : {0, 3}) {
        const int64_t step = columns + gap;
        rows_backwards<T>(in, out, step, rows, columns, pitch, lanes);
        std::vector<T> array(static_cast<size_t>((rows - 1) * step + columns));
        for (size_t i = 0; i < array.size(); ++i) array[i] = static_cast<T>(i * 7 + 1);
        std::vector<T> room(static_cast<size_t>((columns + lanes - 1) / lanes * lanes * pitch) + 64);
        T* const tile = reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(room.data()) + 63) & ~uintptr_t{63});
        in(tile, array.data(), step, rows, columns, pitch);
        std::vector<T> back(array.size(), T{0});
        out(tile, back.data(), step, rows, columns, pitch);
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < step && r * step + c < static_cast<int64_t>(array.size()); ++c) {
            const size_t at = static_cast<size_t>(r * step + c);
            if (c < columns) CHECK(tile[static_cast<size_t>(c * pitch + r)] == array[at]);
            CHECK(back[at] == (c < columns ? array[at] : T{0}));
          }
        }
      }
    }
  }
}

}  // namespace

void test_tile_copy(Runner& runner) {
  runner.run("of 4 bytes", [] {
    copies_both_ways<uint32_t>(0, 16);
    copies_both_ways<uint32_t>(1, 8);
  });
  runner.run("of 8 bytes", [] { copies_both_ways<uint64_t>(2, 8); });
}

}  // namespace jato::test
