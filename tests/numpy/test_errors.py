"""Wrong arguments: the class of the error and what its message names."""

from __future__ import annotations

from typing import Any

import pytest

import jato
import jato.numpy as jnp
import numpy as np

X = jnp.arange(5.0)
M = jnp.ones((2, 3))


class _Other:
    def __radd__(self, other: Any) -> str:
        return "radd"


CASES = [
    (lambda: jnp.sum([1, 2]), TypeError, r"sum .* got list at position 0.*asarray"),
    (lambda: jnp.add(None, 1), TypeError, "add .* NoneType at position 0"),
    (lambda: jnp.add(X, jnp.ones(4)), ValueError, r"add .* \(5,\), \(4,\)"),
    (lambda: jnp.add(X, jnp.ones(4)), TypeError, r"add .* \(5,\), \(4,\)"),
    (lambda: X.sum(axis=3), np.exceptions.AxisError, "sum: axis 3 is out of bounds"),
    (lambda: X.sum(axis=1.0), TypeError, "sum: argument 'axis' .* float"),
    (lambda: X.sum(axis=(0, 0)), ValueError, "sum: duplicate value in 'axis'"),
    (lambda: X.sum(out=X), NotImplementedError, "sum: .* 'out'"),
    (lambda: jnp.add(X, X, where=X > 0), NotImplementedError, "add: .* 'where'"),
    (lambda: jnp.logaddexp(X, X, where=X > 0), NotImplementedError, "logaddexp: .* 'where'"),
    (lambda: jnp.trace(M, out=X), NotImplementedError, "trace: .* 'out'"),
    (lambda: jnp.nansum(X, out=X), NotImplementedError, "nansum: .* 'out'"),
    (lambda: jnp.nanprod(X, axis=1), np.exceptions.AxisError, "nanprod: axis 1"),
    (lambda: jnp.nanmean(X, axis=1), np.exceptions.AxisError, "nanmean: axis 1"),
    (lambda: jnp.nanvar(X, axis=1), np.exceptions.AxisError, "nanvar: axis 1"),
    (lambda: jnp.nanstd(X, axis=1), np.exceptions.AxisError, "nanstd: axis 1"),
    (lambda: jnp.nancumsum(X, axis=1), np.exceptions.AxisError, "nancumsum: axis 1"),
    (lambda: jnp.nancumprod(X, out=X), NotImplementedError, "nancumprod: .* 'out'"),
    (lambda: jnp.ptp(X, axis=1), np.exceptions.AxisError, "ptp: axis 1"),
    (lambda: jnp.ptp(jnp.zeros(0)), ValueError, "reduction operation ptp"),
    (lambda: jnp.count_nonzero(X, axis=1), np.exceptions.AxisError, "count_nonzero: axis 1"),
    (lambda: jnp.average(X, axis=1, weights=X), np.exceptions.AxisError, "average: axis 1"),
    (lambda: X.view(type=np.ndarray), NotImplementedError, "view: argument 'type'"),
    (lambda: jnp.array(X, order="F"), NotImplementedError, "array: argument 'order'"),
    (lambda: jnp.asarray([1], order="F"), NotImplementedError, "asarray: argument 'order'"),
    (lambda: jnp.copy(X, order="Z"), NotImplementedError, "copy: argument 'order'"),
    (lambda: jnp.isin(X, X, method="hash"), ValueError, "isin: argument 'method' .* 'hash'"),
    (lambda: jnp.trim_zeros(X, "x"), ValueError, "trim_zeros: argument 'trim' .* 'x'"),
    (lambda: jnp.trim_zeros(X, axis=1), np.exceptions.AxisError, "trim_zeros: axis 1"),
    (lambda: jnp.ones(2, device="gpu"), TypeError, "argument 'device' .* 'gpu'"),
    (lambda: jnp.linspace(0, 1, 3, device="gpu"), TypeError, "argument 'device' .* 'gpu'"),
    (lambda: jnp.fft.fftfreq(4, device="gpu"), TypeError, "argument 'device' .* 'gpu'"),
    (lambda: jato.device_put(X, "gpu"), TypeError, "argument 'device' .* 'gpu'"),
    (lambda: X.reshape(2, 3), ValueError, r"reshape: .* \(5,\) .* \(2, 3\)"),
    (lambda: X.reshape(2, -1), TypeError, "2 does not divide 5"),
    (lambda: X.reshape(-1, -1), ValueError, "one -1"),
    (lambda: X.reshape(2.5), TypeError, "reshape: argument 'shape'"),
    (lambda: jnp.zeros(-1), ValueError, "zeros: argument 'shape' has a negative size"),
    (lambda: jnp.zeros("a"), TypeError, "zeros: argument 'shape'"),
    (lambda: jnp.zeros(2, dtype=object), TypeError, "dtype object is not supported"),
    (lambda: jnp.concatenate([]), ValueError, "concatenate: need at least one array"),
    (lambda: jnp.concatenate([X, M]), ValueError, r"array 0 has shape \(5,\), array 1"),
    (lambda: jnp.concatenate([jnp.float32(1)] * 2), ValueError, "stack"),
    (lambda: jnp.stack([X, X[:3]]), ValueError, "stack: all arrays must have the same shape"),
    (lambda: jnp.max(jnp.zeros(0)), ValueError, "zero-size array to reduction operation max"),
    (lambda: jnp.argmax(jnp.zeros(0)), ValueError, "argmax of an empty sequence"),
    (lambda: jnp.squeeze(X, 0), ValueError, "squeeze"),
    (lambda: jnp.expand_dims(X, 7), np.exceptions.AxisError, "expand_dims: axis 7"),
    (lambda: jnp.transpose(M, (0,)), ValueError, "transpose: axes"),
    (lambda: M @ X, ValueError, r"matmul .* shape \(2, 3\) .* shape \(5,\)"),
    (lambda: jnp.matmul(X, 2), ValueError, "matmul input operand 1"),
    (lambda: jnp.dot(X, jnp.ones((3, 2))), TypeError, "dot requires contracting"),
    (lambda: jnp.einsum("ij,jk", M, M), ValueError, "index 'j' .* sizes 3 and 2"),
    (lambda: jnp.einsum("ij->ik", M), ValueError, "'k'"),
    (lambda: jnp.array(None), ValueError, "None is not a valid value"),
    (lambda: jnp.array(["a"]), TypeError, "str"),
    (lambda: jnp.array([[1, 2], [3]]), ValueError, "not rectangular"),
    (lambda: jnp.asarray(object()), TypeError, "type object"),
    (lambda: -jnp.array([True]), TypeError, "negative: .* logical_not"),
    (lambda: jnp.array([True]) - jnp.array([True]), TypeError, "subtract: .* logical_xor"),
    (lambda: X & 1, TypeError, "bitwise_and: expected integers or bools"),
    (lambda: ~X, TypeError, "invert"),
    (lambda: jnp.arange(3) ** -1, TypeError, "power: integers .* negative power -1"),
    (lambda: jnp.clip(1j * X, 0, 1), ValueError, "clip: complex"),
    (lambda: jnp.where(X > 2, X), ValueError, "where: give both"),
    (lambda: jnp.split(X, 2), ValueError, "split: .* array_split"),
    (lambda: jnp.convolve(X, X[:0]), ValueError, "convolve: argument 'v' must not be empty"),
    (lambda: jnp.convolve(M, X), ValueError, "convolve: argument 'a' must have rank 1"),
    (lambda: jnp.convolve(X, X, "bad"), ValueError, "convolve: argument 'mode'"),
    (lambda: jnp.take(X, 1.5), ValueError, "take: indices must have an integer type"),
    (lambda: jnp.pad(X, -1), ValueError, "pad: argument 'pad_width' has negative"),
    (lambda: jnp.pad(X, (1, 2, 3)), ValueError, "pad: argument 'pad_width'"),
    (lambda: jnp.linspace(0, 1, -3), ValueError, "linspace: argument 'num'"),
    (lambda: jnp.arange(0, 1, 0), ZeroDivisionError, "arange: argument 'step'"),
    (lambda: jnp.bincount(X), TypeError, "bincount: argument 'x' must be integers"),
    (lambda: jnp.searchsorted(X, X, side="up"), ValueError, "searchsorted: argument 'side'"),
    (lambda: jnp.quantile(X, 0.5, method="magic"), ValueError, "quantile: argument 'method'"),
    (lambda: jnp.put(X, jnp.arange(2), 1.0), ValueError, "put: .* inplace=False"),
    (lambda: jnp.vectorize(abs, signature="bad")(X), ValueError, "vectorize"),
    (lambda: jnp.linalg.norm(X, "fro"), ValueError, "norm: .* 'fro'"),
    (lambda: X.flat, NotImplementedError, "flatten"),
    (lambda: X.astype("datetime64[s]"), TypeError, "datetime64"),
    (lambda: jato.Array(), TypeError, "cannot be instantiated"),
    (lambda: X + "a", TypeError, "unsupported operand"),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_message(number: int) -> None:
    call, error, text = CASES[number]
    with pytest.raises(error, match=text):
        call()
    assert float(jnp.sum(X)) == 10  # nothing is left broken


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda n: jnp.zeros(n), TypeError, "zeros.*argument n"),
        (
            lambda n: jnp.arange(n),
            jato.errors.ConcretizationTypeError,
            "arange.*'stop'.*argument n",
        ),
        (lambda n: X.reshape(n), jato.errors.ConcretizationTypeError, "reshape.*argument n"),
        (lambda n: jnp.linspace(0, 1, n), jato.errors.ConcretizationTypeError, "linspace.*'num'"),
        (
            lambda n: jnp.nonzero(jnp.atleast_1d(n)),
            jato.errors.ConcretizationTypeError,
            "nonzero.*'size'",
        ),
        (lambda n: jnp.nonzero(n), ValueError, "nonzero: argument 'a' is a number"),
        (lambda n: jnp.unique(n), jato.errors.ConcretizationTypeError, "unique.*'size'"),
        (lambda n: jnp.repeat(X, n), jato.errors.ConcretizationTypeError, "total_repeat_length"),
        (lambda n: jnp.delete(X, n), jato.errors.ConcretizationTypeError, "delete.*'obj'"),
        (lambda n: X + "a", TypeError, "unsupported operand"),
    ],
)
def test_message_under_jit(function: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        jato.jit(function)(3)


def test_unknown_operands_are_asked() -> None:
    assert X + _Other() == "radd"
    seen = []
    jato.jit(lambda x: seen.append(x + _Other()) or x)(X)
    assert seen == ["radd"]


def test_printing() -> None:
    assert repr(jnp.array([1, 2])) == "Array([1, 2], dtype=int32)"
    assert repr(jnp.asarray(2.0)) == "Array(2., dtype=float32, weak_type=True)"
    assert repr(jnp.zeros((0, 3))) == "Array([], shape=(0, 3), dtype=float32)"
    assert repr(jnp.ones((2, 2))) == "Array([[1., 1.],\n       [1., 1.]], dtype=float32)"
    assert repr(jnp.linspace(0, 1, 9)) == (
        "Array([0.   , 0.125, 0.25 , 0.375, 0.5  , 0.625, 0.75 , 0.875, 1.   ],\n      dtype=float32)"
    )
    assert str(jnp.arange(3)) == "[0 1 2]"
    assert f"{jnp.float32(1.2345):.2f}" == "1.23"


def test_the_array_class() -> None:
    assert isinstance(X, jnp.ndarray) and isinstance(X, jato.Array)
    assert not isinstance(np.ones(2), jato.Array)
    seen = []
    jato.jit(lambda x: seen.append(isinstance(x, jato.Array)) or x)(X)
    assert seen == [True]


def test_scalar_types() -> None:
    assert jnp.float32(3).dtype == jnp.float32
    assert jnp.bfloat16 != jnp.float16
    assert {jnp.float32: 1}[np.dtype("float32")] == 1
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating)
    assert not jnp.issubdtype(jnp.int8, jnp.floating)
    assert jnp.result_type(jnp.int8, 1.0) == jnp.float32
    assert jnp.zeros(2, jnp.bfloat16).dtype == jnp.bfloat16


def test_save_and_load(tmp_path: Any) -> None:
    for dtype in ("f4", "bfloat16", "c8", "?"):
        x = jnp.arange(3).astype(jnp.bfloat16 if dtype == "bfloat16" else dtype)
        jnp.save(tmp_path / "x.npy", x)
        y = jnp.load(tmp_path / "x.npy")
        assert y.dtype == x.dtype and bool((x == y).all())


def test_numpy_memory_is_never_shared_with_a_writer() -> None:
    host = np.zeros(4096, "f4")
    x = jnp.asarray(host)
    host[0] = 1
    assert float(x[0]) == 0
    y = jnp.array(x, copy=True)
    jato.jit(lambda v: v.at[0].set(7.0), donate_argnums=0)(x)
    assert float(y[0]) == 0


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("zeros or ones", lambda: jnp.zeros(1 << 44)),
        ("full", lambda: jnp.full(1 << 44, 2.0)),
        ("repeat", lambda: jnp.repeat(jnp.ones(2), 1 << 43)),
    ],
)
def test_out_of_memory_names_the_function_and_the_size(name, make):
    with pytest.raises(MemoryError, match=f"{name}: out of memory: 64.0 TiB requested"):
        make().block_until_ready()
