// Fourier transforms over the last axes.
//
//   fft   x -> result     params: dtype of x, kind, batch, rank, then kMaxFftRank lengths of axes (unused ones 1)
//
// kind: 0 forward and 1 back, of complex or real x; 2 real x to half spectra; 3 half spectra to real arrays.  Lengths are
// those of the real array, as in ops/fft.py; the transforms back divide by the number of points.
#pragma once
#include <cstdint>

#include "library.h"

namespace jato {

constexpr int kMaxFftRank = 4;
constexpr int kFftParams = 4 + kMaxFftRank;

void run_fft(void* const* buffers, const int64_t* params, Context& context);
void check_fft(const int64_t* params);

}  // namespace jato
