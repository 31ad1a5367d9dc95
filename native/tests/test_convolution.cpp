// Convolutions against the definition in convolution.h, on arrays of exactly the right size: what reads
// or writes beyond them is found by AddressSanitizer.
#include <random>
#include <vector>

#include "check.h"
#include "convolution.h"
#include "errors.h"

namespace jato::test {
namespace {

// Extents of the result for a window, as the compiler computes them.
int64_t count_of(int64_t in, int64_t window, int64_t stride, int64_t low, int64_t high, int64_t base,
                 int64_t dilation) {
  return ((in - 1) * base + 1 + low + high - ((window - 1) * dilation + 1)) / stride + 1;
}

ConvParams random_params(std::mt19937& random, bool by_images) {
  const auto pick = [&](int low, int high) {
    return int64_t{std::uniform_int_distribution<int>(low, high)(random)};
  };
  ConvParams p{};
  p.images = pick(1, 3);
  p.groups = pick(0, 2) == 0 ? pick(2, 3) : 1;
  p.channels = pick(1, 6);
  p.features = pick(1, 40);
  p.pixel = by_images ? p.channels : p.channels * p.groups;
  for (int axis = 0; axis < 3; ++axis) {
    const bool flat = axis == 0 && pick(0, 2) > 0;
    p.in[axis] = flat ? 1 : pick(1, 16);
    p.window[axis] = flat ? 1 : pick(1, 4);
    p.stride[axis] = pick(1, 2);
    p.dilation[axis] = pick(1, 2);
    p.base[axis] = pick(0, 3) == 0 ? 2 : 1;
    p.pad[axis] = flat ? 0 : pick(-1, 2);
    int64_t high = flat ? 0 : pick(0, 3);
    while (count_of(p.in[axis], p.window[axis], p.stride[axis], p.pad[axis], high, p.base[axis],
                    p.dilation[axis]) < 1)
      ++high;
    p.out[axis] = count_of(p.in[axis], p.window[axis], p.stride[axis], p.pad[axis], high, p.base[axis],
                           p.dilation[axis]);
  }
  p.group_offset = by_images ? p.images * p.in[0] * p.in[1] * p.in[2] * p.pixel : p.channels;
  return p;
}

// Calls body(result position, window position, image position) for every pair that meets the image.
template <class F>
void for_each_pair(const ConvParams& p, F body) {
  int64_t o[3], w[3];
  for (o[0] = 0; o[0] < p.out[0]; ++o[0])
    for (o[1] = 0; o[1] < p.out[1]; ++o[1])
      for (o[2] = 0; o[2] < p.out[2]; ++o[2])
        for (w[0] = 0; w[0] < p.window[0]; ++w[0])
          for (w[1] = 0; w[1] < p.window[1]; ++w[1])
            for (w[2] = 0; w[2] < p.window[2]; ++w[2]) {
              int64_t x[3];
              bool inside = true;
              for (int axis = 0; axis < 3; ++axis) {
                const int64_t at = o[axis] * p.stride[axis] + w[axis] * p.dilation[axis] - p.pad[axis];
                inside = inside && at >= 0 && at % p.base[axis] == 0 && at / p.base[axis] < p.in[axis];
                x[axis] = at / p.base[axis];
              }
              if (!inside) continue;
              body((o[0] * p.out[1] + o[1]) * p.out[2] + o[2],
                   (w[0] * p.window[1] + w[1]) * p.window[2] + w[2],
                   (x[0] * p.in[1] + x[1]) * p.in[2] + x[2]);
            }
}

int64_t size_of(const int64_t (&extents)[3]) { return extents[0] * extents[1] * extents[2]; }

template <class T>
void check_case(std::mt19937& random, DType dtype, bool is_result) {
  const bool by_images = random() % 2 == 0;
  ConvParams p = random_params(random, by_images);
  p.dtype = static_cast<int64_t>(dtype);
  const auto numbers = [&](int64_t count) {
    std::vector<T> values(static_cast<size_t>(count));
    for (T& v : values) v = static_cast<T>(std::uniform_int_distribution<int>(-4, 4)(random));
    return values;
  };
  const int64_t all = p.groups * p.features;
  std::vector<T> image = numbers(p.images * size_of(p.in) * p.channels * p.groups);
  std::vector<T> other = is_result ? numbers(size_of(p.window) * p.channels * all)
                                   : numbers(p.images * size_of(p.window) * all);
  std::vector<T> expected(static_cast<size_t>((is_result ? p.images : p.channels) * size_of(p.out) * all));
  std::vector<T> found(expected.size(), T(99));
  for_each_pair(p, [&](int64_t o, int64_t w, int64_t x) {
    for (int64_t g = 0; g < p.groups; ++g)
      for (int64_t n = 0; n < p.images; ++n)
        for (int64_t c = 0; c < p.channels; ++c) {
          const T pixel = image[static_cast<size_t>(g * p.group_offset + (n * size_of(p.in) + x) * p.pixel + c)];
          for (int64_t f = g * p.features; f < (g + 1) * p.features; ++f) {
            const int64_t from = is_result ? (w * p.channels + c) * all + f
                                           : (n * size_of(p.window) + w) * all + f;
            const int64_t to = is_result ? (n * size_of(p.out) + o) * all + f : (o * p.channels + c) * all + f;
            expected[static_cast<size_t>(to)] += pixel * other[static_cast<size_t>(from)];
          }
        }
  });
  void* buffers[] = {image.data(), other.data(), found.data()};
  const auto* words = reinterpret_cast<const int64_t*>(&p);
  const LibraryRoutine* routine = find_routine(is_result ? "conv" : "conv_kernel");
  CHECK(routine->num_params == static_cast<int>(sizeof p / sizeof(int64_t)));
  routine->check(words);
  const int32_t never = 0;
  Context context{&never};
  routine->run(buffers, words, context);
  CHECK(found == expected);  // small integers: sums are exact in any order
}

}  // namespace

void test_convolution(Runner& runner) {
  for (const bool is_result : {true, false}) {
    runner.run(is_result ? "conv is its definition" : "conv_kernel is its definition", [&] {
      std::mt19937 random(7);
      for (int i = 0; i < 120; ++i) {
        check_case<float>(random, DType::Float32, is_result);
        if (i % 4 == 0) check_case<double>(random, DType::Float64, is_result);
      }
    });
  }

  runner.run("parameters that make no sense are refused", [] {
    std::mt19937 random(1);
    ConvParams p = random_params(random, false);
    const auto* words = reinterpret_cast<const int64_t*>(&p);
    p.dtype = static_cast<int64_t>(DType::Int32);
    CHECK_THROWS(Error, check_conv(words));
    p.dtype = static_cast<int64_t>(DType::Float32);
    check_conv(words);
    p.stride[1] = 0;
    CHECK_THROWS(Error, check_conv(words));
  });
}

}  // namespace jato::test
