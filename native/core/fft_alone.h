// One transform at a time, where there are too few for the lanes of vectors, or of a length that has no plan.
//
// Parts of one long transform fill the lanes: n = rows * columns numbers are a grid, its columns are
// transformed, multiplied with roots of unity, and then its rows, whose results lie one grid row apart
// (D. H. Bailey, "FFTs in external or hierarchical memory", 1990).  Each part stays in cache.  Other lengths
// go through a convolution.
#pragma once
#include <bit>
#include <limits>
#include <memory>
#include <optional>

#include "fft_stage.h"

namespace jato {
namespace {  // included by fft.cpp only

// Longer rows are taken as grids: the two arrays of a group are 512 KiB then, and leave the cache.
constexpr int64_t kLongestDirect = 512;
// Below this length a grid's groups are mostly empty lanes.
constexpr int64_t kShortestGrid = 64;

// rows * columns = n with columns about as many as rows and few lanes empty; {1, n} if there is none.
struct Grid {
  int64_t rows, columns;
};

Grid grid_of(int64_t n, int64_t lanes) {
  Grid best{1, n};
  double least = std::numeric_limits<double>::infinity();
  const auto padded = [&](int64_t k) {
    return static_cast<double>((k + lanes - 1) / lanes * lanes) / static_cast<double>(k);
  };
  for (int64_t rows = 2; rows * rows <= n * 4; ++rows) {
    if (n % rows != 0 || n / rows < 2) continue;
    const int64_t columns = n / rows;
    const double longer = static_cast<double>(std::max(rows, columns));
    const double cost = padded(columns) + padded(rows) + 0.1 * longer / std::sqrt(static_cast<double>(n));
    if (cost < least) least = cost, best = {rows, columns};
  }
  return best;
}

// Whether `rows` transforms of n numbers are quicker one by one.
bool alone(int64_t rows, int64_t n, int64_t lanes) {
  if (!fft_factors(n)) return true;
  if (n < kShortestGrid) return false;
  const Grid grid = grid_of(n, lanes);
  if (std::min(grid.rows, grid.columns) < 4) return false;
  return n > kLongestDirect || rows < lanes / 2;
}

// One long complex transform of numbers side by side, as a grid.
template <class T>
class GridTransform {
 public:
  GridTransform(int64_t n, int64_t lanes) : lanes_(lanes), grid_(grid_of(n, lanes)) {
    column_plan_ = fft_plan<T>(grid_.rows);
    row_plan_ = fft_plan<T>(grid_.columns);
    roots_ = grid_roots<T>(grid_.rows, grid_.columns, lanes);
  }

  void operator()(const T* from, T* to, const Stage<T>& stage, const Context& context) const {
    const int64_t rows = grid_.rows, columns = grid_.columns;
    const int64_t column_blocks = (columns + lanes_ - 1) / lanes_, row_blocks = (rows + lanes_ - 1) / lanes_;
    // a row of the grid between the two steps; more than it, so that rows do not fall into the same cache
    // lines
    const int64_t pitch = 2 * column_blocks * lanes_ + 2 * lanes_;
    const Ref<Block> block = Pool::allocate(static_cast<size_t>(rows * pitch) * sizeof(T));
    T* const between = static_cast<T*>(block->data());
    for_each_group(column_blocks, rows, context, [&](int64_t i) {
      FftGroup<T> g{};
      g.width = 1;
      g.plan = column_plan_.get();
      g.in = from + 2 * i * lanes_, g.in_element = 2 * columns;
      g.out = between + 2 * i * lanes_, g.out_element = pitch;
      g.lanes = std::min(lanes_, columns - i * lanes_);
      g.in_form = FftForm::Columns, g.out_form = FftForm::Blocks;
      g.inverse = stage.inverse;
      g.factors = roots_->data() + 2 * i * lanes_ * rows;
      run(g);
    });
    for_each_group(row_blocks, columns, context, [&](int64_t i) {
      FftGroup<T> g{};
      g.width = 1;
      g.plan = row_plan_.get();
      g.in = between + i * lanes_ * pitch, g.in_lane = pitch;
      g.out = to + 2 * i * lanes_, g.out_element = 2 * rows;
      g.lanes = std::min(lanes_, rows - i * lanes_);
      g.scale = stage.scale;
      g.in_form = FftForm::Blocks, g.out_form = FftForm::Columns;
      g.inverse = stage.inverse;
      g.conjugated = stage.conjugated;
      run(g);
    });
  }

 private:
  int64_t lanes_;
  Grid grid_;
  std::shared_ptr<const FftPlan<T>> column_plan_, row_plan_;
  Numbers<T> roots_;
};

// out[k] = x[k] y[k]; numbers of x `x_step` apart, those of out `out_step`.
template <class T>
void multiply(const T* x, int64_t x_step, int x_swap, const T* y, T* out, int64_t out_step, int out_swap,
              int64_t n) {
  for (int64_t k = 0; k < n; ++k) {
    const T re = x[k * x_step + x_swap], im = x[k * x_step + 1 - x_swap], c = y[2 * k], s = y[2 * k + 1];
    out[k * out_step + out_swap] = re * c - im * s;
    out[k * out_step + 1 - out_swap] = re * s + im * c;
  }
}

// One complex transform of any length, by a convolution of twice the length or more.
template <class T>
class ChirpTransform {
 public:
  ChirpTransform(int64_t n, int64_t lanes)
      : padded_(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1)))),
        grid_(padded_, lanes),
        tables_(chirp_tables<T>(n, padded_)) {}

  // Numbers `step` apart.
  void operator()(const T* from, int64_t from_step, T* to, int64_t to_step, const Stage<T>& stage,
                  const Context& context) const {
    const int64_t n = stage.n;
    const T *const chirp = tables_->data(), *const response = chirp + 2 * n;
    const Ref<Block> block = Pool::allocate(static_cast<size_t>(4 * padded_) * sizeof(T));
    T* const a = static_cast<T*>(block->data());
    T* const b = a + 2 * padded_;
    const int swap = stage.inverse ? 1 : 0;
    multiply(from, from_step, swap, chirp, a, 2, 0, n);
    std::fill(a + 2 * n, b, T(0));
    grid_(a, b, Stage<T>{padded_, T(1), false, false}, context);
    multiply(b, 2, 0, response, a, 2, 0, padded_);
    grid_(a, b, Stage<T>{padded_, stage.scale, true, false}, context);
    multiply(b, 2, 0, chirp, to, to_step, swap, n);
    if (!stage.conjugated) return;
    for (int64_t k = 0; k < n; ++k) to[k * to_step + 1] = -to[k * to_step + 1];
  }

 private:
  int64_t padded_;
  GridTransform<T> grid_;
  Numbers<T> tables_;
};

// One complex transform of numbers side by side, for which `alone` holds.
template <class T>
class LoneTransform {
 public:
  explicit LoneTransform(int64_t n) {
    if (fft_factors(n)) grid_.emplace(n, lane_count<T>());
    else chirp_.emplace(n, lane_count<T>());
  }

  void operator()(const T* from, T* to, const Stage<T>& stage, const Context& context) const {
    if (grid_) (*grid_)(from, to, stage, context);
    else (*chirp_)(from, 2, to, 2, stage, context);
  }

 private:
  std::optional<GridTransform<T>> grid_;
  std::optional<ChirpTransform<T>> chirp_;
};

}  // namespace
}  // namespace jato
