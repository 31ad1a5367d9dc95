// Convolutions as products of a matrix that is never written: im2col within a slab.
//
// A slab holds the pixels that a few rows of the result need (of one image and group), padded and dilated
// as the convolution says: in it, every position of the result sees its window at fixed offsets, so that
// the register tiles of matrix products read the patches where they lie.  A slab stays in the
// second-level cache.  Where nothing is padded the image itself serves as the slab.
//
//   conv          rows of the tile: neighbouring positions along the last axis; inner dimension: the
//                 window, in runs that are contiguous in the slab
//   conv_kernel   rows of the tile: channels (and window positions, if contiguous); inner dimension:
//                 positions.  Each thread sums a share of the images, or computes a share of the features.
#include "convolution.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "errors.h"
#include "pool.h"
#include "register_tile.h"
#include "threadpool.h"

namespace jato {
namespace {

constexpr int64_t kSlabBytes = 192 << 10;  // with a panel of the kernel, within the second-level cache
constexpr int64_t kDepth = 1024;           // inner dimension of one pass over the tiles: 128 KiB of a panel
constexpr int64_t kGradientDepth = 384;    // positions of one pass in conv_kernel
constexpr double kSerialWork = 256 * 1024;  // multiply-adds not worth a second thread
constexpr int64_t kLargestSum = 256 << 10;  // elements of a result of which each thread may have its own
constexpr int64_t kInPlaceRow = 1024;       // bytes: longer rows of B fall on too few cache sets

int64_t ceil_divide(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

int64_t round_up(int64_t value, int64_t multiple) { return ceil_divide(value, multiple) * multiple; }

bool is_raised(const volatile int32_t* flag) { return __atomic_load_n(flag, __ATOMIC_RELAXED) != 0; }

int64_t volume(const int64_t (&extents)[3]) { return extents[0] * extents[1] * extents[2]; }

double work_of(const ConvParams& p) {
  double work = static_cast<double>(p.images * p.groups) * static_cast<double>(p.channels * p.features);
  return work * static_cast<double>(volume(p.out)) * static_cast<double>(volume(p.window));
}

// The pixels for `rows` rows (second axis) and one or several planes (first axis).
struct SlabShape {
  int64_t planes, rows, columns;  // columns: pixels
  int64_t pixel, row, plane;      // elements between neighbours
  int64_t elements() const { return planes * plane; }
};

// What a slab covers: `first` is the dilated, padded coordinate of its first plane, row and column;
// `step` the distance between its planes.
struct SlabPlace {
  int64_t first[3];
  int64_t step;
};

// The index in the image of a dilated coordinate, or -1.
int64_t source(int64_t coordinate, int64_t base, int64_t size) {
  if (coordinate < 0) return -1;
  if (base == 1) return coordinate < size ? coordinate : -1;
  return coordinate % base == 0 && coordinate / base < size ? coordinate / base : -1;
}

template <class T>
class Convolution {
 public:
  Convolution(const ConvParams& params, const T* image)
      : p_(params), image_(image), in_place_(image_is_slab()) {}

  const ConvParams& params() const { return p_; }

  // Rows of the second axis covered by `count` steps of `along` with a window of `across`.
  static int64_t covered(int64_t count, int64_t along, int64_t window, int64_t across) {
    return (count - 1) * along + (window - 1) * across + 1;
  }

  SlabShape shape(int64_t planes, int64_t rows) const {
    const int64_t columns = covered(p_.out[2], p_.stride[2], p_.window[2], p_.dilation[2]);
    const int64_t pixel = in_place_ ? p_.pixel : p_.channels;
    const int64_t row = (in_place_ ? p_.in[2] : columns) * pixel;
    return {planes, rows, columns, pixel, row, in_place_ ? p_.in[1] * row : rows * row};
  }

  bool in_place() const { return in_place_; }

  // The slab at a place: in the image, or filled.
  const T* slab(int64_t group, int64_t n, const SlabPlace& place, const SlabShape& s, T* memory) const {
    const T* const image = image_ + group * p_.group_offset + n * volume(p_.in) * p_.pixel;
    if (in_place_)
      return image + ((place.first[0] * p_.in[1] + place.first[1]) * p_.in[2] + place.first[2]) * p_.pixel;
    for (int64_t d = 0; d < s.planes; ++d) {
      const int64_t plane = source(place.first[0] + d * place.step, p_.base[0], p_.in[0]);
      for (int64_t r = 0; r < s.rows; ++r) {
        const int64_t row = plane < 0 ? -1 : source(place.first[1] + r, p_.base[1], p_.in[1]);
        T* const target = memory + d * s.plane + r * s.row;
        if (row < 0) {
          std::fill_n(target, s.row, T(0));
        } else {
          fill_row(image + (plane * p_.in[1] + row) * p_.in[2] * p_.pixel, place.first[2], s.columns, target);
        }
      }
    }
    return memory;
  }

 private:
  // No pixel outside of the image is read, and there are no holes between pixels.  (Steps between planes
  // are those of the image only where there is one plane or none is left out.)
  bool image_is_slab() const {
    for (int axis = 0; axis < 3; ++axis) {
      const int64_t last =
          covered(p_.out[axis], p_.stride[axis], p_.window[axis], p_.dilation[axis]) - p_.pad[axis];
      if (p_.pad[axis] > 0 || p_.base[axis] != 1 || last > p_.in[axis]) return false;
    }
    return p_.in[0] == 1;
  }

  // `columns` pixels from the dilated coordinate `first` on.
  void fill_row(const T* row, int64_t first, int64_t columns, T* target) const {
    const int64_t c = p_.channels;
    if (p_.base[2] == 1) {
      const int64_t begin = std::clamp<int64_t>(-first, 0, columns);
      const int64_t end = std::clamp<int64_t>(p_.in[2] - first, begin, columns);
      std::fill_n(target, begin * c, T(0));
      if (p_.pixel == c) {
        if (end > begin) std::copy_n(row + (first + begin) * c, (end - begin) * c, target + begin * c);
      } else {
        for (int64_t x = begin; x < end; ++x) std::copy_n(row + (first + x) * p_.pixel, c, target + x * c);
      }
      std::fill_n(target + end * c, (columns - end) * c, T(0));
      return;
    }
    for (int64_t x = 0; x < columns; ++x) {
      const int64_t from = source(first + x, p_.base[2], p_.in[2]);
      if (from < 0) {
        std::fill_n(target + x * c, c, T(0));
      } else {
        std::copy_n(row + from * p_.pixel, c, target + x * c);
      }
    }
  }

  const ConvParams& p_;
  const T* const image_;
  const bool in_place_;
};

// How many rows (of `count`) one unit of work takes: a slab that stays in the cache, and enough units.
int64_t rows_per_unit(int64_t count, int64_t row_bytes, int64_t step, int64_t fixed, int64_t wanted) {
  const int64_t fitting = std::max<int64_t>((kSlabBytes / std::max<int64_t>(row_bytes, 1) - fixed) / step, 1);
  const int64_t rows = std::clamp<int64_t>(std::min(fitting, wanted), 1, count);
  return ceil_divide(count, ceil_divide(count, rows));
}

// ---- conv

// Where the positions that one pass computes are in the result: first + position * step, along each axis.
struct Places {
  int64_t extent[3], first[3], step[3];

  int64_t at(int64_t plane, int64_t row, int64_t column) const {
    const int64_t r = (first[0] + plane * step[0]) * extent[1] + first[1] + row * step[1];
    return r * extent[2] + first[2] + column * step[2];
  }
};

template <class T>
class Forward {
 public:
  Forward(const T* image, const T* kernel, T* result, const ConvParams& params, const Places& places)
      : p_(params),
        places_(places),
        conv_(params, image),
        kernel_(kernel),
        result_(result),
        inner_(volume(params.window) * params.channels),
        panels_(ceil_divide(params.features, kTileColumns<T>)) {
    const SlabShape row = conv_.shape(p_.window[0], 1);
    const int64_t units = p_.groups * p_.images * p_.out[0];
    const int64_t wanted = ceil_divide(p_.out[1] * units, 8 * num_threads());
    rows_ = rows_per_unit(p_.out[1], p_.window[0] * row.columns * p_.channels * int64_t{sizeof(T)}, p_.stride[1],
                          (p_.window[1] - 1) * p_.dilation[1], std::max<int64_t>(wanted, 2));
    blocks_ = ceil_divide(p_.out[1], rows_);
    shape_ = conv_.shape(p_.window[0], Convolution<T>::covered(rows_, p_.stride[1], p_.window[1], p_.dilation[1]));
    plan_runs();
  }

  void run(const volatile int32_t* cancel) {
    const int64_t panel_elements = inner_ * kTileColumns<T>;
    const Ref<Block> block =
        Pool::allocate(static_cast<size_t>(p_.groups * panels_ * panel_elements) * sizeof(T));
    packed_ = static_cast<T*>(block->data());
    const bool serial = work_of(p_) <= kSerialWork;
    const int64_t packs = p_.groups * panels_, units = p_.groups * p_.images * p_.out[0] * blocks_;
    parallel_for(packs, serial || inner_ * packs < 16384 ? packs : 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) pack(i / panels_, i % panels_);
    });
    parallel_for(units, serial ? units : 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end && !is_raised(cancel); ++i) compute(i);
    });
  }

 private:
  // Stretches of the window that are contiguous in the slab, in passes of about kDepth.
  void plan_runs() {
    const bool joined = p_.dilation[2] == 1 && shape_.pixel == p_.channels;
    const int64_t length = joined ? p_.window[2] * p_.channels : p_.channels;
    int64_t done = 0, in_pass = 0;
    for (int64_t d = 0; d < p_.window[0]; ++d) {
      for (int64_t r = 0; r < p_.window[1]; ++r) {
        for (int64_t x = 0; x < (joined ? 1 : p_.window[2]); ++x) {
          const int64_t start =
              d * shape_.plane + r * p_.dilation[1] * shape_.row + x * p_.dilation[2] * shape_.pixel;
          for (int64_t at = 0; at < length; at += kDepth) {
            const int64_t here = std::min(kDepth, length - at);
            if (passes_.empty() || in_pass + here > kDepth) {
              passes_.emplace_back();
              in_pass = 0;
            }
            passes_.back().push_back({start + at, done * kTileColumns<T>, here});
            in_pass += here;
            done += here;
          }
        }
      }
    }
  }

  void pack(int64_t group, int64_t panel) {
    const int64_t all = p_.groups * p_.features, column = panel * kTileColumns<T>;
    pack_panel(kernel_ + group * p_.features + column, all, int64_t{1}, inner_,
               std::min<int64_t>(kTileColumns<T>, p_.features - column), kTileColumns<T>,
               packed_ + (group * panels_ + panel) * inner_ * kTileColumns<T>);
  }

  void compute(int64_t unit) {
    const int64_t first = unit % blocks_ * rows_, rows = std::min(rows_, p_.out[1] - first);
    unit /= blocks_;
    const int64_t plane = unit % p_.out[0];
    unit /= p_.out[0];
    const int64_t n = unit % p_.images, group = unit / p_.images;
    T* const memory = conv_.in_place()
                          ? nullptr
                          : static_cast<T*>(thread_scratch(static_cast<size_t>(shape_.elements()) * sizeof(T)));
    const SlabPlace place{{plane * p_.stride[0] - p_.pad[0], first * p_.stride[1] - p_.pad[1], -p_.pad[2]},
                          p_.dilation[0]};
    SlabShape shape = shape_;
    shape.rows = Convolution<T>::covered(rows, p_.stride[1], p_.window[1], p_.dilation[1]);
    const T* const slab = conv_.slab(group, n, place, shape, memory);

    const TileTable<T>& table = tile_table<T>();
    const int64_t all = p_.groups * p_.features, step = tile_rows(p_.out[2]);
    const TileShape tile{p_.stride[2] * shape.pixel, 1, kTileColumns<T>};
    T* const result = result_ + n * volume(places_.extent) * all + group * p_.features;
    const int64_t result_row = places_.step[2] * all;
    for (int64_t panel = 0; panel < panels_; ++panel) {
      const int64_t column = panel * kTileColumns<T>;
      const int64_t columns = std::min<int64_t>(kTileColumns<T>, p_.features - column);
      const T* const b = packed_ + (group * panels_ + panel) * inner_ * kTileColumns<T>;
      for (size_t pass = 0; pass < passes_.size(); ++pass) {
        for (int64_t r = 0; r < rows; ++r) {
          const T* const a = slab + r * p_.stride[1] * shape.row;
          for (int64_t x = 0; x < p_.out[2]; x += step) {
            const int64_t count = std::min(step, p_.out[2] - x);
            table.of(count, columns)(passes_[pass].data(), static_cast<int64_t>(passes_[pass].size()), tile,
                                     a + x * tile.a_row, b, result + places_.at(plane, first + r, x) * all + column,
                                     result_row, columns, pass > 0);
          }
        }
      }
    }
  }

  const ConvParams& p_;
  const Places& places_;
  const Convolution<T> conv_;
  const T* const kernel_;
  T* const result_;
  const int64_t inner_, panels_;
  int64_t rows_ = 1, blocks_ = 1;
  SlabShape shape_{};
  std::vector<std::vector<Run>> passes_;
  T* packed_ = nullptr;
};

// A dilated image (a transposed convolution) without its zeros: the result's positions fall into phases
// that see each a part of the window, in the image as it is.
//
//   x * base = o * stride + w * dilation - pad
//   o = o0 + t * base / gcd(stride, base), w = w0 + j * base / gcd(dilation, base)   ->   x in steps in t and j
//
// 28 x 28 pixels of 32 channels to 56 x 56, windows of 3 x 3, four images, one thread: 890 us with the zeros.
struct Phase {
  int64_t result, results, result_step;  // o0, their number, and from one to the next
  int64_t tap, taps, tap_step;           // w0, ...
  int64_t stride, dilation, pad;         // in the image as it is
};

std::vector<Phase> phases_of(const ConvParams& p, int axis) {
  const int64_t base = p.base[axis], stride = p.stride[axis], dilation = p.dilation[axis];
  const int64_t result_step = base / std::gcd(stride, base), tap_step = base / std::gcd(dilation, base);
  std::vector<Phase> found;
  for (int64_t o = 0; o < std::min(result_step, p.out[axis]); ++o) {
    Phase phase{o, ceil_divide(p.out[axis] - o, result_step), result_step, 0, 0, tap_step,
                result_step * stride / base, tap_step * dilation / base, 0};
    for (int64_t w = 0; w < std::min(tap_step, p.window[axis]); ++w) {
      const int64_t at = o * stride + w * dilation - p.pad[axis];
      if (at % base != 0) continue;
      phase.tap = w;
      phase.taps = ceil_divide(p.window[axis] - w, tap_step);
      phase.pad = -at / base;
    }
    found.push_back(phase);
  }
  return found;
}

template <class T>
class DilatedImage {
 public:
  DilatedImage(void* const* buffers, const ConvParams& params)
      : p_(params),
        image_(static_cast<const T*>(buffers[0])),
        kernel_(static_cast<const T*>(buffers[1])),
        result_(static_cast<T*>(buffers[2])) {}

  void run(const volatile int32_t* cancel) {
    const auto planes = phases_of(p_, 0), rows = phases_of(p_, 1), columns = phases_of(p_, 2);
    for (const Phase& plane : planes) {
      for (const Phase& row : rows) {
        for (const Phase& column : columns) {
          if (is_raised(cancel)) return;
          const Phase phases[3] = {plane, row, column};
          compute(phases, cancel);
        }
      }
    }
  }

 private:
  void compute(const Phase (&phases)[3], const volatile int32_t* cancel) {
    ConvParams part = p_;
    Places places{};
    for (int axis = 0; axis < 3; ++axis) {
      const Phase& phase = phases[axis];
      part.out[axis] = phase.results;
      part.window[axis] = phase.taps;
      part.stride[axis] = phase.stride;
      part.dilation[axis] = phase.dilation;
      part.pad[axis] = phase.pad;
      part.base[axis] = 1;
      places.extent[axis] = p_.out[axis];
      places.first[axis] = phase.result;
      places.step[axis] = phase.result_step;
    }
    if (volume(part.window) == 0) return clear(part, places);
    const int64_t tap = p_.channels * p_.groups * p_.features;
    const Ref<Block> block = Pool::allocate(static_cast<size_t>(volume(part.window) * tap) * sizeof(T));
    T* target = static_cast<T*>(block->data());
    for (int64_t d = 0; d < part.window[0]; ++d) {
      for (int64_t r = 0; r < part.window[1]; ++r) {
        for (int64_t x = 0; x < part.window[2]; ++x, target += tap) {
          const int64_t plane = phases[0].tap + d * phases[0].tap_step;
          const int64_t row = plane * p_.window[1] + phases[1].tap + r * phases[1].tap_step;
          const int64_t column = row * p_.window[2] + phases[2].tap + x * phases[2].tap_step;
          std::copy_n(kernel_ + column * tap, tap, target);
        }
      }
    }
    Forward<T>(image_, static_cast<const T*>(block->data()), result_, part, places).run(cancel);
  }

  // Positions that see no tap.
  void clear(const ConvParams& part, const Places& places) {
    const int64_t all = p_.groups * p_.features;
    for (int64_t n = 0; n < p_.images; ++n) {
      for (int64_t d = 0; d < part.out[0]; ++d) {
        for (int64_t r = 0; r < part.out[1]; ++r) {
          for (int64_t x = 0; x < part.out[2]; ++x)
            std::fill_n(result_ + (n * volume(places.extent) + places.at(d, r, x)) * all, all, T(0));
        }
      }
    }
  }

  const ConvParams& p_;
  const T* const image_;
  const T* const kernel_;
  T* const result_;
};

// ---- conv_kernel

template <class T>
class KernelGradient {
 public:
  KernelGradient(void* const* buffers, const ConvParams& params)
      : p_(params),
        conv_(params, static_cast<const T*>(buffers[0])),
        other_(static_cast<const T*>(buffers[1])),
        result_(static_cast<T*>(buffers[2])),
        all_(params.groups * params.features) {
    const SlabShape row = conv_.shape(p_.out[0], 1);
    rows_ = rows_per_unit(p_.window[1], p_.out[0] * row.columns * p_.channels * int64_t{sizeof(T)},
                          p_.dilation[1], (p_.out[1] - 1) * p_.stride[1],
                          std::max<int64_t>(kGradientDepth / p_.window[2], 1));
    blocks_ = ceil_divide(p_.window[1], rows_);
    shape_ = conv_.shape(p_.out[0], Convolution<T>::covered(p_.out[1], p_.stride[1], rows_, p_.dilation[1]));
    joined_ = p_.stride[2] == 1 && shape_.pixel == p_.channels;
    in_place_b_ = all_ * int64_t{sizeof(T)} <= kInPlaceRow;
  }

  void run(const volatile int32_t* cancel) {
    const int64_t units = p_.images * p_.window[0] * blocks_;
    const int64_t size = volume(p_.out) * p_.channels * all_;
    const int64_t threads = work_of(p_) <= kSerialWork ? 1 : num_threads();
    const int64_t panels = ceil_divide(p_.features, kTileColumns<T>);
    const int64_t parts = std::min(threads, units);
    if (size > kLargestSum || parts < 2) {
      // a share of the features each: the slabs are filled once for every share
      const int64_t share = ceil_divide(panels, ceil_divide(threads, p_.groups)) * kTileColumns<T>;
      const int64_t shares = ceil_divide(p_.features, share);
      const int64_t jobs = p_.groups * shares;
      parallel_for(jobs, threads == 1 ? jobs : 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t job = begin; job < end; ++job) {
          const int64_t column = job % shares * share;
          for (int64_t unit = 0; unit < units && !is_raised(cancel); ++unit)
            add(job / shares, unit, column, std::min(share, p_.features - column), result_, unit > 0);
        }
      });
      return;
    }
    // a share of the images each; the sums are added in order, so that no result depends on chance
    const Ref<Block> block = Pool::allocate(static_cast<size_t>((parts - 1) * size) * sizeof(T));
    T* const sums = static_cast<T*>(block->data());
    const int64_t share = ceil_divide(units, parts);
    parallel_for(parts, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t part = begin; part < end; ++part) {
        T* const target = part == 0 ? result_ : sums + (part - 1) * size;
        const int64_t last = std::min(units, (part + 1) * share);
        if (part * share >= last) std::fill_n(target, size, T(0));
        for (int64_t unit = part * share; unit < last && !is_raised(cancel); ++unit) {
          for (int64_t group = 0; group < p_.groups; ++group)
            add(group, unit, 0, p_.features, target, unit > part * share);
        }
      }
    });
    for (int64_t part = 1; part < parts; ++part) {
      const T* const sum = sums + (part - 1) * size;
      for (int64_t i = 0; i < size; ++i) result_[i] += sum[i];
    }
  }

 private:
  // Adds what some rows of one image contribute to features [column, column + columns) of the target.
  void add(int64_t group, int64_t unit, int64_t column, int64_t columns, T* target, bool accumulate) {
    const int64_t first = unit % blocks_ * rows_, rows = std::min(rows_, p_.window[1] - first);
    const int64_t plane = unit / blocks_ % p_.window[0], n = unit / blocks_ / p_.window[0];
    const int64_t slab_elements = conv_.in_place() ? 0 : round_up(shape_.elements(), 16);
    const int64_t length = rows * p_.window[2];
    const int64_t panel_elements = in_place_b_ ? 0 : length * kTileColumns<T>;
    T* const memory = static_cast<T*>(
        thread_scratch(static_cast<size_t>(slab_elements + panel_elements) * sizeof(T)));
    T* const packed = memory + slab_elements;
    SlabShape shape = shape_;
    shape.rows = Convolution<T>::covered(p_.out[1], p_.stride[1], rows, p_.dilation[1]);
    const SlabPlace place{
        {plane * p_.dilation[0] - p_.pad[0], first * p_.dilation[1] - p_.pad[1], -p_.pad[2]}, p_.stride[0]};
    const T* const slab = conv_.slab(group, n, place, shape, memory);
    const T* const b =
        other_ + ((n * p_.window[0] + plane) * p_.window[1] + first) * p_.window[2] * all_ + group * p_.features;

    const TileTable<T>& table = tile_table<T>();
    const TileShape tile{1, p_.dilation[2] * shape.pixel, in_place_b_ ? all_ : kTileColumns<T>};
    const int64_t height = (joined_ ? p_.out[2] : 1) * p_.channels, step = tile_rows(height);
    // `other` is contiguous along both axes; the slab only along the last one
    std::vector<Run> runs(static_cast<size_t>(rows));
    for (int64_t r = 0; r < rows; ++r) {
      runs[static_cast<size_t>(r)] = {r * p_.dilation[1] * shape.row, r * p_.window[2] * tile.b_row,
                                      p_.window[2]};
    }
    for (int64_t j = column; j < column + columns; j += kTileColumns<T>) {
      const int64_t here = std::min<int64_t>(kTileColumns<T>, column + columns - j);
      if (!in_place_b_) pack_panel(b + j, all_, int64_t{1}, length, here, int64_t{kTileColumns<T>}, packed);
      const T* const panel = in_place_b_ ? b + j : packed;
      for (int64_t d = 0; d < p_.out[0]; ++d) {
        for (int64_t o = 0; o < p_.out[1]; ++o) {
          for (int64_t x = 0; x < (joined_ ? 1 : p_.out[2]); ++x) {
            const T* const a =
                slab + d * shape.plane + o * p_.stride[1] * shape.row + x * p_.stride[2] * shape.pixel;
            T* const c = target + ((d * p_.out[1] + o) * p_.out[2] + x) * p_.channels * all_ +
                         group * p_.features + j;
            for (int64_t m = 0; m < height; m += step) {
              const int64_t count = std::min(step, height - m);
              table.of(count, here)(runs.data(), rows, tile, a + m, panel, c + m * all_, all_, here, accumulate);
            }
          }
        }
      }
    }
  }

  const ConvParams& p_;
  const Convolution<T> conv_;
  const T* const other_;
  T* const result_;
  const int64_t all_;
  int64_t rows_ = 1, blocks_ = 1;
  SlabShape shape_{};
  bool joined_ = false, in_place_b_ = false;
};

const ConvParams& conv_params(const int64_t* params) { return *reinterpret_cast<const ConvParams*>(params); }

template <template <class> class Routine>
void run_as(void* const* buffers, const int64_t* params, Context& context) {
  const ConvParams& p = conv_params(params);
  if (static_cast<DType>(p.dtype) == DType::Float32) {
    Routine<float>(buffers, p).run(context.cancel);
  } else {
    Routine<double>(buffers, p).run(context.cancel);
  }
}

}  // namespace

template <class T>
class AnyForward {
 public:
  AnyForward(void* const* buffers, const ConvParams& params) : buffers_(buffers), p_(params) {}

  void run(const volatile int32_t* cancel) {
    if (volume(p_.base) > 1) return DilatedImage<T>(buffers_, p_).run(cancel);
    const Places places{{p_.out[0], p_.out[1], p_.out[2]}, {0, 0, 0}, {1, 1, 1}};
    const T *const image = static_cast<const T*>(buffers_[0]), *const kernel = static_cast<const T*>(buffers_[1]);
    Forward<T>(image, kernel, static_cast<T*>(buffers_[2]), p_, places).run(cancel);
  }

 private:
  void* const* buffers_;
  const ConvParams& p_;
};

void run_conv(void* const* buffers, const int64_t* params, Context& context) {
  run_as<AnyForward>(buffers, params, context);
}

void run_conv_kernel(void* const* buffers, const int64_t* params, Context& context) {
  run_as<KernelGradient>(buffers, params, context);
}

void check_conv(const int64_t* params) {
  const ConvParams& p = conv_params(params);
  const auto dtype = static_cast<DType>(p.dtype);
  if (dtype != DType::Float32 && dtype != DType::Float64)
    throw Error(ErrorKind::Value, "conv: expected float32 or float64, got dtype code " + std::to_string(p.dtype));
  const auto positive = [](const char* what, int64_t value) {
    if (value < 1)
      throw Error(ErrorKind::Value,
                  std::string("conv: expected ") + what + " of at least 1, got " + std::to_string(value));
  };
  positive("a number of images", p.images);
  positive("a number of groups", p.groups);
  positive("channels", p.channels);
  positive("features", p.features);
  for (int axis = 0; axis < 3; ++axis) {
    positive("extents of the image", p.in[axis]);
    positive("extents of the window", p.window[axis]);
    positive("extents of the result", p.out[axis]);
    positive("strides", p.stride[axis]);
    positive("dilations of the window", p.dilation[axis]);
    positive("dilations of the image", p.base[axis]);
  }
}

}  // namespace jato
