"""jato.scipy.spatial.transform: rotations in three dimensions, and interpolation between them.

A rotation is a quaternion (x, y, z, w) of norm 1.  K. Shoemake, "Animating rotation with quaternion
curves", SIGGRAPH 1985; Euler angles by E. Bernardes and S. Viollet, "Quaternion to Euler angles
conversion", PLoS ONE 17 (2022); means by F. Markley and others, "Averaging quaternions", J. Guid.
Control Dyn. 30 (2007).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jato.numpy as jnp
import numpy as np
from jato import random as jrandom
from jato.base.dtypes import canonicalize
from jato.core.trace import Tracer
from jato.jit.eager import public
from jato.scipy.special.arguments import named_operands
from jato.tree_util import register_pytree_node_class

# ---- on quaternions (..., 4)


def _length(v: Any) -> Any:
    """The norm along the last axis, which is kept; its derivative at 0 is 0."""
    square = jnp.sum(v * v, -1, keepdims=True)
    zero = square == 0
    return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, square)))


@public()
def _normalized(q: Any) -> Any:
    norm = _length(q)
    return q / jnp.where(norm == 0, math.nan, norm)


@public()
def _product(p: Any, q: Any) -> Any:
    """The rotation q, and then p."""
    (a, s), (b, t) = (p[..., :3], p[..., 3:]), (q[..., :3], q[..., 3:])
    a, b = jnp.broadcast_arrays(a, b)
    vector = s * b + t * a + jnp.cross(a, b)
    scalar = s * t - jnp.sum(a * b, -1, keepdims=True)
    return jnp.concatenate([vector, scalar], -1)


@public()
def _matrix(q: Any) -> Any:
    x, y, z, w = (q[..., i] for i in range(4))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
    ]
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)


@public()
def _from_matrix(m: Any) -> Any:
    """From the largest of the four products of components, so that nothing cancels."""
    diagonal = [m[..., i, i] for i in range(3)]
    trace = diagonal[0] + diagonal[1] + diagonal[2]
    candidates = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts = {
            i: 1 - trace + 2 * diagonal[i],
            j: m[..., j, i] + m[..., i, j],
            k: m[..., k, i] + m[..., i, k],
            3: m[..., k, j] - m[..., j, k],
        }
        candidates.append(jnp.stack([parts[c] for c in range(4)], -1))
    last = [m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]]
    candidates.append(jnp.stack([*last, 1 + trace], -1))
    choice = jnp.argmax(jnp.stack([*diagonal, trace], -1), -1)[..., None]
    found = candidates[3]
    for i in range(3):
        found = jnp.where(choice == i, candidates[i], found)
    return _normalized(found)


@public()
def _from_rotvec(v: Any) -> Any:
    angle = _length(v)
    small = angle < 1e-3
    safe = jnp.where(small, 1, angle)
    square = angle * angle
    scale = jnp.where(small, 0.5 - square / 48 + square * square / 3840, jnp.sin(0.5 * safe) / safe)
    return jnp.concatenate([scale * v, jnp.cos(0.5 * angle)], -1)


def _canonical(q: Any) -> Any:
    """The one of q and -q, which are the same rotation, with w > 0 or else the first component > 0."""
    sign = jnp.zeros_like(q[..., :1])
    for i in (3, 0, 1, 2):
        sign = jnp.where(sign == 0, jnp.sign(q[..., i : i + 1]), sign)
    return jnp.where(sign < 0, -q, q)


@public()
def _rotvec(q: Any) -> Any:
    q = jnp.where(q[..., 3:] < 0, -q, q)
    vector, w = q[..., :3], q[..., 3:]
    size = _length(vector)
    angle = 2 * jnp.arctan2(size, w)
    small = angle < 1e-3
    square = angle * angle
    scale = jnp.where(
        small, 2 + square / 12 + 7 * square * square / 2880, angle / jnp.where(small, 1, size)
    )
    return scale * vector


@public()
def _mrp(q: Any) -> Any:
    q = jnp.where(q[..., 3:] < 0, -q, q)
    return q[..., :3] / (1 + q[..., 3:])


@public()
def _from_mrp(m: Any) -> Any:
    square = jnp.sum(m * m, -1, keepdims=True)
    return jnp.concatenate([2 * m, 1 - square], -1) / (1 + square)


@public(static=("axes", "intrinsic"))
def _from_euler(angles: Any, axes: tuple[int, ...], intrinsic: bool) -> Any:
    """angles: (..., number of axes)"""
    total: Any = None
    for i, axis in enumerate(axes):
        half = 0.5 * angles[..., i]
        zero = jnp.zeros_like(half)
        parts = [zero, zero, zero, jnp.cos(half)]
        parts[axis] = jnp.sin(half)
        one = jnp.stack(parts, -1)
        if total is None:
            total = one
        else:
            total = _product(total, one) if intrinsic else _product(one, total)
    return total


@public(static=("axes", "intrinsic"))
def _euler(q: Any, axes: tuple[int, int, int], intrinsic: bool) -> Any:
    i, j, k = reversed(axes) if intrinsic else axes
    symmetric = i == k
    if symmetric:
        k = 3 - i - j
    sign = (i - j) * (j - k) * (k - i) // 2
    w, p, r, s = q[..., 3], q[..., i], q[..., j], sign * q[..., k]
    a, b, c, d = (w, p, r, s) if symmetric else (w - r, p + s, r + w, s - p)
    middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    tolerance = 1e-7 if np.finfo(q.dtype).eps < 1e-10 else 1e-4
    flat, upside_down = middle < tolerance, middle > math.pi - tolerance
    # where the outer axes coincide only their sum or difference counts: the later turn is then 0
    first = jnp.where(flat, 2 * half_sum, half_sum - half_difference)
    first = jnp.where(upside_down, -2 * half_difference, first)
    last = jnp.where(flat | upside_down, 0, half_sum + half_difference)
    if intrinsic:
        last_alone = jnp.where(flat, 2 * half_sum, half_sum + half_difference)
        last = jnp.where(upside_down, 2 * half_difference, last_alone)
        first = jnp.where(flat | upside_down, 0, half_sum - half_difference)
    if not symmetric:
        last, middle = sign * last, middle - math.pi / 2
    order = (last, middle, first) if intrinsic else (first, middle, last)
    turned = [x - 2 * math.pi * jnp.round(x / (2 * math.pi)) for x in order]
    return jnp.stack(turned, -1)


@public()
def _mean(q: Any, weights: Any) -> Any:
    outer = jnp.einsum("n,ni,nj->ij", weights, q, q)
    return jnp.linalg.eigh(outer)[1][:, -1]


# ---- the classes


def _rows(function: str, argument: str, x: Any, size: int) -> Any:
    (x,) = named_operands(function, **{argument: jnp.asarray(x)})
    if len(x.shape) not in (1, 2) or x.shape[-1] != size:
        raise ValueError(
            f"{function}: argument '{argument}' must have shape ({size},) or (n, {size}), got {x.shape}"
        )
    return x


def _axes(function: str, seq: str, counts: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
    """(the numbers of the axes, do they turn along?)"""
    letters = seq.lower() if isinstance(seq, str) else ""
    same_case = isinstance(seq, str) and (seq.islower() or seq.isupper())
    repeated = any(p == q for p, q in zip(letters, letters[1:], strict=False))
    if len(letters) not in counts or set(letters) - set("xyz") or not same_case or repeated:
        raise ValueError(
            f"{function}: argument 'seq' must be {' or '.join(map(str, counts))} of the axes 'xyz' "
            f"(extrinsic) or 'XYZ' (intrinsic), no two alike in a row, got {seq!r}"
        )
    return tuple("xyz".index(c) for c in letters), seq.isupper()


def _radians(x: Any, degrees: bool) -> Any:
    return x * (math.pi / 180) if degrees else x


def _degrees(x: Any, degrees: bool) -> Any:
    return x * (180 / math.pi) if degrees else x


@register_pytree_node_class
class Rotation:
    """One rotation, or n of them: `quat` has shape (4,) or (n, 4), components (x, y, z, w).

    Made by the methods from_...; composed by *, the right one first.  It is a pytree.

    >>> import jato.numpy as jnp
    >>> turn = Rotation.from_euler("z", 90, degrees=True)
    >>> turn.apply(jnp.array([1.0, 0.0, 0.0])).round(3)
    Array([0., 1., 0.], dtype=float32)
    """

    quat: Any

    def __init__(self, quat: Any):
        self.quat = quat

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        return (self.quat,), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Sequence[Any]) -> Rotation:
        new = object.__new__(cls)
        (new.quat,) = children
        return new

    @classmethod
    def from_quat(cls, quat: Any) -> Rotation:
        """From quaternions (4,) or (n, 4), which are normalized."""
        return cls(_normalized(_rows("Rotation.from_quat", "quat", quat, 4)))

    @classmethod
    def from_matrix(cls, matrix: Any) -> Rotation:
        """From orthogonal matrices (3, 3) or (n, 3, 3) of determinant 1."""
        (m,) = named_operands("Rotation.from_matrix", matrix=jnp.asarray(matrix))
        if len(m.shape) not in (2, 3) or m.shape[-2:] != (3, 3):
            raise ValueError(
                "Rotation.from_matrix: argument 'matrix' must have shape (3, 3) or (n, 3, 3), got "
                f"{m.shape}"
            )
        return cls(_from_matrix(m))

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """From vectors (3,) or (n, 3) along the axis, as long as the angle."""
        vector = _rows("Rotation.from_rotvec", "rotvec", rotvec, 3)
        return cls(_from_rotvec(_radians(vector, degrees)))

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """From modified Rodrigues parameters (3,) or (n, 3): the axis times tan(angle / 4)."""
        return cls(_from_mrp(_rows("Rotation.from_mrp", "mrp", mrp, 3)))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """From angles about one to three axes.

        seq: "x", "zyx", ...: fixed axes, or "X", "ZYX", ...: axes that turn along; angles: (k,) or (n, k)
        for k axes; for one axis a number, or (n,), too.  ValueError for other axes and shapes.
        """
        axes, intrinsic = _axes("Rotation.from_euler", seq, (1, 2, 3))
        (x,) = named_operands("Rotation.from_euler", angles=jnp.asarray(angles))
        k = len(axes)
        if k == 1 and len(x.shape) < 2 and x.shape != (1,):
            x = x[..., None]
        if len(x.shape) not in (1, 2) or x.shape[-1] != k:
            raise ValueError(
                f"Rotation.from_euler: argument 'angles' must hold {k} angles for each rotation, got shape "
                f"{x.shape}"
            )
        return cls(_from_euler(_radians(x, degrees), axes=axes, intrinsic=intrinsic))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """No turn, once or num times."""
        quat = jnp.array([0, 0, 0, 1], canonicalize(dtype))
        return cls(quat if num is None else jnp.tile(quat, (num, 1)))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """Uniformly distributed, one or num of them."""
        return cls(_normalized(jrandom.normal(random_key, (4,) if num is None else (num, 4))))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Several in a row."""
        return cls(jnp.concatenate([jnp.atleast_2d(r.quat) for r in rotations]))

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Any:
        """The quaternions; canonical: of q and -q that with w > 0; scalar_first: w first."""
        q = _canonical(self.quat) if canonical else self.quat
        return jnp.roll(q, 1, -1) if scalar_first else q

    def as_matrix(self) -> Any:
        """The orthogonal matrices, (3, 3) or (n, 3, 3)."""
        return _matrix(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """Vectors along the axis, as long as the angle."""
        return _degrees(_rotvec(self.quat), degrees)

    def as_mrp(self) -> Any:
        """Modified Rodrigues parameters: the axis times tan(angle / 4)."""
        return _mrp(self.quat)

    def as_euler(self, seq: str, degrees: bool = False) -> Any:
        """Angles about three axes, as for `from_euler`: (3,) or (n, 3).

        Where the first and the last axis coincide (gimbal lock) one of their angles is 0.
        """
        axes, intrinsic = _axes("Rotation.as_euler", seq, (3,))
        return _degrees(_euler(self.quat, axes=axes, intrinsic=intrinsic), degrees)

    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """Turned vectors (3,) or (n, 3), each by its rotation, or all by the only one."""
        v = _rows("Rotation.apply", "vectors", vectors, 3)
        n, m = (len(x.shape) > 1 and x.shape[0] or 1 for x in (self.quat, v))
        if n != m and 1 not in (n, m):
            raise ValueError(
                f"Rotation.apply: argument 'vectors' must hold 1 or {n} vectors, got shape {v.shape}"
            )
        matrix = self.as_matrix()
        matrix = jnp.swapaxes(matrix, -1, -2) if inverse else matrix
        return (matrix @ v[..., None])[..., 0]

    def inv(self) -> Rotation:
        """The rotations back."""
        return Rotation(self.quat * np.array([-1, -1, -1, 1], self.quat.dtype))

    def magnitude(self) -> Any:
        """The angles, in [0, pi]."""
        return 2 * jnp.arctan2(_length(self.quat[..., :3])[..., 0], jnp.abs(self.quat[..., 3]))

    def mean(self, weights: Any = None) -> Rotation:
        """The rotation of least (weighted) distance to these."""
        q = jnp.atleast_2d(self.quat)
        if weights is None:
            weights = jnp.ones(q.shape[0], q.dtype)
        q, weights = named_operands("Rotation.mean", quat=q, weights=jnp.asarray(weights))
        if weights.shape != q.shape[:1]:
            raise ValueError(
                f"Rotation.mean: argument 'weights' must have shape {q.shape[:1]}, got {weights.shape}"
            )
        return Rotation(_mean(q, weights))

    @property
    def single(self) -> bool:
        """Is it one rotation, of shape (4,)?"""
        return len(self.quat.shape) == 1

    def __len__(self) -> int:
        if self.single:
            raise TypeError("a single Rotation has no len()")
        return int(self.quat.shape[0])

    def __getitem__(self, indexer: Any) -> Rotation:
        if self.single:
            raise TypeError("a single Rotation cannot be indexed")
        return Rotation(self.quat[indexer])

    def __mul__(self, other: Any) -> Rotation:
        if not isinstance(other, Rotation):
            return NotImplemented
        return Rotation(_normalized(_product(self.quat, other.quat)))

    def __repr__(self) -> str:
        return f"Rotation(quat={self.quat!r})"


@register_pytree_node_class
class Slerp:
    """Rotations at given times, and between them turns of constant speed.

    times: rising, (n,), n >= 2; rotations: n of them.  Calling it with times gives rotations; beyond the
    ends the outermost turns go on.  ValueError for other shapes and times that do not rise.

    >>> import jato.numpy as jnp
    >>> turn = Slerp.init(jnp.array([0.0, 2.0]), Rotation.from_euler("z", jnp.array([0.0, 1.0])))
    >>> turn(1.0).as_rotvec().round(3)
    Array([0. , 0. , 0.5], dtype=float32)
    """

    times: Any
    timedelta: Any
    rotations: Rotation
    rotvecs: Any

    def __init__(self, times: Any, rotations: Rotation):
        if not isinstance(rotations, Rotation) or rotations.single or len(rotations) < 2:
            raise ValueError("Slerp: argument 'rotations' must be a Rotation of two or more")
        (times,) = named_operands("Slerp", times=jnp.asarray(times))
        if times.shape != (len(rotations),):
            raise ValueError(
                f"Slerp: argument 'times' must have shape ({len(rotations)},), got {times.shape}"
            )
        self.times, self.timedelta = times, jnp.diff(times)
        if not isinstance(times, Tracer) and not np.all(np.asarray(self.timedelta) > 0):
            raise ValueError("Slerp: argument 'times' must rise strictly")
        self.rotations = rotations
        self.rotvecs = (rotations[:-1].inv() * rotations[1:]).as_rotvec()

    @classmethod
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
        """The same as Slerp(times, rotations)."""
        return cls(times, rotations)

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        return (self.times, self.timedelta, self.rotations, self.rotvecs), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Sequence[Any]) -> Slerp:
        new = object.__new__(cls)
        new.times, new.timedelta, new.rotations, new.rotvecs = children
        return new

    def __call__(self, times: Any) -> Rotation:
        (t,) = named_operands("Slerp", times=jnp.asarray(times))
        if len(t.shape) > 1:
            raise ValueError(f"Slerp: argument 'times' must be a number or a vector, got {t.shape}")
        last = self.timedelta.shape[0] - 1
        place = jnp.clip(jnp.searchsorted(self.times, t, side="right") - 1, 0, last)
        share = (t - self.times[place]) / self.timedelta[place]
        turn = Rotation.from_rotvec(self.rotvecs[place] * share[..., None])
        return Rotation(self.rotations.quat[place]) * turn
