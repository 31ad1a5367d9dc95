// Convolutions with channels, as library steps.
//
// Per group, with o a position of the result, w one of the window and x one of the image, each of three
// axes (axes of extent 1 for fewer):
//
//   x * base = o * stride + w * dilation - pad                     (no such x: the image is zero there)
//
//   conv          result[n, o, f] = sum over w, c of image[n, x, c] * kernel[w, c, f]
//   conv_kernel   result[o, c, f] = sum over n, w of image[n, x, c] * other[n, w, f]
//
// The second is the gradient of the first by its kernel, with window and result exchanged.  All arrays
// are dense; features of the kernel (the other array) and of the result are those of all groups.
#pragma once
#include <cstdint>

#include "library.h"

namespace jato {

struct ConvParams {
  int64_t dtype;        // Float32 or Float64
  int64_t images;       // n of one group
  int64_t groups;
  int64_t channels;     // c of one group
  int64_t features;     // f of one group
  int64_t group_offset;  // elements between the images of neighbouring groups
  int64_t pixel;        // elements between neighbouring pixels of the image
  int64_t in[3], window[3], out[3];
  int64_t stride[3], dilation[3], pad[3], base[3];
};

void run_conv(void* const* buffers, const int64_t* params, Context& context);
void run_conv_kernel(void* const* buffers, const int64_t* params, Context& context);
void check_conv(const int64_t* params);

}  // namespace jato
