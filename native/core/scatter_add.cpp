// Shares of the updates on several threads, each with sums of its own; or, for long rows, columns.
#include "scatter_add.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "dtype.h"
#include "errors.h"
#include "threadpool.h"

namespace jato {
namespace {

constexpr int64_t kShares = 8;
constexpr int64_t kShareUpdates = 4 * 1024;  // elements: fewer are not worth a share
constexpr int64_t kColumns = 32;             // of a row that one thread takes: whole cache lines

struct Sizes {
  int64_t count, places, row;
  bool clip;
};

// Adds updates [begin, end), of their columns [first, last), to sums.  kRow: the length of a row, 0 if it is longer.
template <int kRow, class T, class I>
[[gnu::always_inline]] inline void add_rows(T* sums, const I* indices, const T* updates, const Sizes& s, int64_t begin, int64_t end,
              int64_t first, int64_t last) {
  const int64_t row = kRow > 0 ? kRow : s.row;
  if constexpr (kRow == 1) {
    first = 0;
    last = 1;
  }
  for (int64_t u = begin; u < end; ++u) {
    int64_t place = static_cast<int64_t>(indices[u]);
    if (static_cast<uint64_t>(place) >= static_cast<uint64_t>(s.places)) {
      if (!s.clip) continue;
      place = place < 0 ? 0 : s.places - 1;
    }
    T* const __restrict target = sums + place * row;
    const T* const __restrict source = updates + u * row;
    if constexpr (kRow > 1) {
      // spelt as vectors: loops this short are unrolled before the compiler looks for them
      typedef T Row __attribute__((vector_size(kRow * sizeof(T)), aligned(alignof(T)), may_alias));
      *reinterpret_cast<Row*>(target) += *reinterpret_cast<const Row*>(source);
    } else {
      for (int64_t j = first; j < last; ++j) target[j] += source[j];
    }
  }
}

template <class T, class I>
[[gnu::always_inline]] inline void add_by_length(T* sums, const I* indices, const T* updates, const Sizes& s,
                                                 int64_t begin, int64_t end, int64_t first, int64_t last) {
  switch (s.row) {
    case 1:
      return add_rows<1>(sums, indices, updates, s, begin, end, 0, 1);
    case 4:
      return add_rows<4>(sums, indices, updates, s, begin, end, 0, 4);
    case 8:
      return add_rows<8>(sums, indices, updates, s, begin, end, 0, 8);
    case 16:
      return add_rows<16>(sums, indices, updates, s, begin, end, 0, 16);
    default:
      return add_rows<0>(sums, indices, updates, s, begin, end, first, last);
  }
}

#if defined(__x86_64__)
#define JATO_WIDE [[gnu::target("avx2")]]
bool has_wide() { return __builtin_cpu_supports("avx2"); }
#else
#define JATO_WIDE
bool has_wide() { return false; }
#endif

// The same code, compiled for wider vectors.
template <class T, class I>
JATO_WIDE void add_wide(T* sums, const I* indices, const T* updates, const Sizes& s, int64_t begin, int64_t end,
                        int64_t first, int64_t last) {
  add_by_length(sums, indices, updates, s, begin, end, first, last);
}

template <class T, class I>
void add_some(T* sums, const I* indices, const T* updates, const Sizes& s, int64_t begin, int64_t end,
              int64_t first, int64_t last) {
  static const bool wide = has_wide();
  if (wide) return add_wide(sums, indices, updates, s, begin, end, first, last);
  add_by_length(sums, indices, updates, s, begin, end, first, last);
}

template <class T, class I>
void scatter_add_rows(const T* operand, const I* indices, const T* updates, T* result, const Sizes& s,
                      const volatile int32_t* cancel) {
  const int64_t size = s.places * s.row;
  copy_bytes(result, operand, static_cast<size_t>(size) * sizeof(T));
  if (size == 0 || s.count == 0) return;
  const bool many = s.count * s.row >= kShares * kShareUpdates;
  if (many && 2 * kShares * s.places <= s.count) {
    // -0 is what addition ignores: 0 would change the sign of a -0 that nothing is added to
    const T neutral = -T(0);
    T* const sums = static_cast<T*>(thread_scratch(static_cast<size_t>(kShares * size) * sizeof(T)));
    const int64_t share = (s.count + kShares - 1) / kShares;
    parallel_for(kShares, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t k = begin; k < end && !__atomic_load_n(cancel, __ATOMIC_RELAXED); ++k) {
        std::fill_n(sums + k * size, size, neutral);
        add_some(sums + k * size, indices, updates, s, k * share, std::min((k + 1) * share, s.count), 0,
                 s.row);
      }
    });
    parallel_for(size, 4096, [&](int64_t begin, int64_t end, int) {
      for (int64_t k = 0; k < kShares; ++k) {
        for (int64_t e = begin; e < end; ++e) result[e] += sums[k * size + e];
      }
    });
    return;
  }
  if (many && s.row >= 2 * kColumns) {
    const int64_t blocks = (s.row + kColumns - 1) / kColumns;
    parallel_for(blocks, 1, [&](int64_t begin, int64_t end, int) {
      add_some(result, indices, updates, s, 0, s.count, begin * kColumns, std::min(end * kColumns, s.row));
    });
    return;
  }
  add_some(result, indices, updates, s, 0, s.count, 0, s.row);
}

template <class F>
void with_type(int64_t code, F f) {
  switch (static_cast<DType>(code)) {
    case DType::Float32:
      return f(float{});
    case DType::Float64:
      return f(double{});
    // two's complement: unsigned sums have the bits of signed ones, and never overflow
    case DType::Int32:
    case DType::UInt32:
      return f(uint32_t{});
    case DType::Int64:
    case DType::UInt64:
      return f(uint64_t{});
    default:
      throw Error(ErrorKind::Value, "scatter_add_rows: expected numbers of 32 or 64 bits, got dtype code " +
                                        std::to_string(code));
  }
}

}  // namespace

void run_scatter_add_rows(void* const* buffers, const int64_t* params, Context& context) {
  const Sizes sizes{params[2], params[3], params[4], params[5] != 0};
  with_type(params[0], [&](auto zero) {
    using T = decltype(zero);
    const auto run = [&](auto index) {
      scatter_add_rows(static_cast<const T*>(buffers[0]), static_cast<const decltype(index)*>(buffers[1]),
                       static_cast<const T*>(buffers[2]), static_cast<T*>(buffers[3]), sizes, context.cancel);
    };
    if (static_cast<DType>(params[1]) == DType::Int32) {
      run(int32_t{});
    } else {
      run(int64_t{});
    }
  });
}

void check_scatter_add_rows(const int64_t* params) {
  with_type(params[0], [](auto) {});
  const auto index = static_cast<DType>(params[1]);
  if (index != DType::Int32 && index != DType::Int64) {
    throw Error(ErrorKind::Value, "scatter_add_rows: expected indices of int32 or int64, got dtype code " +
                                      std::to_string(params[1]));
  }
  if (params[2] < 0 || params[3] < 0 || params[4] < 0) {
    throw Error(ErrorKind::Value, "scatter_add_rows: expected extents of at least 0");
  }
}

}  // namespace jato
