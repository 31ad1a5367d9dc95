// Matrix products of library steps; the meaning of the parameters is in library.h.
#pragma once
#include <cstdint>

#include "library.h"

namespace jato {

void run_gemm(void* const* buffers, const int64_t* params, Context& context);
// Rows are counted through all matrices of the batch: row r is row r % m of matrix r / m.
bool run_gemm_tiled(void* const* buffers, const int64_t* params, Context& context, const RowTiles& tiles);
void check_gemm(const int64_t* params);

void run_gemv(void* const* buffers, const int64_t* params, Context& context);
void check_gemv(const int64_t* params);

}  // namespace jato
