// The kernels of groups, for both kinds of machine.
#include "fft_groups.h"

#include <cstddef>

#include "register_tile.h"

namespace jato {
namespace {

template <int... E>
struct Sequence {};

template <int N, int... E>
struct Count : Count<N - 1, N - 1, E...> {};
template <int... E>
struct Count<0, E...> {
  using Type = Sequence<E...>;
};

namespace plain {
#define JATO_FFT_BYTES 16
#include "fft_kernels.h"
#undef JATO_FFT_BYTES
}  // namespace plain

#if defined(__x86_64__) && defined(__GNUC__)
#define JATO_FFT_WIDE 1
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512bw,avx512dq,fma,prefer-vector-width=512")
#endif
namespace wide {
#define JATO_FFT_BYTES 64
#include "fft_kernels.h"
#undef JATO_FFT_BYTES
}  // namespace wide
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

}  // namespace

const FftGroups& plain_fft_groups() {
  static constexpr FftGroups groups{16, plain::run_group<float>, plain::run_group<double>};
  return groups;
}

const FftGroups& fft_groups() {
#ifdef JATO_FFT_WIDE
  static constexpr FftGroups groups{64, wide::run_group<float>, wide::run_group<double>};
  if (has_avx512()) return groups;
#endif
  return plain_fft_groups();
}

}  // namespace jato
