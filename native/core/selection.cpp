// One pass over each row beside a sorted list of the k best so far.  Most elements are no better than the last of
// the list, and blocks without a better one are passed over by one vector comparison.
#include "selection.h"

#include <algorithm>
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

}  // namespace

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
