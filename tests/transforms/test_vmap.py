"""vmap: axes as prefixes, named axes, nesting, messages; against JAX and loops."""

import jax
import numpy as np
import pytest
from reference_eval import as_call, close, ours, theirs

from jato.core.primitive import Primitive
from jato.core.trace import STATE
from jato.core.types import type_of
from jato.transforms.abstract_eval import make_jaxpr
from jato.transforms.grad import grad
from jato.transforms.vmap import vmap

f32 = np.float32
A = np.arange(24, dtype=f32).reshape(2, 3, 4)
B = np.linspace(-1, 1, 12, dtype=f32).reshape(3, 4)


def combine(lax):
    return lambda x, y: {
        "s": lax.add(lax.sin(x), y),
        "p": (lax.mul(x, y), lax.transpose(x, (1, 0))),
    }


@pytest.mark.parametrize("staged", [False, True], ids=["eager", "call"])
@pytest.mark.parametrize(
    ("in_axes", "out_axes", "y"),
    [
        ((0, None), 0, B),
        ((0, 0), 0, np.stack([B, -B])),
        ((0, 2), 1, np.stack([B, -B], 2)),
        ((0, -1), -1, np.stack([B, -B], 2)),
        ((0, 1), {"s": 0, "p": (1, 2)}, np.stack([B, -B], 1)),
        ([0, None], {"s": -1, "p": 0}, B),
    ],
)
def test_axes(staged, in_axes, out_axes, y):
    f = as_call(combine(ours)) if staged else combine(ours)
    close(
        vmap(f, in_axes, out_axes)(A, y),
        jax.vmap(combine(theirs), in_axes, out_axes)(A, y),
    )


def test_prefixes_and_keywords():
    def f(lax):
        return lambda p, x, *, k: lax.add(lax.mul(p["w"], x), lax.mul(p["b"], k))

    params = {"w": B, "b": B[0]}
    args = (params, B)
    axes = ({"w": 1, "b": None}, 1)

    def run(mapper, lax):
        g = lambda p, x, *, k: f(lax)({"w": p["w"], "b": lax.slice(p["b"], (0,), (3,))}, x, k=k)
        return mapper(g, in_axes=axes)(*args, k=np.tile(B[:, :1].T, (4, 1)))

    close(run(vmap, ours), run(jax.vmap, theirs))


def test_unmapped_work_is_done_once():
    text = str(make_jaxpr(vmap(lambda x, y: ours.add(x, ours.sin(y)), in_axes=(0, None)))(B, B[0]))
    assert "f32[4] = sin" in text


def test_unmapped_result_is_broadcast_or_kept():
    close(vmap(lambda x: B)(np.zeros(2)), np.stack([B, B]))
    close(vmap(lambda x: (x, B), out_axes=(0, None))(np.ones(2, f32)), (np.ones(2, f32), B))


def test_nested_and_axis_size():
    f = lambda lax: lambda x, y: lax.mul(lax.sin(x), y)
    close(
        vmap(vmap(f(ours), (None, 0)), (0, None))(B[0], B[1]),
        jax.vmap(jax.vmap(f(theirs), (None, 0)), (0, None))(B[0], B[1]),
    )
    close(vmap(lambda: ours.full((2,), 1.0, f32), axis_size=3)(), np.ones((3, 2), f32))
    close(vmap(lambda x: x, in_axes=None, axis_size=2)(f32(1)), np.ones(2, f32))


def test_zero_length():
    close(vmap(lambda x: ours.sin(x))(np.zeros((0, 3), f32)), np.zeros((0, 3), f32))


def test_unmapped_values_are_concrete():
    f = lambda x, n: ours.mul(x, f32(float(n)))
    close(vmap(f, (0, None))(B, 3.0), B * 3)


class CentredSum(Primitive):
    """A collective for tests: the sum over the named axis."""

    def type_rule(self, x, *, name):
        return x

    def axis_names(self, params):
        return (params["name"],)

    def jvp(self, primals, tangents, *, name):
        return self.bind(primals[0], name=name), self.bind(tangents[0], name=name)

    def transpose(self, cotangent, x, *, name):
        return [self.bind(cotangent, name=name)]

    def batch(self, axis, operands, dims, *, name):
        (x,), (d,) = operands, dims
        if axis.name != name:
            return self.bind(x, name=name), d
        if d is None:
            return ours.mul(x, ours.full(type_of(x).shape, axis.size, x.dtype)), None
        return ours.reduce_sum(x, axes=(d,)), None


summed = CentredSum("test_axis_sum")


@pytest.mark.parametrize("staged", [False, True], ids=["eager", "call"])
def test_named_axis(staged):
    sizes = []

    def f(x):
        sizes.append(dict(STATE.axis_sizes))
        one = summed.bind(ours.full((), 1.0, f32), name="i")
        return ours.div(summed.bind(x, name="i"), one)

    wrapped = as_call(f) if staged else f
    close(vmap(wrapped, axis_name="i", out_axes=None)(B[0]), B[0].mean())
    assert sizes[0] == {"i": 4}
    assert not STATE.axis_sizes
    inner = lambda x: ours.mul(wrapped(x), x)
    whole = lambda x: ours.reduce_sum(vmap(inner, axis_name="i")(x), axes=(0,))
    close(grad(whole)(B[0]), 2 * B[0].sum() / 4 * np.ones(4, f32))
    nested = vmap(vmap(wrapped, axis_name="j"), axis_name="i", out_axes=None)
    close(nested(B), B.mean(0))


def f_two(x, y):
    return ours.add(x, y)


MESSAGES = [
    (lambda: vmap(f_two)(B, A), "axis 0 of argument x, .*size 3(.|\n)*argument y.* size 2"),
    (lambda: vmap(f_two, (0, 0))(B, f32(1)), "axis 0 of argument y, which has type .*in_axes=None"),
    (lambda: vmap(f_two, (0,))(B, B), "1 entries for 2 positional"),
    (lambda: vmap(f_two, (5, 0))(B, B), r"axis 5 of argument x, which has type f32\[3,4\]"),
    (lambda: vmap(f_two, (None, None))(B, B), "no argument is mapped"),
    (lambda: vmap(f_two, ({"a": 0}, 0))(B, B), r"not a prefix of the arguments at \[0\]"),
    (lambda: vmap(f_two, axis_size=7)(B, B), "axis_size is 7"),
    (lambda: vmap(f_two, out_axes=9)(B, B), "puts the mapped axis of the result at 9"),
    (lambda: vmap(f_two, out_axes=None)(B, B), "out_axes is None for the result"),
    (lambda: vmap(lambda x: {"r": x}, out_axes={"q": 0})(B), "keys .*'q'.* against .*'r'"),
    (lambda: vmap(lambda p: p)({"w": B, "b": A}), r"argument p\['b'\].*size 2"),
]


@pytest.mark.parametrize(("call", "message"), MESSAGES)
def test_messages(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("axes", ["0", 1.5, (0, "1"), ({"a": True},)])
def test_axes_of_the_wrong_type(axes):
    with pytest.raises(TypeError, match="in_axes.* must be an integer or None"):
        vmap(f_two, axes)


def test_non_array_argument():
    with pytest.raises(TypeError, match="vmap of f_two: argument y: expected an array"):
        vmap(f_two, (0, None))(B, "text")
