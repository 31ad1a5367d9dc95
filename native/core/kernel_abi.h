// The contract between compiled kernels and the runtime.  compiler/llvm/abi.py mirrors the
// offsets of KernelArgs; a test compares the two.
#pragma once
#include <cstddef>
#include <cstdint>

#include "tile_copy.h"

namespace jato {

struct KernelArgs {
  void* const* buffers;            // one pointer per kernel buffer, in the kernel's order
  const int64_t* params;           // run-time extents, strides and offsets
  void* scratch;                   // per-call scratch for "local" buffers, 64-byte aligned
  const volatile int32_t* cancel;  // nonzero: long loops may stop early; results are discarded
  const TileCopyFn* routines;      // what kernels call: tile_copies()
};

// Runs iterations [begin, end) of the kernel's grid.  Re-entrant; several threads run disjoint
// ranges of the same KernelArgs (with scratch of their own) at once.
using KernelFn = void (*)(const KernelArgs* args, int64_t begin, int64_t end);

}  // namespace jato
