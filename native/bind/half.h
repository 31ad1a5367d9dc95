// Conversion of 16-bit floats, rounding to nearest even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace jato::bind {

inline double half_to_double(uint16_t bits) {
  int exponent = (bits >> 10) & 31;
  int fraction = bits & 1023;
  double magnitude = exponent == 31  ? (fraction ? std::nan("") : HUGE_VAL)
                     : exponent == 0 ? std::ldexp(fraction, -24)
                                     : std::ldexp(fraction + 1024, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

// Scales so that the last kept bit is worth one, then rounds to even: also right for subnormals.
inline uint16_t double_to_half(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return sign | 0x7E00;
  double magnitude = std::fabs(value);
  if (magnitude >= 65520.0) return sign | 0x7C00;  // halfway beyond the largest finite number
  int exponent = magnitude == 0 ? -24 : std::ilogb(magnitude);
  if (exponent < -14) exponent = -14;
  double fraction =
      std::nearbyint(std::ldexp(magnitude, 10 - exponent));         // 1024 .. 2048, or below for subnormals
  int bits = static_cast<int>(fraction) + ((exponent + 14) << 10);  // a carry runs into the exponent
  return static_cast<uint16_t>(sign | bits);
}

inline double bfloat16_to_double(uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
}

// Through float would round twice: a double just above a tie becomes the tie.
inline uint16_t double_to_bfloat16(double value) {
  if (std::isnan(value)) return std::signbit(value) ? 0xFFC0 : 0x7FC0;
  float narrow = static_cast<float>(value);
  if (std::isfinite(narrow) && static_cast<double>(narrow) != value) {
    // Round to odd keeps what was lost visible to the second rounding.
    uint32_t bits = std::bit_cast<uint32_t>(narrow);
    if (std::fabs(static_cast<double>(narrow)) > std::fabs(value)) --bits;
    narrow = std::bit_cast<float>(bits | 1);
  }
  uint32_t bits = std::bit_cast<uint32_t>(narrow);
  if (std::isinf(narrow)) return static_cast<uint16_t>(bits >> 16);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

}  // namespace jato::bind
