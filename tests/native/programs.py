"""Small executables for the tests."""

from __future__ import annotations

from typing import Any

import kernels

from jato import _native
from jato._native import ArrayType

F32 = 11
LEAF = _native.tree_flatten(0)[1]


def f32(*shape: int) -> Any:
    return ArrayType(shape, F32)


def add_executable(n: int = 8, cost_ns: float = 10.0, take_over: int = -1) -> Any:
    """x + y of float32[n]."""
    b = _native.ExecutableBuilder()
    x, y, out = b.input(f32(n)), b.input(f32(n)), b.output(f32(n), take_over)
    b.launch(kernels.add(), [x, y, out], [], n, 1, 0.3, name="add")
    return b.finish(0, cost_ns)


def scale_executable(x_type: Any, s_type: Any, cost_ns: float = 10.0) -> Any:
    """x * s for a float32 scalar s."""
    b = _native.ExecutableBuilder()
    x, s, out = b.input(x_type), b.input(s_type), b.output(x_type)
    b.launch(kernels.scale_scalar(), [x, s, out], [], x_type.size, name="scale")
    return b.finish(0, cost_ns)


def slow_executable(rounds: int, n: int = 8, cost_ns: float = 1e9) -> Any:
    """A copy of x after `rounds` rounds of about a nanosecond each."""
    b = _native.ExecutableBuilder()
    x, out = b.input(f32(n)), b.output(f32(n))
    b.launch(kernels.spin(), [x, out], [rounds], n, n, 1.0, name="spin")
    return b.finish(0, cost_ns)


def host_executable(function: Any, n: int = 8, cost_ns: float = 10.0) -> Any:
    """function(x, out) on NumPy views."""
    b = _native.ExecutableBuilder()
    x, out = b.input(f32(n)), b.output(f32(n))
    b.host(function, [(x, f32(n))], [(out, f32(n))])
    return b.finish(0, cost_ns)


def jit_of(make: Any, selection: Any = None, **options: Any) -> Any:
    """A JitFunction whose executable is make(*leaf types); `calls` lists the cold calls."""
    calls: list[Any] = []

    def fun(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("the plain function was called")

    entry_options = {
        k: options.pop(k) for k in ("donated", "device", "placement", "ordered") if k in options
    }

    def cold(self: Any, args: Any, kwargs: Any, info: Any) -> Any:
        calls.append(info)
        chosen = list(range(len(info.leaves))) if selection is None else selection
        executable = make(*[info.leaf_types[i] for i in chosen])
        return _native.Entry(executable, LEAF, chosen, **entry_options)

    function = _native.JitFunction(fun, cold, options.pop("traced", fun), **options)
    function.calls = calls
    return function
