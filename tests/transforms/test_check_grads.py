"""check_grads accepts right derivatives and finds wrong ones."""

import doctest

import numpy as np
import pytest
from reference_eval import ours

from jato.base.config import enable_x64
from jato.control.custom_jvp import custom_jvp
from jato.transforms import check_grads as module
from jato.transforms.check_grads import check_grads

X = np.array([0.3, -1.2, 2.5], np.float32)


def product(x, n):
    scale = ours.convert_element_type(n, np.dtype(x.dtype))
    return {"p": ours.mul(ours.sin(x), ours.mul(x, ours.full(x.shape, scale, x.dtype)))}


def test_accepts():
    check_grads(product, (X, 2), order=2)
    with enable_x64():
        check_grads(product, (X.astype(np.float64), 2), order=3)
    z = np.array([1 + 2j, -0.5j], np.complex64)
    check_grads(lambda v: ours.mul(ours.exp(v), v), (z,), order=1)
    check_grads(lambda v: ours.mul(ours.conj(v), v), (z,), order=2)


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_finds_wrong_derivatives(mode):
    @custom_jvp
    def wrong(x):
        return ours.mul(x, x)

    wrong.defjvp(lambda p, t: (wrong(*p), ours.mul(p[0], t[0])))
    with pytest.raises(AssertionError, match="of wrong differs from the numerical"):
        check_grads(wrong, (X,), order=1, modes=[mode])


def test_unknown_mode():
    with pytest.raises(ValueError, match="modes are 'fwd' and 'rev', got 'both'"):
        check_grads(product, (X, 2), order=1, modes=["both"])


def test_doctest():
    if not hasattr(pytest.importorskip("jato.numpy"), "ones"):
        pytest.skip("jato.numpy is not there yet")
    assert doctest.testmod(module).failed == 0
