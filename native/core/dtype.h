// Element types of arrays.  The order is fixed: the codes appear in type objects, in the
// parameters of library routines and, through Python, in cached kernels.
#pragma once
#include <cstddef>
#include <cstdint>

namespace jato {

enum class DType : uint8_t {
  Bool,
  Int8,
  Int16,
  Int32,
  Int64,
  UInt8,
  UInt16,
  UInt32,
  UInt64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  Complex64,
  Complex128,
  Float0,  // the tangent type of integers: a bool that is always false
  Key,     // a PRNG key: two 32-bit words
};

inline constexpr int kNumDTypes = 17;

constexpr size_t itemsize(DType dtype) noexcept {
  constexpr uint8_t sizes[kNumDTypes] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1, 8};
  return sizes[static_cast<int>(dtype)];
}

constexpr const char* name(DType dtype) noexcept {
  constexpr const char* names[kNumDTypes] = {
      "bool",    "int8",     "int16",   "int32",   "int64",     "uint8",      "uint16", "uint32", "uint64",
      "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "float0", "key"};
  return names[static_cast<int>(dtype)];
}

constexpr bool is_valid_dtype(int64_t code) noexcept { return code >= 0 && code < kNumDTypes; }

}  // namespace jato
