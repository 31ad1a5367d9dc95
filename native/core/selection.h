// The largest elements of rows, and short rows in order, as library routines.
//
//   top_k       x [rows, n] -> values [rows, k], positions (int32) [rows, k]    params: dtype, rows, n, k
//   sort        x [rows, n] -> the same in ascending order                      params: dtype, rows, n
//   sort_pair   x, y [rows, n] -> both in the ascending order of x              params: dtype, rows, n, itemsize of y
//
// Of equal elements the first come first; NaN counts as largest, -0 equals 0.  top_k is descending.
#pragma once
#include <cstdint>

#include "library.h"

namespace jato {

void run_top_k(void* const* buffers, const int64_t* params, Context& context);
void check_top_k(const int64_t* params);

// The rows of `sort` have at most this many elements: they are ordered on the stack.
inline constexpr int64_t kMaxSorted = 512;

void run_sort(void* const* buffers, const int64_t* params, Context& context);
void check_sort(const int64_t* params);
void run_sort_pair(void* const* buffers, const int64_t* params, Context& context);
void check_sort_pair(const int64_t* params);

}  // namespace jato
