"""The text form: golden, and the same for equal kernels."""

from jato.loopir.builder import Builder
from jato.loopir.printer import kernel_text, print_kernel


def softmax(noise: int = 0, prefix: str = ""):
    b = Builder()
    for k in range(noise):  # other serials, same kernel
        b.add(b.var(f"noise{k}", "f32"), 1.0)
    x, y = b.input(f"{prefix}x", "f32"), b.output(f"{prefix}y", "f32")
    row = b.local(f"{prefix}row", "f32", 64)
    n = b.param(0, 0, 64)
    with b.for_(f"{prefix}r", b.grid_begin(), b.grid_end()) as r:
        at = lambda j: b.add(b.mul(r, n), j)  # noqa: E731
        top = b.reduce([n], lambda j: b.load(x, at(j)), "max", lanes=16)
        with b.for_(f"{prefix}i", 0, n, lanes=16) as i:
            b.store(row, i, b.exp(b.sub(b.load(x, at(i)), top)))
        total = b.reduce([n], lambda j: b.load(row, j), "add", lanes=16)
        with b.for_(f"{prefix}k", 0, n, lanes=16) as k, b.if_(b.gt(n, 1)):
            b.store(y, at(k), b.div(b.load(row, k), total), mask=b.lt(k, 60))
    return b.kernel(f"{prefix}softmax", notes=("a note",))


GOLDEN = """\
kernel softmax (params 1)
  in x: f32
  out y: f32
  local row: f32[64]
  for r in grid_begin .. grid_end
    r_total: f32 = reduce r_1 in 0:i64 .. p0 lanes 16 from -inf:f32
      %0 = mul i64 p0, r
      %1 = add i64 %0, r_1
      %2 = load f32 x[%1]
      element %2
      combine (left), (right)
        %3 = max f32 left, right
        gives %3
    for i in 0:i64 .. p0 lanes 16
      %4 = mul i64 p0, r
      %5 = add i64 %4, i
      %6 = load f32 x[%5]
      %7 = sub f32 %6, r_total
      %8 = exp f32 %7
      row[i] = %8
    r_total_1: f32 = reduce r_2 in 0:i64 .. p0 lanes 16 from 0.0:f32
      %9 = load f32 row[r_2]
      element %9
      combine (left_1), (right_1)
        %10 = add f32 left_1, right_1
        gives %10
    for k in 0:i64 .. p0 lanes 16
      %11 = lt bool 1:i64, p0
      if %11
        %12 = lt bool k, 60:i64
        %13 = mul i64 p0, r
        %14 = add i64 %13, k
        %15 = load f32 row[k]
        %16 = div f32 %15, r_total_1
        y[%14] = %16 where %12
"""


def test_golden():
    assert print_kernel(softmax()) == GOLDEN


def test_key_ignores_names_notes_and_serials():
    assert kernel_text(softmax()) == kernel_text(softmax(noise=7, prefix="other_"))
    assert "softmax" not in kernel_text(softmax()) and "note" not in kernel_text(softmax())


def test_key_tells_kernels_apart():
    def kernel(value, dtype="f32", lanes=16, in_place=False, exact=False):
        b = Builder()
        x, y = b.input("x", dtype), b.output("y", dtype)
        with b.for_("i", b.grid_begin(), b.grid_end(), lanes=lanes) as i:
            if exact:
                with b.exact():
                    result = b.add(b.load(x, i), value)
            else:
                result = b.add(b.load(x, i), value)
            b.store(y, i, result)
        return kernel_text(b.kernel("k", in_place=in_place))

    texts = [kernel(c) for c in (1.0, 1.5, 0.0, float("nan"), float("inf"))]
    texts += [kernel(1.0, "f64"), kernel(1.0, lanes=8)]
    texts += [kernel(1.0, in_place=True), kernel(1.0, exact=True)]
    assert len(set(texts)) == len(texts)


def test_loop_text():
    b = Builder()
    y = b.output("y", "f32")
    result = b.loop("j", 0, b.param(0), [b.const(1.0, "f32")], lambda j, c: [b.mul(c[0], 2.0)],
                    lambda c: b.lt(c[0], 100.0))  # fmt: skip
    b.store(y, 0, result[0])
    assert (
        print_kernel(b.kernel("grow"))
        == """\
kernel grow (params 1)
  out y: f32
  j_result = loop j in 0:i64 .. p0 carries j_carry: f32 from 1.0:f32
    %0 = lt bool j_carry, 100.0:f32
    while %0
    %1 = mul f32 j_carry, 2.0:f32
    next %1
  y[0:i64] = j_result
"""
    )
