// A group of Fourier transforms computed side by side, one in each lane of a vector.
//
// fft_kernels.h is compiled twice, for AVX-512 and for what every machine has; `fft_groups` gives the table of the
// one to use.
#pragma once
#include <cstdint>

#include "fft_plan.h"

namespace jato {

// How numbers lie in memory.  Distances are in elements of T.
enum class FftForm : uint8_t {
  Rows,     // complex, those of a transform side by side; the next transform `lane` further
  Columns,  // complex, transforms side by side; the next number `element` further
  Real,     // as Rows, with an imaginary part that is not there
  Blocks,   // as Rows, but a vector of real parts and a vector of imaginary ones in turn
};

// What else there is to do for real arrays.  Those of even length 2 n are transformed as n complex numbers: the spectrum is
// split into the half or the full one of the real array, or joined from its half.  Mirror: of odd length n, the full
// spectrum is made from its half.
enum class FftReal : uint8_t { None, ToHalf, ToFull, FromHalf, Mirror };

template <class T>
struct FftGroup {
  const FftPlan<T>* plan;
  const T* in;
  int64_t in_element, in_lane;
  T* out;
  int64_t out_element, out_lane;
  int64_t lanes;            // transforms; at most the lanes of `width` vectors
  int64_t width;            // vectors side by side; 1 unless from columns to columns
  T scale;
  FftForm in_form, out_form;
  FftReal real = FftReal::None;
  int64_t stored = 0;       // how many results of a transform are wanted; 0: all
  bool inverse = false;     // of the complex transform: real and imaginary parts change places at both ends
  bool conjugated = false;  // negates the imaginary parts of the results
  const T* factors = nullptr;     // of the results: by which each is multiplied; see grid_roots
  const T* half_roots = nullptr;  // for `real`
  void* scratch;            // two arrays of fft_scratch_numbers pairs of vectors
};

template <class T>
using FftGroupFn = void (*)(const FftGroup<T>&);

struct FftGroups {
  int64_t vector_bytes;
  FftGroupFn<float> single;
  FftGroupFn<double> twice;
};

const FftGroups& fft_groups();
// Those for every machine, for tests.
const FftGroups& plain_fft_groups();

// Numbers in one of the two arrays of a group's scratch: the full spectrum of 2 n, or n and what is left of the last block.
constexpr int64_t fft_scratch_numbers(int64_t n, int64_t width, int64_t lanes) {
  return width > 1 ? n * width : 2 * n + lanes;
}

}  // namespace jato
