// Groups of transforms (fft_groups.h) spread over the threads, and what all stages of a transform share.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "fft_groups.h"
#include "library.h"
#include "pool.h"
#include "threadpool.h"

namespace jato {
namespace {  // included by fft.cpp only

// Work of a group, per number, vector and doubling of the length, in nanoseconds; and what is worth a thread.
constexpr double kNumberCost = 0.8;
constexpr double kThreadCost = 5000;

// All transforms along one axis.
template <class T>
struct Stage {
  int64_t n;  // length of the complex transform
  T scale;
  bool inverse, conjugated;
};

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

}  // namespace
}  // namespace jato
