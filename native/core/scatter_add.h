// Sums of rows by index, as a library routine.
//
//   scatter_add_rows   operand [places, row], indices [count], updates [count, row] -> result [places, row]
//                      params: dtype, dtype of the indices (int32, int64), count, places, row, clip
//
// result[indices[u]] += updates[u].  Indices out of bounds are moved inside (clip) or their rows dropped.
// With few places the updates are cut into a fixed number of shares with sums of their own, so that the result does
// not depend on the number of threads.
#pragma once
#include <cstdint>

#include "library.h"

namespace jato {

void run_scatter_add_rows(void* const* buffers, const int64_t* params, Context& context);
void check_scatter_add_rows(const int64_t* params);

}  // namespace jato
