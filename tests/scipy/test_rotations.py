"""jato.scipy.spatial.transform against SciPy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.spatial import transform as theirs

import jato
import jato.numpy as jnp
from jato.scipy.spatial.transform import Rotation, Slerp

RNG = np.random.default_rng(0)
QUATS = RNG.normal(size=(20, 4))
SEQUENCES = [
    "".join(s) for s in itertools.product("xyz", repeat=3) if s[0] != s[1] and s[1] != s[2]
]


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    with jato.enable_x64(True):
        yield


def close(found: Any, expected: Any) -> None:
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def same(found: Rotation, expected: Any) -> None:
    """q and -q are the same rotation."""
    close(found.as_matrix(), expected.as_matrix())


@pytest.mark.parametrize("quats", [QUATS, QUATS[0], -np.eye(4), np.array([1e-9, 0, 0, 1])])
def test_representations(quats: np.ndarray) -> None:
    ours, other = Rotation.from_quat(quats), theirs.Rotation.from_quat(quats)
    assert ours.single == other.single
    same(ours, other)
    close(ours.as_quat(), other.as_quat())
    close(ours.as_quat(canonical=True), other.as_quat(canonical=True))
    close(ours.as_quat(scalar_first=True), other.as_quat(scalar_first=True))
    close(jnp.linalg.norm(ours.as_rotvec(), axis=-1), other.magnitude())
    close(ours.as_rotvec(degrees=True), np.degrees(ours.as_rotvec()))
    close(ours.magnitude(), other.magnitude())
    same(ours.inv(), other.inv())
    same(Rotation.from_rotvec(ours.as_rotvec()), other)
    same(Rotation.from_rotvec(ours.as_rotvec(degrees=True), degrees=True), other)
    same(Rotation.from_mrp(ours.as_mrp()), other)
    same(Rotation.from_matrix(ours.as_matrix()), other)
    if quats is QUATS:
        close(ours.as_rotvec(), other.as_rotvec())
        close(ours.as_mrp(), other.as_mrp())
        close(
            Rotation.from_matrix(other.as_matrix()).as_quat(canonical=True),
            other.as_quat(canonical=True),
        )


@pytest.mark.parametrize("seq", [*SEQUENCES, *map(str.upper, SEQUENCES)])
def test_euler_angles(seq: str) -> None:
    ours, other = Rotation.from_quat(QUATS), theirs.Rotation.from_quat(QUATS)
    angles = other.as_euler(seq)
    close(ours.as_euler(seq), angles)
    close(ours.as_euler(seq, degrees=True), np.degrees(angles))
    close(ours[3].as_euler(seq), angles[3])
    same(Rotation.from_euler(seq, angles), other)
    same(Rotation.from_euler(seq, np.degrees(angles[0]), degrees=True), other[0])
    same(
        Rotation.from_euler(seq[:2], angles[:, :2]),
        theirs.Rotation.from_euler(seq[:2], angles[:, :2]),
    )
    # gimbal lock: only the rotation is determined
    middle = [0, np.pi, np.pi / 2, -np.pi / 2]
    locked = np.array([[0.3, m, -1.1] for m in middle])
    same(
        Rotation.from_euler(seq, Rotation.from_euler(seq, locked).as_euler(seq)),
        theirs.Rotation.from_euler(seq, locked),
    )


def test_one_axis() -> None:
    for angles in (0.5, [0.5], [[0.5], [1.5]], [[0.5]]):
        same(Rotation.from_euler("y", angles), theirs.Rotation.from_euler("y", angles))

    several = Rotation.from_euler("y", [0.5, 1.5])
    same(several, theirs.Rotation.from_euler("y", [[0.5], [1.5]]))


def test_application_and_composition() -> None:
    ours, other = Rotation.from_quat(QUATS), theirs.Rotation.from_quat(QUATS)
    vectors = RNG.normal(size=(20, 3))
    for inverse in (False, True):
        close(ours.apply(vectors, inverse), other.apply(vectors, inverse))
        close(ours.apply(vectors[0], inverse), other.apply(vectors[0], inverse))
        close(ours[0].apply(vectors, inverse), other[0].apply(vectors, inverse))
        close(ours[0].apply(vectors[0], inverse), other[0].apply(vectors[0], inverse))
    same(ours * ours[::-1], other * other[::-1])
    same(ours[0] * ours, other[0] * other)
    weights = RNG.uniform(1, 2, 20)
    few, others = (
        Rotation.from_quat(QUATS + [0, 0, 0, 3]),
        theirs.Rotation.from_quat(QUATS + [0, 0, 0, 3]),
    )
    same(few.mean(), others.mean())
    same(few.mean(weights), others.mean(weights))
    assert len(Rotation.concatenate([ours, ours[0]])) == 21
    same(Rotation.identity(3), theirs.Rotation.identity(3))
    assert Rotation.identity(dtype=np.float32).as_quat().dtype == np.float32


def test_transformations() -> None:
    f = lambda v: Rotation.from_rotvec(v).apply(jnp.array([1.0, 2.0, 3.0]))
    # at 0 the derivative is that of the cross product
    close(jato.jacobian(f)(jnp.zeros(3)), [[0, 3, -2], [-3, 0, 1], [2, -1, 0]])
    close(jato.jacobian(lambda v: Rotation.from_rotvec(v).as_rotvec())(jnp.zeros(3)), np.eye(3))
    turned = jato.jit(lambda r: r * r.inv())(Rotation.from_quat(QUATS))
    close(turned.magnitude(), np.zeros(20))
    rows = jato.vmap(lambda q: Rotation.from_quat(q).as_euler("xyz"))(QUATS)
    close(rows, Rotation.from_quat(QUATS).as_euler("xyz"))
    found = Rotation.random(jato.random.key(0), 2000)
    close(jnp.linalg.norm(found.as_quat(), axis=-1), np.ones(2000))
    assert float(jnp.max(jnp.abs(found.apply(jnp.array([1.0, 0, 0])).mean(0)))) < 0.05
    assert Rotation.random(jato.random.key(0)).single


def test_slerp() -> None:
    times = np.array([0.0, 1, 3, 4])
    ours = Slerp.init(times, Rotation.from_quat(QUATS[:4]))
    other = theirs.Slerp(times, theirs.Rotation.from_quat(QUATS[:4]))
    where = np.array([0, 0.25, 1, 2.5, 3.75, 4])
    same(ours(where), other(where))
    same(ours(2.0), other(2.0))
    same(jato.jit(lambda s, t: s(t))(ours, where), other(where))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Rotation.from_quat(np.ones(3)), ValueError, "Rotation.from_quat: argument 'quat'"),
        (lambda: Rotation.from_matrix(np.ones((2, 2))), ValueError, "Rotation.from_matrix: argument 'matrix'"),
        (lambda: Rotation.from_euler("xX", [1, 2]), ValueError, "Rotation.from_euler: argument 'seq'"),
        (lambda: Rotation.from_euler("xx", [1, 2]), ValueError, "argument 'seq'"),
        (lambda: Rotation.from_euler("xyz", [1, 2]), ValueError, "'angles' must hold 3 angles"),
        (lambda: Rotation.identity().as_euler("xy"), ValueError, "Rotation.as_euler: argument 'seq' must be 3"),
        (lambda: Rotation.identity(3).apply(np.ones((2, 3))), ValueError, "must hold 1 or 3 vectors"),
        (lambda: Rotation.identity(3).mean(np.ones(2)), ValueError, "argument 'weights'"),
        (lambda: len(Rotation.identity()), TypeError, r"has no len\(\)"),
        (lambda: Rotation.identity()[0], TypeError, "cannot be indexed"),
        (lambda: Rotation.identity() * 2, TypeError, "unsupported operand"),
        (lambda: Slerp([0, 1], Rotation.identity()), ValueError, "Slerp: argument 'rotations'"),
        (lambda: Slerp([0, 1], Rotation.identity(3)), ValueError, "Slerp: argument 'times' must have shape"),
        (lambda: Slerp([0, 0], Rotation.identity(2)), ValueError, "must rise strictly"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
