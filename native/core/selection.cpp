// top_k: one pass over each row beside a sorted list of the k best so far.  Most elements are no better than the
// last of the list, and blocks without a better one are passed over by one vector comparison.
//
// sort: keys become unsigned integers of the same order.  Runs of 32 are placed by counting, and merged joined with
// their positions; rows are then gathered by the positions.  No branch depends on the data.
#include "selection.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "dtype.h"
#include "errors.h"
#include "threadpool.h"

namespace jato {
namespace {

constexpr int64_t kBlock = 32;
constexpr int64_t kGrainElements = 16 * 1024;

// Is x before y in descending order?  NaN is before everything else, and no NaN before another.
template <class T>
bool is_larger(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return x > y || (x != x && y == y);
  } else {
    return x > y;
  }
}

// No element of the block is larger than `least`.
template <class T>
bool has_none_larger(const T* x, T least) {
  int count = 0;
  for (int64_t i = 0; i < kBlock; ++i) count += x[i] <= least;
  return count == kBlock;
}

template <class T>
void top_k_of_row(const T* x, int64_t n, int64_t k, T* values, int32_t* positions) {
  int64_t held = 0;
  const auto offer = [&](int64_t i) {
    if (held == k && !is_larger(x[i], values[k - 1])) return;
    int64_t place = held < k ? held++ : k - 1;
    for (; place > 0 && is_larger(x[i], values[place - 1]); --place) {
      values[place] = values[place - 1];
      positions[place] = positions[place - 1];
    }
    values[place] = x[i];
    positions[place] = static_cast<int32_t>(i);
  };
  int64_t i = 0;
  for (; i < std::min(k, n); ++i) offer(i);
  for (; i + kBlock <= n; i += kBlock) {
    if (has_none_larger(x + i, values[k - 1])) continue;
    for (int64_t j = i; j < i + kBlock; ++j) offer(j);
  }
  for (; i < n; ++i) offer(i);
}

template <class F>
void with_ordered_type(int64_t code, F f) {
  switch (static_cast<DType>(code)) {
    case DType::Int8:
      return f(int8_t{});
    case DType::Int16:
      return f(int16_t{});
    case DType::Int32:
      return f(int32_t{});
    case DType::Int64:
      return f(int64_t{});
    case DType::Bool:
    case DType::UInt8:
      return f(uint8_t{});
    case DType::UInt16:
      return f(uint16_t{});
    case DType::UInt32:
      return f(uint32_t{});
    case DType::UInt64:
      return f(uint64_t{});
    case DType::Float32:
      return f(float{});
    case DType::Float64:
      return f(double{});
    default:
      throw Error(ErrorKind::Value,
                  "top_k: expected integers, float32 or float64, got dtype code " + std::to_string(code));
  }
}

// ---- order

// How the bits of a key compare.
enum class Order { Unsigned, Signed, Floating };

// Bits as an unsigned integer that compares as the element does.  `infinity`: the bits of +inf of a float.
template <class U>
U ordered_bits(U bits, Order order, U infinity) {
  constexpr U top = static_cast<U>(U{1} << (8 * sizeof(U) - 1));
  if (order == Order::Unsigned) return bits;
  if (order == Order::Signed) return static_cast<U>(bits ^ top);
  const U magnitude = static_cast<U>(bits & ~top);
  if (magnitude > infinity) return std::numeric_limits<U>::max();  // NaN
  if (magnitude == 0) return top;
  return static_cast<U>(bits & top ? ~bits : bits | top);
}

// A key with its position.  Up to 32 bits of key fit into one word with it.
struct Wide {
  uint64_t key;
  uint32_t position;
  friend bool operator<(const Wide& a, const Wide& b) {
    return a.key < b.key || (a.key == b.key && a.position < b.position);
  }
};

template <class U>
using Word = std::conditional_t<sizeof(U) == 8, Wide, uint64_t>;

template <class U>
Word<U> join(U key, int64_t position) {
  if constexpr (sizeof(U) == 8) {
    return {key, static_cast<uint32_t>(position)};
  } else {
    return static_cast<uint64_t>(key) << 32 | static_cast<uint64_t>(position);
  }
}

uint32_t position_of(const Wide& word) { return word.position; }
uint32_t position_of(uint64_t word) { return static_cast<uint32_t>(word); }

// Up to so many elements are placed by counting the smaller ones of each: n^2 comparisons without a branch cost less
// than the mispredicted branches of a sort.
constexpr int64_t kCounted = 32;

// `keys` has room for kCounted.
template <class U>
void order_by_counting(U* keys, int64_t n, uint32_t* positions) {
  using S = std::make_signed_t<U>;  // SSE2 compares signed integers only
  constexpr U top = static_cast<U>(U{1} << (8 * sizeof(U) - 1));
  constexpr int64_t step = 16 / sizeof(U);
  const int64_t padded = (n + step - 1) / step * step;
  for (int64_t i = n; i < padded; ++i) keys[i] = std::numeric_limits<U>::max();
  S ordered[kCounted];
  for (int64_t i = 0; i < padded; ++i) ordered[i] = static_cast<S>(keys[i] ^ top);
  for (int64_t i = 0; i < n; ++i) {
    const S key = ordered[i], own = static_cast<S>(i);
    S smaller = 0;
    for (int64_t j = 0; j < padded; ++j) {
      const S at = static_cast<S>(j);
      smaller = static_cast<S>(smaller + static_cast<S>((ordered[j] < key) | ((ordered[j] == key) & (at < own))));
    }
    positions[smaller] = static_cast<uint32_t>(i);
  }
}

// b where `second` is 1, a where it is 0.  Masks, since a branch would be mispredicted every other time.
uint64_t choose(uint64_t second, uint64_t a, uint64_t b) { return a ^ ((a ^ b) & (0 - second)); }

Wide choose(uint64_t second, const Wide& a, const Wide& b) {
  return {choose(second, a.key, b.key), static_cast<uint32_t>(choose(second, a.position, b.position))};
}

// Two neighbouring runs as one.
template <class W>
void merge(const W* left, const W* middle, const W* end, W* out) {
  const W* right = middle;
  while (left != middle && right != end) {
    uint64_t from_right = *right < *left;
    asm("" : "+r"(from_right));  // a number, about which GCC knows nothing
    *out++ = choose(from_right, *left, *right);
    right += from_right;
    left += 1 - from_right;
  }
  out = std::copy(left, middle, out);
  std::copy(right, end, out);
}

// The positions of the keys that `key(i)` gives in ascending order.
template <class U, class Key>
void order_by_merging(Key key, int64_t n, uint32_t* positions) {
  Word<U> first[kMaxSorted], second[kMaxSorted];
  for (int64_t start = 0; start < n; start += kCounted) {
    const int64_t count = std::min(kCounted, n - start);
    U few[kCounted];
    for (int64_t i = 0; i < count; ++i) few[i] = key(start + i);
    order_by_counting(few, count, positions);
    for (int64_t i = 0; i < count; ++i) first[start + i] = join(few[positions[i]], start + positions[i]);
  }
  Word<U>*from = first, *to = second;
  for (int64_t width = kCounted; width < n; width *= 2, std::swap(from, to)) {
    for (int64_t start = 0; start < n; start += 2 * width) {
      merge(from + start, from + std::min(start + width, n), from + std::min(start + 2 * width, n), to + start);
    }
  }
  for (int64_t i = 0; i < n; ++i) positions[i] = position_of(from[i]);
}

template <class T>
void gather(const void* source, void* destination, int64_t start, const uint32_t* positions, int64_t n) {
  const T* const from = static_cast<const T*>(source) + start;
  T* const to = static_cast<T*>(destination) + start;
  for (int64_t i = 0; i < n; ++i) to[i] = from[positions[i]];
}

struct Sixteen {
  uint64_t low, high;
};

// The elements of a row of `n` from `start` on, in the order of the positions.
void gather_items(int64_t width, const void* source, void* destination, int64_t start, const uint32_t* positions,
                  int64_t n) {
  switch (width) {
    case 1:
      return gather<uint8_t>(source, destination, start, positions, n);
    case 2:
      return gather<uint16_t>(source, destination, start, positions, n);
    case 4:
      return gather<uint32_t>(source, destination, start, positions, n);
    case 8:
      return gather<uint64_t>(source, destination, start, positions, n);
    default:
      return gather<Sixteen>(source, destination, start, positions, n);
  }
}

// How keys of a dtype compare; false for dtypes without such keys.
bool find_order(int64_t code, Order* order, uint64_t* infinity) {
  if (!is_valid_dtype(code)) return false;
  *infinity = 0;
  switch (static_cast<DType>(code)) {
    case DType::Bool:
    case DType::UInt8:
    case DType::UInt16:
    case DType::UInt32:
    case DType::UInt64:
      *order = Order::Unsigned;
      return true;
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::Int64:
      *order = Order::Signed;
      return true;
    case DType::Float16:
      *infinity = 0x7C00;
      break;
    case DType::BFloat16:
      *infinity = 0x7F80;
      break;
    case DType::Float32:
      *infinity = 0x7F800000;
      break;
    case DType::Float64:
      *infinity = 0x7FF0000000000000;
      break;
    default:
      return false;
  }
  *order = Order::Floating;
  return true;
}

// Rows of keys of `U`: `emit(start, positions)` for each row in order.
template <class U, class Emit>
void sort_rows(const void* keys, const int64_t* params, Context& context, Emit emit) {
  Order order;
  uint64_t infinity;
  find_order(params[0], &order, &infinity);
  const int64_t rows = params[1], n = params[2];
  parallel_for(rows, std::max<int64_t>(1, kGrainElements / (4 * n)), [&](int64_t begin, int64_t end, int) {
    uint32_t positions[kMaxSorted];
    U few[kCounted];
    for (int64_t row = begin; row < end && !__atomic_load_n(context.cancel, __ATOMIC_RELAXED); ++row) {
      const U* const key = static_cast<const U*>(keys) + row * n;
      const auto bits = [&](int64_t i) { return ordered_bits(key[i], order, static_cast<U>(infinity)); };
      if (n <= kCounted) {
        for (int64_t i = 0; i < n; ++i) few[i] = bits(i);
        order_by_counting(few, n, positions);
      } else {
        order_by_merging<U>(bits, n, positions);
      }
      emit(row * n, static_cast<const uint32_t*>(positions));
    }
  });
}

template <class Emit>
void sort_rows_of(const void* keys, const int64_t* params, Context& context, Emit emit) {
  if (params[1] == 0 || params[2] == 0) return;
  switch (itemsize(static_cast<DType>(params[0]))) {
    case 1:
      return sort_rows<uint8_t>(keys, params, context, emit);
    case 2:
      return sort_rows<uint16_t>(keys, params, context, emit);
    case 4:
      return sort_rows<uint32_t>(keys, params, context, emit);
    default:
      return sort_rows<uint64_t>(keys, params, context, emit);
  }
}

}  // namespace

void run_sort(void* const* buffers, const int64_t* params, Context& context) {
  const int64_t n = params[2], width = static_cast<int64_t>(itemsize(static_cast<DType>(params[0])));
  sort_rows_of(buffers[0], params, context, [&](int64_t start, const uint32_t* positions) {
    gather_items(width, buffers[0], buffers[1], start, positions, n);
  });
}

void check_sort(const int64_t* params) {
  Order order;
  uint64_t infinity;
  if (!find_order(params[0], &order, &infinity)) {
    throw Error(ErrorKind::Value,
                "sort: expected bools, integers or floats, got dtype code " + std::to_string(params[0]));
  }
  if (params[1] >= 0 && params[2] >= 0 && params[2] <= kMaxSorted) return;
  throw Error(ErrorKind::Value, "sort: expected rows >= 0 and 0 <= n <= " + std::to_string(kMaxSorted) +
                                    ", got rows " + std::to_string(params[1]) + ", n " +
                                    std::to_string(params[2]));
}

void run_sort_pair(void* const* buffers, const int64_t* params, Context& context) {
  const int64_t n = params[2], width = static_cast<int64_t>(itemsize(static_cast<DType>(params[0])));
  sort_rows_of(buffers[0], params, context, [&](int64_t start, const uint32_t* positions) {
    gather_items(width, buffers[0], buffers[2], start, positions, n);
    gather_items(params[3], buffers[1], buffers[3], start, positions, n);
  });
}

void check_sort_pair(const int64_t* params) {
  check_sort(params);
  const int64_t width = params[3];
  if (width == 1 || width == 2 || width == 4 || width == 8 || width == 16) return;
  throw Error(ErrorKind::Value,
              "sort_pair: expected an itemsize of 1, 2, 4, 8 or 16, got " + std::to_string(width));
}

void run_top_k(void* const* buffers, const int64_t* params, Context& context) {
  const int64_t rows = params[1], n = params[2], k = params[3];
  if (k == 0) return;
  with_ordered_type(params[0], [&](auto zero) {
    using T = decltype(zero);
    const int64_t grain = std::max<int64_t>(1, kGrainElements / n);
    parallel_for(rows, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end && !__atomic_load_n(context.cancel, __ATOMIC_RELAXED); ++row) {
        top_k_of_row(static_cast<const T*>(buffers[0]) + row * n, n, k, static_cast<T*>(buffers[1]) + row * k,
                     static_cast<int32_t*>(buffers[2]) + row * k);
      }
    });
  });
}

void check_top_k(const int64_t* params) {
  with_ordered_type(params[0], [](auto) {});
  const bool fits = params[1] >= 0 && params[3] >= 0 && params[3] <= params[2] &&
                    params[2] <= std::numeric_limits<int32_t>::max();
  if (fits) return;
  throw Error(ErrorKind::Value, "top_k: expected rows >= 0 and 0 <= k <= n < 2^31, got rows " +
                                    std::to_string(params[1]) + ", n " + std::to_string(params[2]) + ", k " +
                                    std::to_string(params[3]));
}

}  // namespace jato
