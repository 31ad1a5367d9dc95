#include "block_gemm.h"

#include <algorithm>

#include "folded_tile.h"
#include "register_tile.h"
#include "spin.h"
#include "threadpool.h"

namespace jato {
namespace {

// A panel of B: 512 x 2 vectors = 64 KiB, which comes from the second-level cache at a cache line in 7
// cycles.  Against 256: 1 to 3 % less time for 1024 and 2048 squared, 3 % for 1000 x 500 x 200, whose C is
// written once.
constexpr int64_t kDepth = 512;
constexpr int64_t kMostColumns = 4096;
// Panels of B that stay in the second-level cache together with rows of A.
constexpr int64_t kPanelsInCache = 512 << 10;
// A B whose panels take at most this much is packed by each thread for itself, if each has kOwnRows rows: the
// fused packing takes as long as half a row of tiles, and no thread waits for lines that another one wrote
// (measured: on two processors without a common cache they cost 50 us of 470).
constexpr size_t kOwnPanels = 1 << 20;
constexpr int64_t kOwnRows = 8 * kTileRows;
// A B whose panels take more than this is not multiplied by a SharedProduct.
constexpr int64_t kMostShared = 64 << 20;

// A block of A in memory of its own.
//   row-major A    rows keep their order, with a pitch that spreads them over the cache sets
//   otherwise      the rows of one tile side by side: `rows` elements for each k
template <class T>
struct PackedRows {
  T* memory;
  bool pitched;
  int64_t pitch;

  TileShape shape(int64_t rows) const {
    return pitched ? TileShape{pitch, 1, kTileColumns<T>} : TileShape{1, rows, kTileColumns<T>};
  }
  // Row i begins a tile; all tiles before it are full.
  const T* tile(int64_t i, int64_t k) const { return memory + i * (pitched ? pitch : k); }

  void pack(const T* a, int64_t a_row, int64_t a_column, int64_t first, int64_t rows, int64_t k) const {
    if (pitched) {
      for (int64_t i = 0; i < rows; ++i) std::copy_n(a + (first + i) * a_row, k, memory + (first + i) * pitch);
      return;
    }
    a += first * a_row;
    T* packed = memory + first * k;
    if (a_row == 1) {
      for (int64_t l = 0; l < k; ++l) copy_short(a + l * a_column, rows, packed + l * rows);
      return;
    }
    for (int64_t l = 0; l < k; ++l) {
      for (int64_t i = 0; i < rows; ++i) packed[l * rows + i] = a[l * a_column + i * a_row];
    }
  }
};

// Rows of A can be read where they are when they do not fall on the same cache sets and are
// not read often enough to pay for packing.
template <class T>
bool reads_in_place(const BlockProduct<T>& p) {
  if (p.a_column != 1) return false;
  const int64_t bytes = p.a_row * static_cast<int64_t>(sizeof(T));
  const int64_t aliased = bytes % 4096;
  return p.m < kTileRows || (p.n <= 512 && aliased >= 64 && aliased <= 4096 - 64);
}

int64_t ceil_divide(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

// Two rows of tiles at the most: nothing is read often enough to be packed.
template <class T>
void multiply_few_rows(const BlockProduct<T>& p) {
  const TileTable<T>& table = tile_table<T>();
  const int64_t step = tile_rows(p.m);
  const Run run{0, 0, p.k};
  const TileShape shape{p.a_row, p.a_column, p.b_row};
  for (int64_t j = 0; j < p.n; j += kTileColumns<T>) {
    const int64_t here = std::min<int64_t>(kTileColumns<T>, p.n - j);
    for (int64_t i = 0; i < p.m; i += step) {
      const int64_t count = std::min(step, p.m - i);
      table.of(count, here)(&run, 1, shape, p.a + i * p.a_row, p.b + j, p.c + i * p.ldc + j, p.ldc, here,
                            p.accumulate);
    }
  }
}

// How a product is cut: what does not depend on which rows are computed.
template <class T>
int64_t block_depth(const BlockProduct<T>& p) {
  return ceil_divide(p.k, ceil_divide(p.k, kDepth));
}

// Columns of B and C that a panel holds: two vectors; or what is left of them, in one vector or folded.
struct Strip {
  int64_t first, columns;
  int fold;
};

// The strips of columns [left, left + columns).
template <class T>
class Strips {
 public:
  // Below this depth adding up the lanes costs more than it saves.
  static constexpr int64_t kLeastDepth = 32;

  Strips(const BlockProduct<T>& p, int64_t left, int64_t columns)
      : left_(left), whole_(columns / kTileColumns<T>), rest_(columns % kTileColumns<T>), vector_(0) {
    const bool can_fold = p.a_column == 1 && p.k >= kLeastDepth;
    const bool two = can_fold && rest_ > kTileLanes<T> && fold_of<T>(rest_ - kTileLanes<T>) > 1;
    if (two) vector_ = kTileLanes<T>;
    fold_ = can_fold && rest_ > vector_ ? fold_of<T>(rest_ - vector_) : 1;
  }

  int64_t count() const { return whole_ + (vector_ > 0 ? 1 : 0) + (rest_ > vector_ ? 1 : 0); }
  // At least the count() of any so many columns or fewer: what is left of them may be two strips.
  static int64_t most(int64_t columns) { return columns / kTileColumns<T> + 2; }
  Strip at(int64_t i) const {
    const int64_t first = left_ + std::min(i, whole_) * kTileColumns<T>;
    if (i < whole_) return {first, kTileColumns<T>, 1};
    if (i == whole_ && vector_ > 0) return {first, vector_, 1};
    return {first + vector_, rest_ - vector_, fold_};
  }

 private:
  int64_t left_, whole_, rest_;
  int64_t vector_;  // columns of a strip of one vector before a folded one
  int fold_;
};

template <class T>
void pack_strip(const BlockProduct<T>& p, int64_t first, int64_t k, const Strip& strip, T* panel) {
  const T* const b = p.b + first * p.b_row + strip.first * p.b_column;
  if (strip.fold > 1) {
    pack_folded(b, p.b_row, p.b_column, k, strip.columns, strip.fold, panel);
  } else {
    pack_panel(b, p.b_row, p.b_column, k, strip.columns, kTileColumns<T>, panel);
  }
}

// Rows of A by some depth of it, and room for them.
template <class T>
struct RowBlock {
  int64_t top, rows;  // of A and C
  int64_t first, k;   // of the depth
  bool in_place;
  T* memory;      // for packed rows, unless A is read in place
  int64_t depth;  // for which there is room

  static int64_t pitch(int64_t depth) {
    return depth / 16 * 16 + 48;  // an odd number of cache lines and a half
  }

  // C's rows.  `panels` has the strips of B (OwnPanels, SharedProduct::Panels):
  //   memory(j)   the room of strip j
  //   claim(j)    the same when the strip is unpacked: the caller packs it and then calls packed(j); else nullptr
  //   at(j)       the strip, packed if it was not; waits for a thread that is packing it
  // Strips are taken in order from `start` on, and then from the first.
  template <class Panels>
  void multiply(const BlockProduct<T>& p, const Strips<T>& strips, bool accumulate, Panels& panels,
                int64_t start) const {
    const int64_t step = tile_rows(rows);
    const T* const a = p.a + top * p.a_row + first * p.a_column;
    const PackedRows<T> packed{memory, p.a_column == 1, pitch(depth)};
    if (!in_place) {
      for (int64_t i = 0; i < rows; i += step)
        packed.pack(a, p.a_row, p.a_column, i, std::min(step, rows - i), k);
    }
    const auto tile = [&](int64_t i, int64_t j) {
      const Strip strip = strips.at(j);
      const int64_t count = std::min(step, rows - i);
      const T* const tile_a = in_place ? a + i * p.a_row : packed.tile(i, k);
      TileShape shape = in_place ? TileShape{p.a_row, 1, kTileColumns<T>} : packed.shape(count);
      T* const c = p.c + (top + i) * p.ldc + strip.first;
      if (count == kTileRows && strip.columns == kTileColumns<T> && p.b_column == 1) {
        if (T* const unpacked = panels.claim(j)) {
          shape.b_row = p.b_row;
          packing_tile(k, shape, tile_a, p.b + first * p.b_row + strip.first, c, p.ldc, accumulate, unpacked);
          panels.packed(j);
          return;
        }
      }
      const T* const b = panels.at(j);
      if (strip.fold > 1) {
        folded_tile_of<T>(count, strip.fold)(k, tile_a, shape.a_row, b, c, p.ldc, strip.columns, accumulate);
      } else {
        const Run run{0, 0, k};
        tile_table<T>().of(count, strip.columns)(&run, 1, shape, tile_a, b, c, p.ldc, strip.columns,
                                                 accumulate);
      }
    };
    const int64_t count = strips.count();
    if (count * k * kTileColumns<T> * static_cast<int64_t>(sizeof(T)) <= kPanelsInCache) {
      // rows of A stay in the first-level cache while all panels pass
      for (int64_t i = 0; i < rows; i += step) {
        for (int64_t j = 0; j < count; ++j) tile(i, (start + j) % count);
      }
    } else {
      // panels stay there while all rows pass, and the next one arrives meanwhile
      const int64_t elements = k * kTileColumns<T>;
      for (int64_t j = 0; j < count; ++j) {
        const int64_t here = (start + j) % count, next = (here + 1) % count;
        for (int64_t i = 0; i < rows; i += step) {
          const int64_t from = elements * i / rows, to = elements * std::min(i + step, rows) / rows;
          const T* const ahead = j + 1 < count && panels.is_packed(next) ? panels.memory(next) : nullptr;
          for (int64_t l = from; ahead != nullptr && l < to; l += kTileLanes<T>) {
            __builtin_prefetch(ahead + l, 0, 2);
          }
          tile(i, here);
        }
      }
    }
  }
};

// Strips of B packed by and for one thread; `done` counts them.
template <class T>
class OwnPanels {
 public:
  OwnPanels(const BlockProduct<T>& p, const Strips<T>& strips, int64_t first, int64_t k, T* memory, int64_t& done)
      : p_(p), strips_(strips), first_(first), k_(k), memory_(memory), done_(done) {}

  T* memory(int64_t j) const { return memory_ + j * kTileColumns<T> * k_; }
  bool is_packed(int64_t j) const { return j < done_; }
  T* claim(int64_t j) const { return is_packed(j) ? nullptr : memory(j); }
  void packed(int64_t j) { done_ = j + 1; }
  const T* at(int64_t j) {
    if (!is_packed(j)) {
      pack_strip(p_, first_, k_, strips_.at(j), memory(j));
      packed(j);
    }
    return memory(j);
  }

 private:
  const BlockProduct<T>& p_;
  const Strips<T>& strips_;
  int64_t first_, k_;
  T* memory_;
  int64_t& done_;  // strips are first asked for in order
};

template <class T>
void multiply_block(const BlockProduct<T>& p) {
  if (p.m <= 2 * kTileRows && p.b_column == 1) {
    multiply_few_rows(p);
    return;
  }
  const int64_t depth = block_depth(p);
  const int64_t most_columns = std::min(p.n, kMostColumns);
  const bool in_place = reads_in_place(p);
  const int64_t row_block = std::min(p.m, SharedProduct<T>::kRowBlock);
  const int64_t panel_elements = depth * Strips<T>::most(most_columns) * kTileColumns<T>;
  const int64_t a_elements = in_place ? 0 : row_block * RowBlock<T>::pitch(depth);
  T* const panels =
      static_cast<T*>(thread_scratch(static_cast<size_t>(panel_elements + a_elements) * sizeof(T)));

  for (int64_t left = 0; left < p.n; left += most_columns) {
    const Strips<T> strips(p, left, std::min(most_columns, p.n - left));
    for (int64_t first = 0; first < p.k; first += depth) {
      const int64_t k = std::min(depth, p.k - first);
      int64_t done = 0;
      OwnPanels<T> own(p, strips, first, k, panels, done);
      for (int64_t top = 0; top < p.m; top += row_block) {
        const int64_t rows = std::min(row_block, p.m - top);
        RowBlock<T>{top, rows, first, k, in_place, panels + panel_elements, depth}.multiply(
            p, strips, p.accumulate || first > 0, own, 0);
      }
    }
  }
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

// ---- SharedProduct

namespace {

enum PanelState : uint8_t { kUnpacked, kBeingPacked, kPacked };

}  // namespace

template <class T>
bool SharedProduct<T>::suits(const BlockProduct<T>& p) {
  if (!has_avx512() || p.k <= 0 || p.n <= 0) return false;
  // Of whole panels: two columns take the room of 32.  As a double: it may be beyond 64 bits.
  const double elements = static_cast<double>(Strips<T>(p, 0, p.n).count()) * kTileColumns<T>;
  return elements * static_cast<double>(p.k) * sizeof(T) <= static_cast<double>(kMostShared);
}

template <class T>
SharedProduct<T>::SharedProduct(const BlockProduct<T>& p, int64_t threads)
    : product_(p),
      depth_(block_depth(p)),
      depth_blocks_(ceil_divide(p.k, depth_)),
      column_blocks_(Strips<T>(p, 0, p.n).count()),
      threads_(threads),
      in_place_(reads_in_place(p)) {
  if (panel_bytes() <= kOwnPanels && p.m >= threads * kOwnRows) return;
  memory_ = Pool::allocate(panel_bytes());
  const auto count = static_cast<size_t>(depth_blocks_ * column_blocks_);
  states_.reset(new std::atomic<uint8_t>[count]);
  for (size_t i = 0; i < count; ++i) states_[i].store(kUnpacked, std::memory_order_relaxed);
}

template <class T>
int64_t SharedProduct<T>::least_rows() const {
  return panel_bytes() <= kOwnPanels ? kTileRows : kRowBlock;
}

template <class T>
size_t SharedProduct<T>::panel_bytes() const {
  return static_cast<size_t>(product_.k * column_blocks_ * kTileColumns<T>) * sizeof(T);
}

template <class T>
int64_t SharedProduct<T>::depth_at(int64_t depth_block) const {
  return std::min(depth_, product_.k - depth_block * depth_);
}

template <class T>
SharedProduct<T>::Part::Part(SharedProduct& product) : product_(product), start_(0) {
  if (product.states_ != nullptr) {
    memory_ = static_cast<T*>(product.memory_->data());
    // threads that begin together pack different panels
    const int64_t before = product.arrivals_.fetch_add(1, std::memory_order_relaxed);
    start_ = product.column_blocks_ * (before % product.threads_) / product.threads_;
  } else {
    memory_ = static_cast<T*>(thread_panels(product.panel_bytes()));
    done_.resize(static_cast<size_t>(product.depth_blocks_));
  }
}

// The panels of one depth.  Whoever finds a panel unpacked packs it; whoever finds another thread packing it
// packs a later one in the meantime.
template <class T>
class SharedProduct<T>::Panels {
 public:
  Panels(const SharedProduct& shared, const Strips<T>& strips, int64_t depth_block, T* memory)
      : shared_(shared),
        strips_(strips),
        depth_block_(depth_block),
        memory_(memory),
        states_(&shared.states_[static_cast<size_t>(depth_block * shared.column_blocks_)]) {}

  T* memory(int64_t j) const { return memory_ + j * shared_.depth_at(depth_block_) * kTileColumns<T>; }
  bool is_packed(int64_t j) const { return states_[j].load(std::memory_order_acquire) == kPacked; }
  T* claim(int64_t j) const {
    uint8_t expected = kUnpacked;
    const bool mine = states_[j].load(std::memory_order_relaxed) == kUnpacked &&
                      states_[j].compare_exchange_strong(expected, kBeingPacked);
    return mine ? memory(j) : nullptr;
  }
  void packed(int64_t j) { states_[j].store(kPacked, std::memory_order_release); }

  const T* at(int64_t wanted) {
    constexpr int kRelaxes = 256;
    int waits = 0;
    for (int64_t j = wanted; !is_packed(wanted) && j < shared_.column_blocks_; ++j) {
      if (T* const memory = claim(j)) {
        pack_strip(shared_.product_, depth_block_ * shared_.depth_, shared_.depth_at(depth_block_),
                   strips_.at(j), memory);
        packed(j);
      }
    }
    while (!is_packed(wanted)) {
      if (++waits % kRelaxes == 0) {
        sched_yield();  // the thread that packs it may be waiting for this processor
      } else {
        cpu_relax();
      }
    }
    return memory(wanted);
  }

 private:
  const SharedProduct& shared_;
  const Strips<T>& strips_;
  int64_t depth_block_;
  T* memory_;
  std::atomic<uint8_t>* states_;
};

template <class T>
void SharedProduct<T>::Part::multiply_rows(int64_t first, int64_t count) {
  const SharedProduct& shared = product_;
  const BlockProduct<T>& p = shared.product_;
  const Strips<T> strips(p, 0, p.n);
  const int64_t row_block = std::min(count, kRowBlock), depth = shared.depth_;
  T* const a_memory =
      shared.in_place_ ? nullptr
                       : static_cast<T*>(thread_scratch(
                             static_cast<size_t>(row_block * RowBlock<T>::pitch(depth)) * sizeof(T)));
  for (int64_t d = 0; d < shared.depth_blocks_; ++d) {
    const int64_t k = shared.depth_at(d);
    T* const memory = memory_ + d * depth * shared.column_blocks_ * kTileColumns<T>;
    const auto with = [&](auto&& panels) {
      for (int64_t top = first; top < first + count; top += row_block) {
        const int64_t rows = std::min(row_block, first + count - top);
        RowBlock<T>{top, rows, d * depth, k, shared.in_place_, a_memory, depth}.multiply(
            p, strips, p.accumulate || d > 0, panels, start_);
      }
    };
    if (done_.empty()) {
      with(Panels(shared, strips, d, memory));
    } else {
      with(OwnPanels<T>(p, strips, d * depth, k, memory, done_[static_cast<size_t>(d)]));
    }
  }
}

template class SharedProduct<float>;
template class SharedProduct<double>;

}  // namespace jato
