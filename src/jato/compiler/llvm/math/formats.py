"""What the expansions need to know about f32 and f64.

`magic` is 1.5 * 2^mantissa: adding it rounds a float to an integer, which then stands in the low
bits of the sum; subtracting it again gives the rounded float.  One rounding step thus yields both
forms, without a conversion instruction.
"""

from __future__ import annotations

from dataclasses import dataclass

from jato.loopir.formula import Value


@dataclass(frozen=True)
class Format:
    dtype: str
    mantissa: int  # stored bits of the significand
    bias: int

    @property
    def magic(self) -> float:
        return 1.5 * 2.0**self.mantissa

    @property
    def magic_bits(self) -> int:
        """The bit pattern of `magic`."""
        return (self.mantissa + self.bias) << self.mantissa | 1 << (self.mantissa - 1)

    @property
    def one_bits(self) -> int:
        return self.bias << self.mantissa

    @property
    def exponent_mask(self) -> int:
        """Sign and exponent: everything but the significand."""
        return ((2 * self.bias + 2) * 2 - 1) << self.mantissa

    @property
    def mantissa_mask(self) -> int:
        return (1 << self.mantissa) - 1

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)


FORMATS = {"f32": Format("f32", 23, 127), "f64": Format("f64", 52, 1023)}


def format_of(x: Value) -> Format:
    return FORMATS[x.dtype]
