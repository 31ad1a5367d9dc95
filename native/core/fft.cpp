// Splits transforms into groups (fft_groups.h) and spreads these over the threads.
//
// A group works on as many transforms as a vector has lanes.  Those are rows (the last axis), neighbouring columns
// (other axes), or parts of one long transform: n = rows * columns numbers are a grid, its columns are transformed,
// multiplied with roots of unity, and then its rows, whose results lie one grid row apart (D. H. Bailey, "FFTs in
// external or hierarchical memory", 1990).  So a single transform fills the lanes too, and each part stays in cache.
//
// Real arrays of even length are transformed as complex ones of half the length, each by itself: a NaN, or large
// numbers, in one row do not reach another.
#include "fft.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "errors.h"
#include "fft_groups.h"
#include "pool.h"
#include "threadpool.h"

namespace jato {
namespace {

// Longer rows are taken as grids: the two arrays of a group are 512 KiB then, and leave the cache.
constexpr int64_t kLongestDirect = 512;
// Columns are taken in strips with so many numbers of a vector each: 64 KiB for an array.  Rows of an array are often a
// multiple of 4 KiB apart, so all pieces of a narrow strip would fall into the same cache lines.
constexpr int64_t kColumnNumbers = 1024;
// Below this length a grid's groups are mostly empty lanes.
constexpr int64_t kShortestGrid = 64;
// Work of a group, per number, vector and doubling of the length, in nanoseconds; and what is worth a thread.
constexpr double kNumberCost = 0.8;
constexpr double kThreadCost = 5000;

enum class Kind : int64_t { Forward = 0, Back = 1, RealToHalf = 2, HalfToReal = 3 };

int64_t groups_per_thread(int64_t n) {
  const double cost = kNumberCost * static_cast<double>(n) * (1 + std::log2(static_cast<double>(n)));
  return std::max<int64_t>(1, static_cast<int64_t>(kThreadCost / cost));
}

template <class T>
FftGroupFn<T> group_function() {
  if constexpr (sizeof(T) == 4) return fft_groups().single;
  else return fft_groups().twice;
}

template <class T>
int64_t lane_count() {
  return fft_groups().vector_bytes / static_cast<int64_t>(sizeof(T));
}

template <class T>
void run(FftGroup<T> group) {
  const int64_t lanes = lane_count<T>();
  const int64_t numbers = fft_scratch_numbers(group.plan->n, group.width, lanes);
  group.scratch = thread_scratch(static_cast<size_t>(4 * numbers * lanes) * sizeof(T));
  group_function<T>()(group);
}

bool stopped(const Context& context) { return __atomic_load_n(context.cancel, __ATOMIC_RELAXED) != 0; }

// f(group) for all of `count`; in threads where that is worth it.
template <class F>
void for_each_group(int64_t count, int64_t n, const Context& context, F f) {
  const int64_t grain = groups_per_thread(n);
  if (count <= grain) {
    for (int64_t i = 0; i < count; ++i) f(i);
    return;
  }
  parallel_for(count, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end && !stopped(context); ++i) f(i);
  });
}

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

// ---- one stage: all transforms along one axis

template <class T>
struct Stage {
  int64_t n;  // length of the complex transform
  T scale;
  bool inverse, conjugated;
};

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
    // a row of the grid between the two steps; more than it, so that rows do not fall into the same cache lines
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
void multiply(const T* x, int64_t x_step, int x_swap, const T* y, T* out, int64_t out_step, int out_swap, int64_t n) {
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

// f(row) for the rows of grids: each on a thread of its own where there are enough, else one after the other.
template <class F>
void for_each_row(int64_t rows, const Context& context, F f) {
  if (rows < num_threads()) {
    for (int64_t i = 0; i < rows && !stopped(context); ++i) f(i);
    return;
  }
  parallel_for(rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end && !stopped(context); ++i) f(i);
  });
}

// Along an axis before the last: [outer, n, inner] complex, perhaps in place.
template <class T>
void transform_columns(const T* from, T* to, int64_t outer, int64_t inner, const Stage<T>& stage,
                       const Context& context) {
  const int64_t n = stage.n, lanes = lane_count<T>();
  const int64_t width = std::clamp(kColumnNumbers / n, int64_t{1}, (inner + lanes - 1) / lanes);
  const int64_t columns = width * lanes, blocks = (inner + columns - 1) / columns;
  const auto plan = fft_plan<T>(n);
  if (plan == nullptr) {
    const ChirpTransform<T> chirp(n, lanes);
    return for_each_row(outer * inner, context, [&](int64_t i) {
      const int64_t offset = 2 * (i / inner * n * inner + i % inner);
      chirp(from + offset, 2 * inner, to + offset, 2 * inner, stage, context);
    });
  }
  for_each_group(outer * blocks, n * width, context, [&](int64_t i) {
    const int64_t first = i % blocks * columns, offset = 2 * (i / blocks * n * inner + first);
    FftGroup<T> g{};
    g.width = 1;
    g.plan = plan.get();
    g.in = from + offset, g.out = to + offset;
    g.in_element = g.out_element = 2 * inner;
    g.lanes = std::min(columns, inner - first);
    g.width = (g.lanes + lanes - 1) / lanes;
    g.scale = stage.scale;
    g.in_form = g.out_form = FftForm::Columns;
    g.inverse = stage.inverse;
    run(g);
  });
}

// Whether `rows` transforms of n numbers are quicker one by one.
bool alone(int64_t rows, int64_t n, int64_t lanes) {
  if (!fft_factors(n)) return true;
  if (n < kShortestGrid) return false;
  const Grid grid = grid_of(n, lanes);
  if (std::min(grid.rows, grid.columns) < 4) return false;
  return n > kLongestDirect || rows < lanes / 2;
}

// ---- the last axis.  Rows of `in_row` and `out_row` elements of T.

template <class T>
struct Rows {
  const T* from;
  T* to;
  int64_t count, in_row, out_row;
};

template <class T>
void transform_rows(const Rows<T>& r, FftForm in, FftForm out, FftReal real, const Stage<T>& stage,
                    const Context& context, int64_t stored = 0) {
  const int64_t lanes = lane_count<T>();
  const auto plan = fft_plan<T>(stage.n);
  const bool halves = real != FftReal::None && real != FftReal::Mirror;
  const auto roots = halves ? half_roots<T>(2 * stage.n) : nullptr;
  for_each_group((r.count + lanes - 1) / lanes, stage.n, context, [&](int64_t i) {
    FftGroup<T> g{};
    g.width = 1;
    g.plan = plan.get();
    g.in = r.from + i * lanes * r.in_row, g.in_lane = r.in_row;
    g.out = r.to + i * lanes * r.out_row, g.out_lane = r.out_row;
    g.lanes = std::min(lanes, r.count - i * lanes);
    g.scale = stage.scale;
    g.in_form = in, g.out_form = out;
    g.real = real;
    g.stored = stored;
    g.inverse = stage.inverse;
    g.conjugated = stage.conjugated;
    g.half_roots = roots ? roots->data() : nullptr;
    run(g);
  });
}

template <class T>
void complex_rows(const Rows<T>& r, const Stage<T>& stage, const Context& context) {
  if (!alone(r.count, stage.n, lane_count<T>())) {
    return transform_rows(r, FftForm::Rows, FftForm::Rows, FftReal::None, stage, context);
  }
  const LoneTransform<T> lone(stage.n);
  for_each_row(r.count, context, [&](int64_t i) {
    lone(r.from + i * r.in_row, r.to + i * r.out_row, stage, context);
  });
}

// The numbers k and h - k of a half spectrum from those of the complex transform of length h (fft_kernels.h has the
// same for lanes), for k in [begin, end), end at most h / 2 + 1 and begin at least 1.
template <class T>
void split_range(const T* z, T* out, int64_t h, const T* roots, T sign, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end; ++k) {
    const T *a = z + 2 * k, *b = z + 2 * (h - k);
    const T even_re = T(0.5) * (a[0] + b[0]), even_im = T(0.5) * (a[1] - b[1]);
    const T odd_re = T(0.5) * (a[1] + b[1]), odd_im = T(0.5) * (b[0] - a[0]);
    const T c = roots[2 * k], s = roots[2 * k + 1];
    const T turn_re = odd_re * c - odd_im * s, turn_im = odd_re * s + odd_im * c;
    out[2 * k] = even_re + turn_re;
    out[2 * k + 1] = sign * (even_im + turn_im);
    out[2 * (h - k)] = even_re - turn_re;
    out[2 * (h - k) + 1] = sign * (turn_im - even_im);
  }
}

template <class T>
void join_range(const T* x, T* z, int64_t h, const T* roots, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end; ++k) {
    const T *a = x + 2 * k, *b = x + 2 * (h - k);
    const T even_re = T(0.5) * (a[0] + b[0]), even_im = T(0.5) * (a[1] - b[1]);
    const T turn_re = T(0.5) * (a[0] - b[0]), turn_im = T(0.5) * (a[1] + b[1]);
    const T c = roots[2 * k], s = -roots[2 * k + 1];
    const T odd_re = -(turn_re * s + turn_im * c), odd_im = turn_re * c - turn_im * s;
    z[2 * k] = even_re + odd_re;
    z[2 * k + 1] = even_im + odd_im;
    z[2 * (h - k)] = even_re - odd_re;
    z[2 * (h - k) + 1] = odd_im - even_im;
  }
}

template <class F>
void in_ranges(int64_t begin, int64_t end, F f) {
  constexpr int64_t kRange = 8192;
  if (end - begin <= kRange) return f(begin, end);
  parallel_for(end - begin, kRange, [&](int64_t b, int64_t e, int) { f(begin + b, begin + e); });
}

// Real rows of odd length, as complex ones.
template <class T>
void odd_rows(const Rows<T>& r, bool full, const Stage<T>& stage, const Context& context) {
  const int64_t n = stage.n, stored = full ? n : n / 2 + 1;
  if (!alone(r.count, n, lane_count<T>())) {
    return transform_rows(r, FftForm::Real, FftForm::Rows, FftReal::None, stage, context, stored);
  }
  const LoneTransform<T> lone(stage.n);
  for_each_row(r.count, context, [&](int64_t i) {
    const Ref<Block> block = Pool::allocate(static_cast<size_t>(4 * n) * sizeof(T));
    T* const x = static_cast<T*>(block->data());
    for (int64_t j = 0; j < n; ++j) x[2 * j] = r.from[i * r.in_row + j], x[2 * j + 1] = 0;
    lone(x, x + 2 * n, stage, context);
    std::copy_n(x + 2 * n, 2 * stored, r.to + i * r.out_row);
  });
}

template <class T>
void odd_half_rows(const Rows<T>& r, const Stage<T>& stage, const Context& context) {
  const int64_t n = stage.n;
  if (!alone(r.count, n, lane_count<T>())) {
    return transform_rows(r, FftForm::Rows, FftForm::Real, FftReal::Mirror, stage, context);
  }
  const LoneTransform<T> lone(stage.n);
  for_each_row(r.count, context, [&](int64_t i) {
    const Ref<Block> block = Pool::allocate(static_cast<size_t>(4 * n) * sizeof(T));
    T* const x = static_cast<T*>(block->data());
    const T* const from = r.from + i * r.in_row;
    x[0] = from[0], x[1] = 0;
    for (int64_t k = 1; 2 * k < n; ++k) {
      x[2 * k] = x[2 * (n - k)] = from[2 * k];
      x[2 * k + 1] = from[2 * k + 1];
      x[2 * (n - k) + 1] = -from[2 * k + 1];
    }
    lone(x, x + 2 * n, stage, context);
    for (int64_t j = 0; j < n; ++j) r.to[i * r.out_row + j] = x[2 * n + 2 * j];
  });
}

// Real rows of n to half spectra, or to full ones.
template <class T>
void real_rows(const Rows<T>& r, int64_t n, bool full, Stage<T> stage, const Context& context) {
  const int64_t h = n / 2;
  stage.n = n;
  if (n % 2 != 0) return odd_rows(r, full, stage, context);
  stage.n = h;
  if (!alone(r.count, h, lane_count<T>())) {
    const FftReal real = full ? FftReal::ToFull : FftReal::ToHalf;
    return transform_rows(r, FftForm::Rows, FftForm::Rows, real, stage, context);
  }
  const auto roots = half_roots<T>(n);
  const T sign = stage.conjugated ? T(-1) : T(1);
  stage.conjugated = false;
  const LoneTransform<T> lone(stage.n);
  for_each_row(r.count, context, [&](int64_t i) {
    const Ref<Block> block = Pool::allocate(static_cast<size_t>(n) * sizeof(T));
    T* const z = static_cast<T*>(block->data());
    T* const out = r.to + i * r.out_row;
    lone(r.from + i * r.in_row, z, stage, context);
    out[0] = z[0] + z[1];
    out[n] = z[0] - z[1];
    out[1] = out[n + 1] = 0;
    in_ranges(1, h / 2 + 1, [&](int64_t begin, int64_t end) {
      split_range(z, out, h, roots->data(), sign, begin, end);
    });
    if (!full) return;
    in_ranges(1, h, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        out[2 * (n - k)] = out[2 * k];
        out[2 * (n - k) + 1] = -out[2 * k + 1];
      }
    });
  });
}

// Half spectra to real rows of n.
template <class T>
void half_rows(const Rows<T>& r, int64_t n, Stage<T> stage, const Context& context) {
  const int64_t h = n / 2;
  stage.inverse = true;
  stage.n = n;
  if (n % 2 != 0) return odd_half_rows(r, stage, context);
  stage.n = h;
  stage.scale *= 2;  // of n points; the complex transform has half as many
  if (!alone(r.count, h, lane_count<T>())) {
    return transform_rows(r, FftForm::Rows, FftForm::Rows, FftReal::FromHalf, stage, context);
  }
  const auto roots = half_roots<T>(n);
  const LoneTransform<T> lone(stage.n);
  for_each_row(r.count, context, [&](int64_t i) {
    const Ref<Block> block = Pool::allocate(static_cast<size_t>(n) * sizeof(T));
    T* const z = static_cast<T*>(block->data());
    const T* const x = r.from + i * r.in_row;
    z[0] = T(0.5) * (x[0] + x[n]);
    z[1] = T(0.5) * (x[0] - x[n]);
    in_ranges(1, h / 2 + 1, [&](int64_t begin, int64_t end) {
      join_range(x, z, h, roots->data(), begin, end);
    });
    lone(z, r.to + i * r.out_row, stage, context);
  });
}

// ---- all axes

template <class T>
void transform(const T* in, T* out, bool real, const int64_t* params, const Context& context) {
  const Kind kind = static_cast<Kind>(params[1]);
  const int64_t batch = params[2], rank = params[3];
  const int64_t* const lengths = params + 4;
  const int64_t n = lengths[rank - 1];
  int64_t points = n, outer = batch;
  for (int64_t i = 0; i + 1 < rank; ++i) points *= lengths[i], outer *= lengths[i];
  if (batch == 0) return;
  const bool back = kind == Kind::Back || kind == Kind::HalfToReal;
  const T scale = back ? static_cast<T>(1.0L / static_cast<long double>(points)) : T(1);
  const int64_t half = n / 2 + 1;
  const int64_t width = kind == Kind::RealToHalf || kind == Kind::HalfToReal ? half : n;  // of the spectrum

  // the axes before the last, in `data` [batch, lengths ..., width]
  const auto others = [&](const T* from, T* data, bool inverse) {
    int64_t before = batch, after = outer / batch * width;
    for (int64_t i = 0; i + 1 < rank; ++i) {
      after /= lengths[i];
      transform_columns(from, data, before, after, Stage<T>{lengths[i], T(1), inverse, false}, context);
      from = data;
      before *= lengths[i];
    }
  };

  if (kind == Kind::HalfToReal) {
    Ref<Block> block;
    if (rank > 1) {
      block = Pool::allocate(static_cast<size_t>(2 * outer * half) * sizeof(T));
      T* const between = static_cast<T*>(block->data());
      others(in, between, true);
      in = between;
    }
    return half_rows(Rows<T>{in, out, outer, 2 * half, n}, n, Stage<T>{n, scale, true, false}, context);
  }
  if (real) {
    const bool full = kind != Kind::RealToHalf;
    // exp(+ ...) of real numbers is the conjugate of exp(- ...) of them
    real_rows(Rows<T>{in, out, outer, n, 2 * width}, n, full, Stage<T>{n, scale, false, back}, context);
  } else {
    complex_rows(Rows<T>{in, out, outer, 2 * n, 2 * n}, Stage<T>{n, scale, back, false}, context);
  }
  others(out, out, back);
}

}  // namespace

void run_fft(void* const* buffers, const int64_t* params, Context& context) {
  const auto of = [&](auto zero, bool real) {
    using T = decltype(zero);
    transform(static_cast<const T*>(buffers[0]), static_cast<T*>(buffers[1]), real, params, context);
  };
  switch (static_cast<DType>(params[0])) {
    case DType::Float32: return of(float{}, true);
    case DType::Float64: return of(double{}, true);
    case DType::Complex64: return of(float{}, false);
    default: return of(double{}, false);
  }
}

void check_fft(const int64_t* params) {
  const auto require = [](bool good, const char* what, int64_t value) {
    if (!good) throw Error(ErrorKind::Value, std::string("fft: expected ") + what + ", got " + std::to_string(value));
  };
  const DType dtype = static_cast<DType>(params[0]);
  const bool real = dtype == DType::Float32 || dtype == DType::Float64;
  require(real || dtype == DType::Complex64 || dtype == DType::Complex128, "the code of a float or complex dtype",
          params[0]);
  require(params[1] >= 0 && params[1] <= 3, "a kind from 0 to 3", params[1]);
  require(params[1] < 2 || real == (params[1] == 2), "a kind that goes with the dtype", params[1]);
  require(params[2] >= 0, "a batch of at least 0", params[2]);
  require(params[3] >= 1 && params[3] <= kMaxFftRank, "1 to 4 axes", params[3]);
  for (int i = 0; i < kMaxFftRank; ++i) {
    require(params[4 + i] >= 1, "lengths of at least 1", params[4 + i]);
  }
}

}  // namespace jato
