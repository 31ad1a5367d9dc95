// The largest elements of rows, as a library routine.
//
//   top_k   x [rows, n] -> values [rows, k], positions (int32) [rows, k]     params: dtype, rows, n, k
//
// Descending; of equal elements the first come first; NaN counts as largest, -0 equals 0.
#pragma once
#include <cstdint>

#include "library.h"

namespace jato {

void run_top_k(void* const* buffers, const int64_t* params, Context& context);
void check_top_k(const int64_t* params);

}  // namespace jato
