// Code for AVX-512 in a library that is built for any x86-64 processor: functions of that target, chosen
// at run time.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define JATO_HAS_AVX512_TILES 1
#define JATO_AVX512 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,fma")))
// Inlined into functions of the same target only.
#define JATO_AVX512_INLINE JATO_AVX512 __attribute__((always_inline)) inline
#else
#define JATO_HAS_AVX512_TILES 0
#endif
