"""Expressions over jato.numpy whose results under jax.numpy 0.10 are recorded in peer_results.npz.

Record anew, with the peer installed, after adding a case:

    python tests/numpy/peer_cases.py
"""

from __future__ import annotations

import io
import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy

RECORD = Path(__file__).with_name("peer_results.zip")

_rng = numpy.random.default_rng(7)
INPUTS = {
    "x": _rng.standard_normal(7).astype("f4"),
    "y": _rng.standard_normal(7).astype("f4"),
    "m": _rng.standard_normal((3, 4)).astype("f4"),
    "n": _rng.standard_normal((4, 5)).astype("f4"),
    "t": _rng.standard_normal((2, 3, 4)).astype("f4"),
    "i": numpy.array([3, -1, 4, 1, -5, 9, 2], "i4"),
    "u": numpy.array([3, 1, 4, 1, 5, 9, 2], "u4"),
    "s": numpy.array([1, -2, 100, 5], "i1"),
    "k": numpy.array([0, 2, 1, 2], "i4"),
    "b": numpy.array([True, False, True, True, False, False, True]),
    "z": (_rng.standard_normal(5) + 1j * _rng.standard_normal(5)).astype("c8"),
    "h": _rng.standard_normal(5).astype("f2"),
    "w": numpy.array([1.0, numpy.nan, -2.0, numpy.inf, 0.0, -0.0, 5.0], "f4"),
    "e": numpy.zeros((0, 3), "f4"),
    "o": numpy.float32(2.5),
    "p": numpy.array([0.1, 0.5, 0.9], "f4"),
}

CASES = """
np.add(x, y)
np.add(x, 1)
np.add(i, 1.5)
np.add(i, u)
np.add(s, i[:4])
np.add(h, 1.0)
np.add(b, b)
np.add(1, 2)
np.add(m, m[0])
np.add(m, m[:, :1])
np.add(o, x)
x - y
2 - i
x * o
b * 1
i / 2
x // 0.3
i // 2
i % 3
-7 % i
x % 0.4
np.divmod(i, 2)
np.fmod(x, 0.3)
x ** 2
x ** 3
i ** 3
abs(x) ** 2.5
2 ** u
x ** -2
np.float_power(u, 2)
np.power(i, k[0])
-x
~i
~b
abs(i)
np.abs(z)
np.sign(w)
np.sign(z)
np.square(i)
np.reciprocal(x)
np.positive(b)
np.fabs(i)
np.maximum(x, 0)
np.maximum(w, 1.0)
np.minimum(i, u.astype('i4'))
np.fmax(w, 1.0)
np.fmin(w, 1.0)
np.clip(i, 0, 3)
np.clip(x, None, 0.5)
np.clip(i, 0, 1.5)
x == y
i < 2
i >= u.astype('i4')
x != 0
np.logical_and(i, b)
np.logical_or(x, False)
np.logical_xor(b, True)
np.logical_not(i)
i & 3
i | u.astype('i4')
i ^ 5
b & True
i << 2
i >> 1
u >> 1
np.bitwise_count(u)
np.isnan(w)
np.isinf(w)
np.isfinite(w)
np.isfinite(i)
np.isposinf(w)
np.isneginf(w)
np.signbit(w)
np.floor(x)
np.ceil(i)
np.trunc(x * 3)
np.rint(x * 3)
np.rint(i)
np.round(x, 2)
np.round(h, 1)
np.round(x * 100, -1)
np.round(z, 1)
np.real(z)
np.imag(z)
np.imag(x)
np.conj(z)
np.copysign(x, y)
np.heaviside(w, 0.5)
np.nextafter(x, y)
np.spacing(x)
np.modf(x * 3)
np.frexp(x)
np.ldexp(x, i)
np.exp(x)
np.exp(i)
np.exp(z)
np.exp(1)
np.exp2(x)
np.expm1(x)
np.log(abs(x))
np.log(w)
np.log2(abs(x))
np.log10(abs(x))
np.log1p(abs(x))
np.sqrt(abs(x))
np.sqrt(z)
np.cbrt(x)
np.sin(x)
np.cos(h)
np.tan(x)
np.arcsin(p)
np.arccos(p)
np.arctan(x)
np.sinh(x)
np.cosh(x)
np.tanh(x)
np.arcsinh(x)
np.arccosh(abs(x) + 1)
np.arctanh(p)
np.arctan2(x, y)
np.hypot(x, y)
np.deg2rad(x)
np.rad2deg(i)
np.sinc(x)
np.sinc(i * 0.5)
np.logaddexp(x, y)
np.logaddexp(w, w)
np.logaddexp(-np.inf, -np.inf)
np.logaddexp2(x, y)
np.angle(z)
np.angle(x)
np.angle(z, deg=True)
np.nan_to_num(w)
np.nan_to_num(w, nan=1.0, posinf=2.0, neginf=3)
np.nan_to_num(i)
np.sum(m)
np.sum(m, 0)
np.sum(m, axis=(0, 1), keepdims=True)
np.sum(b)
np.sum(s)
np.sum(s, dtype='i1')
np.sum(u)
np.sum(z)
np.sum(e, 0)
np.sum(x, where=b)
np.sum(x, initial=2.0)
np.sum(2.0)
np.sum(h)
np.prod(p)
np.prod(i)
np.max(m, 1)
np.max(w)
np.max(i, initial=100)
np.max(x, where=b, initial=-1.0)
np.min(m)
np.max(e, axis=1)
np.max(b)
np.ptp(m, 0)
np.any(b)
np.all(m > 0, axis=1)
np.any(x)
np.count_nonzero(m > 0, axis=0)
np.argmax(m)
np.argmax(m, 1)
np.argmin(w)
np.argmax(m, axis=0, keepdims=True)
np.mean(m)
np.mean(i)
np.mean(h)
np.mean(x, where=b)
np.mean(b)
np.mean(z)
np.mean(m, dtype='f2')
np.average(x, weights=abs(y))
np.average(m, axis=1, weights=abs(m[0]))
np.average(x, returned=True)
np.var(m, 0)
np.var(x, ddof=1)
np.var(z)
np.var(i)
np.var(x, where=b)
np.var(h)
np.std(m, axis=1, keepdims=True)
np.cumsum(m)
np.cumsum(m, 1)
np.cumsum(b)
np.cumsum(s)
np.cumprod(x)
np.cumulative_sum(x, include_initial=True)
np.cumulative_prod(m, axis=1)
np.isclose(x, x + 1e-6)
np.isclose(w, w, equal_nan=True)
np.isclose(i, i)
np.allclose(x, x)
np.array_equal(x, y)
np.array_equal(w, w, equal_nan=True)
np.array_equiv(m, m[0])
np.nansum(w[:3])
np.nanprod(w)
np.nanmax(w)
np.nanmin(w)
np.nanargmax(w)
np.nanargmin(w)
np.nanmean(w[:3])
np.nanvar(w[:3])
np.nanstd(w[:3])
np.nancumsum(w[:3])
np.nancumprod(w)
np.nanmean(i)
np.reshape(m, (2, 6))
np.reshape(m, -1)
np.reshape(m, (2, 6), order='F')
m.reshape(4, 3)
m.reshape((4, -1))
np.ravel(m, order='F')
np.transpose(t)
np.transpose(t, (1, 0, 2))
t.transpose(2, 0, 1)
m.T
t.mT
np.swapaxes(t, 0, 2)
np.moveaxis(t, 0, -1)
np.moveaxis(t, (0, 1), (-1, 0))
np.rollaxis(t, 2)
np.squeeze(m[:, :1], 1)
np.squeeze(m[:1])
np.expand_dims(x, (0, 2))
np.broadcast_to(x, (2, 7))
np.broadcast_arrays(m, m[0])
np.atleast_1d(o)
np.atleast_2d(x)
np.atleast_3d(x)
np.concatenate([x, i])
np.concatenate([m, m], axis=1)
np.concatenate([m, m], axis=None)
np.concatenate((x, y), dtype='f2')
np.stack([x, y])
np.stack([x, y], axis=-1)
np.stack([1, 2.0])
np.stack(m)
np.vstack([x, y])
np.hstack([m, m])
np.hstack([x, y])
np.dstack([m, m])
np.column_stack([x, y])
np.block([[m, m], [m, m]])
np.append(x, i)
np.append(m, m, axis=0)
np.split(x[:6], 3)
np.split(x, [2, 5])
np.array_split(x, 3)
np.hsplit(m, 2)
np.vsplit(m, 3)
np.dsplit(t, 2)
np.unstack(m)
np.flip(m)
np.flip(m, 1)
np.flipud(m)
np.fliplr(m)
np.rot90(m)
np.rot90(m, 3)
np.rot90(m, 2)
np.roll(x, 2)
np.roll(m, 1)
np.roll(m, -1, axis=1)
np.roll(m, (1, 2), axis=(0, 1))
np.repeat(x, 2)
np.repeat(m, 2, axis=1)
np.repeat(m, numpy.array([1, 0, 2]), axis=0)
np.tile(x, 2)
np.tile(m, (2, 1))
np.tile(x, (2, 2))
np.resize(x, (3, 4))
np.pad(x, 2)
np.pad(m, ((1, 2), (0, 1)), constant_values=5)
np.pad(m, 1, mode='edge')
np.pad(m, 2, mode='reflect')
np.pad(x, (3, 1), mode='symmetric')
np.pad(x, 9, mode='wrap')
np.pad(x, 9, mode='reflect')
np.pad(m, 1, mode='maximum')
np.pad(m, 1, mode='mean')
np.pad(x, 3, mode='linear_ramp')
np.pad(m, 1, constant_values=((1, 2), (3, 4)))
np.array([1, 2.5])
np.array([[1, 2], [3, 4]], dtype='f4')
np.array(3)
np.asarray(2.5)
np.asarray([True, False])
np.asarray([o, 2.0])
np.array([x, y])
np.array(x, ndmin=2)
np.zeros((2, 3))
np.zeros(3, int)
np.ones(2, 'f2')
np.full((2,), 1.5)
np.full((2, 2), x[:2])
np.full(2, 3, 'f4')
np.zeros_like(i)
np.ones_like(m, dtype='i4')
np.full_like(i, 2.7)
np.full_like(1.5, 2)
m[[0, 2], [1, -1]]
m[:, None, [0, 1], None]
m[[[0], [2]], (1, 3)]
m[[True, False, True], 0]
m[:, []]
m[[o.astype(int) - 2, 0], 1]
m.at[[0, 1], [0, 1]].set(1.0)
m.at[k].power(2.0)
m.at[0].power(3)
m.at[k].apply(np.sin)
m.at[np.array([0, -3, 9])].apply(lambda v: v * 2)
i.at[k].divide(2)
i.at[0].divide(2)
i.at[k].power(2)
np.repeat(m, np.array([1, 0, 2]), axis=0, total_repeat_length=5)
np.repeat(m, np.array([1, 0, 2]), axis=0, total_repeat_length=2)
np.pad(m, 2, mode="reflect", reflect_type="odd")
np.pad(x, (20, 3), mode="symmetric", reflect_type="odd")
round(x)
round(z)
round(x, 1)
np.broadcast_arrays(m, m[0], 1)
np.atleast_1d(1, x)
np.copy(2.5)
np.ravel(2)
np.floor(2.0)
np.dot(s, s, preferred_element_type=np.int32)
np.dot(s, 100, preferred_element_type=np.int32)
np.einsum("i,i->i", s, s, preferred_element_type=np.int32)
np.outer(s, s)
2 ** x
s * 300
300 - s
-1 >> u
np.clip(s, 0, 300)
np.greater(z, 1)
b // True
np.sum(b, dtype=bool)
np.prod(m, axis=0, dtype=bool, initial=0)
np.cumsum(b, dtype=bool)
np.cumprod(b, dtype=bool)
np.zeros_like(1)
np.ones_like(2.5, shape=(2, 3))
np.zeros_like(x.sum() * 0 + 1.0)
np.eye(3)
np.eye(2, 3, k=1)
np.identity(2)
np.arange(5)
np.arange(2, 9, 3)
np.arange(5, 0, -2)
np.arange(0, 1, 0.25)
np.arange(3.0)
np.arange(3, dtype='f4')
np.linspace(0, 1, 5)
np.linspace(0, 10, 4, endpoint=False)
np.linspace(0, 1, 5, retstep=True)
np.linspace(x, y, 4)
np.linspace(0, 10, 5, dtype='i4')
np.linspace(x[:2], 1.0, 3, axis=1)
np.linspace(1j, 2, 3)
np.linspace(0, 1, 1)
np.logspace(0, 2, 3)
np.geomspace(1.0, 100.0, 3)
np.meshgrid(x[:2], y[:3])
np.meshgrid(x[:2], y[:3], indexing='ij', sparse=True)
np.indices((2, 3))
np.tri(3)
np.tri(2, 3, k=1)
np.tril(m)
np.triu(t, 1)
np.diag(x)
np.diag(x, 1)
np.diag(x, -2)
np.diag(m)
np.diag(m, 1)
np.diagonal(t, axis1=1, axis2=2)
np.diagonal(m, -1)
np.diagflat(m)
np.trace(m)
np.trace(i.reshape(1, 7))
np.vander(x, 3)
np.vander(i, 4, increasing=True)
np.hanning(5)
np.mgrid[0:2, 0:3]
np.ogrid[0:2, 0:3]
np.r_[1:4, 7]
np.c_[x, y]
x.astype('i4')
i.astype('f2')
i.astype('u1')
b.astype('i4')
w[:3].astype(bool)
x[0]
x[-1]
x[1:4]
x[::-1]
x[5:1:-2]
x[::3]
m[1]
m[1, 2]
m[:, 1]
m[..., 0]
m[None, 1:, ::2]
m[1:, None, :]
x[2:2]
m[k[:3]]
m[:, k]
m[k[:3], k[1:]]
m[k[:2, None], k]
t[0, :, k]
t[:, 0, k]
t[:, k[:2], 1:3]
t[k[:1], ..., k]
t[..., k[:3] - 3]
t[1, k[:3]]
t[:, None, k[:3], ::-1]
m[numpy.array([True, False, True])]
m[:, numpy.array([True, False, True, True])]
m[True]
m[k[0]]
m[k[1], k[0]]
x[i[0]]
x.at[1].set(5.0)
x.at[1:3].set(5.0)
x.at[::2].add(1)
x.at[::-1].set(y)
x.at[5:1:-2].multiply(2)
m.at[1].set(0)
m.at[:, 1].add(m[:, 0])
m.at[1, 2].set(9)
m.at[k[:3]].add(1.0)
m.at[:, k].set(0.0)
m.at[k[:3], k[1:]].set(m[0, :3])
m.at[k[:3], k[1:]].add(2.0)
m.at[1:, k].min(0.0)
m.at[..., 0].max(0.5)
m.at[0].divide(2.0)
m.at[0].power(2)
m.at[0].apply(np.exp)
x.at[k].add(1)
x.at[numpy.array([50, 1])].set(3.0)
x.at[50].set(3.0)
x.at[-1].set(3.0)
x.at[-50].get()
x.at[50].get(mode='fill')
x.at[k + 6].get(mode='fill', fill_value=-1)
x.at[k + 6].get(mode='clip')
x.at[50].set(1.0, mode='clip')
x.at[k[0] - 1].set(7.0)
t.at[:, 0, k].set(1.0)
t.at[0, :, k].add(1.0)
m.at[numpy.array([True, False, True])].set(1.0)
m.at[numpy.array([True, False, True])].add(m[:2])
np.take(x, k)
np.take(x, k + 5)
np.take(m, k, axis=1)
np.take(m, k, mode='clip')
np.take(x, k * 5, mode='wrap')
np.take(x, -k)
np.take(i, 50)
np.take_along_axis(m, k[:3, None], 1)
np.take_along_axis(m, np.argsort(m, 1), 1)
np.take_along_axis(m, k[None, :] % 3, 0)
np.put_along_axis(m, k[:3, None], 9.0, 1, inplace=False)
np.put(x, k, 5.0, inplace=False)
np.dot(x, y)
np.dot(m, n)
np.dot(m, n[:, 0])
np.dot(t, n)
np.dot(2.0, x)
np.dot(i, x)
np.matmul(m, n)
np.matmul(t, n)
np.matmul(t, t.mT)
np.matmul(x, y)
np.matmul(m[0], n)
np.matmul(t, m[0])
np.matmul(m, t.mT)
np.matmul(i[:6].reshape(2, 3), i[:6].reshape(3, 2))
m @ n
np.inner(m, m)
np.outer(x, i)
np.vdot(z, z)
np.vecdot(m, m)
np.matvec(m, m[0])
np.vecmat(m[:, 0], m)
np.tensordot(m, n, 1)
np.tensordot(t, t, ((0, 2), (0, 2)))
np.kron(m[:2, :2], n[:2])
np.cross(m[:, :3], m[0, :3])
np.cross(x[:2], y[:2])
np.einsum('ij,jk->ik', m, n)
np.einsum('ij,jk', m, n)
np.einsum('ij->ji', m)
np.einsum('ii', m[:, :3])
np.einsum('ij->', m)
np.einsum('bij,bkj->bik', t, t)
np.einsum('ij,ij->i', m, m)
np.einsum('i,j->ij', x, y)
np.einsum('ij,jk,kl->il', m, n, n.T)
np.einsum('...ij,jk->...ik', t, n)
np.einsum(m, [0, 1], n, [1, 2], [0, 2])
np.einsum('ijk,k->ij', t, m[0])
np.convolve(x, y)
np.convolve(x, y[:3], mode='same')
np.convolve(x, y[:2], mode='same')
np.convolve(y[:3], x, mode='valid')
np.convolve(i, i)
np.convolve(z, x)
np.correlate(x, y[:3])
np.correlate(x, y[:3], mode='full')
np.correlate(x, y[:4], mode='same')
np.correlate(y[:3], x, mode='full')
np.correlate(z, z[:2])
np.sort(x)
np.sort(w)
np.sort(m, 0)
np.sort(i, descending=True)
np.sort(m, axis=None)
np.argsort(i)
np.argsort(w)
np.argsort(m, axis=0, descending=True)
np.lexsort((x, i % 2))
np.sort_complex(x)
np.sort(z)
np.where(b, x, y)
np.where(b, 1, 2.0)
np.where(b, x, 0)
np.where(x > 0, 1, 0)
np.where(m > 0, m, m[0])
np.where(b, i, x)
np.select([x > 0, x > -1], [x, i], 7)
np.choose(k, [x[:4], y[:4], i[:4]], mode='clip')
np.piecewise(x, [x < 0, x > 1], [lambda v: -v, 3.0, lambda v: v * 2])
np.nonzero(b, size=5, fill_value=-1)
np.nonzero(m > 0, size=12)
np.flatnonzero(i > 1, size=3)
np.argwhere(m > 0, size=4)
np.compress(b, x, size=4)
np.searchsorted(np.sort(x), y)
np.searchsorted(np.sort(x), y, side='right')
np.searchsorted(np.arange(100), i)
np.searchsorted(np.arange(100.0), w)
np.digitize(x, np.array([-1.0, 0.0, 1.0]))
np.digitize(x, np.array([1.0, 0.0, -1.0]), right=True)
np.interp(x, np.sort(y), y)
np.interp(x, np.sort(y), y, left=-1.0, right=9.0)
np.interp(i, np.arange(5.0), np.arange(5.0) * 2, period=5.0)
np.unravel_index(k, (2, 3))
np.ravel_multi_index((k % 2, k), (2, 3), mode='clip')
np.median(x)
np.median(m, 0)
np.median(w[:3])
np.nanmedian(w[:3])
np.quantile(x, 0.3)
np.quantile(m, p, axis=1)
np.quantile(m, p, axis=0, keepdims=True)
np.quantile(x, 0.4, method='lower')
np.quantile(x, 0.4, method='higher')
np.quantile(x, 0.4, method='nearest')
np.quantile(x, 0.4, method='midpoint')
np.percentile(i, 40)
np.nanquantile(w[:3], 0.25)
np.nanpercentile(m, 30, axis=1)
np.cov(m)
np.cov(x, y)
np.cov(m, rowvar=False, bias=True)
np.corrcoef(m)
np.bincount(k, length=5)
np.bincount(k, weights=x[:4], length=3)
np.histogram(x, bins=4)
np.histogram(x, bins=np.array([-1.0, 0.0, 2.0]))
np.histogram(x, bins=4, range=(-1, 1), density=True)
np.histogram(x, bins=3, weights=y)
np.histogram2d(x, y, bins=3)
np.diff(x)
np.diff(m, n=2, axis=0)
np.diff(x, prepend=0.0)
np.diff(b)
np.ediff1d(i, to_begin=np.array([1]), to_end=np.array([2]))
np.gradient(x)
np.gradient(m)
np.gradient(x, 0.5)
np.gradient(x, np.cumsum(abs(x)))
np.trapezoid(x)
np.trapezoid(m, dx=0.5, axis=0)
np.trapezoid(x, np.sort(y))
np.unwrap(x * 4)
np.unwrap(np.cumsum(x) * 3, period=4)
np.unique(k, size=4)
np.unique(k, size=2, fill_value=9, return_counts=True, return_inverse=True, return_index=True)
np.unique(m > 0, axis=0, size=3)
np.union1d(k, i, size=9, fill_value=0)
np.isin(i, k)
np.isin(i, np.arange(50), invert=True)
np.intersect1d(i, k, size=3, fill_value=0)
np.setdiff1d(i, k, size=6, fill_value=0)
np.polyval(x, y)
np.polyval(i, 2)
np.polyadd(x, y[:3])
np.polysub(i, k)
np.polymul(x, y[:3])
np.polyder(x, 2)
np.polyint(x)
np.polyint(x, 2, k=np.array([1.0, 2.0]))
np.polydiv(x, y[:3])
np.poly(p)
np.tril_indices(3)
np.triu_indices(3, 1)
np.diag_indices(3)
np.delete(x, 1)
np.delete(m, numpy.array([0, 2]), axis=1)
np.insert(x, 2, 9.0)
np.insert(m, 1, 5.0, axis=1)
np.insert(x, numpy.array([1, 3]), numpy.array([7.0, 8.0], 'f4'))
np.fill_diagonal(m, 0.0, inplace=False)
np.gcd(i, 6)
np.lcm(u, 6)
np.packbits(b)
np.unpackbits(np.array([3, 255], 'u1'))
np.iscomplex(z)
np.isreal(x)
np.vectorize(lambda a, c: a + c)(m, m[0])
np.vectorize(lambda a: a.sum(), signature='(n)->()')(t)
np.apply_along_axis(np.sum, 1, t)
np.apply_over_axes(np.sum, t, (0, 2))
np.add.reduce(m)
np.add.accumulate(m, axis=1)
np.multiply.outer(x, i)
np.maximum.reduce(m, axis=1)
np.subtract.reduce(x)
np.add.at(x, k, 1.0, inplace=False)
x.sum() + x.mean()
m.max(axis=1).argmin()
x.std(ddof=1)
x.round(1)
x.clip(0, 1)
z.conj().imag
m.flatten()
m.diagonal()
m.trace()
x.view('i4')
x.take(k)
x.repeat(2)
x.cumsum()
x.argsort()
x.sort()
x.dot(y)
x.searchsorted(0.5)
i.prod()
b.any() & b.all()
m.squeeze()
m.swapaxes(0, 1)
""".strip().splitlines()


def evaluate(case: str, module: Any, values: dict[str, Any]) -> Any:
    """The value of a case, with `module` as np."""
    return eval(case, {"np": module, "numpy": numpy}, values)


def leaves(x: Any) -> list[Any]:
    return [leaf for item in x for leaf in leaves(item)] if isinstance(x, (tuple, list)) else [x]


def load_results() -> dict[str, list[dict[str, Any]]]:
    """case -> [{shape, dtype, weak_type, values}] of each array of the result."""
    with zipfile.ZipFile(RECORD) as archive:
        table = json.loads(archive.read("cases.json"))
        arrays = numpy.load(io.BytesIO(archive.read("values.npz")))
        for results in table.values():
            for result in results:
                result["values"] = arrays[result.pop("key")]
        return table


def record() -> None:
    """Evaluates all cases with the peer."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax.numpy as peer

    values = {name: peer.asarray(x) for name, x in INPUTS.items()}
    table: dict[str, Any] = {}
    arrays = {}
    for number, case in enumerate(CASES):
        results = []
        for i, x in enumerate(leaves(evaluate(case, peer, values))):
            key = f"{number}_{i}"
            arrays[key] = numpy.asarray(x)
            results.append(
                {
                    "key": key,
                    "dtype": str(x.dtype),
                    "weak_type": bool(x.weak_type),
                    "shape": x.shape,
                }
            )
        table[case] = results
    buffer = io.BytesIO()
    numpy.savez_compressed(buffer, **arrays)
    with zipfile.ZipFile(RECORD, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("cases.json", json.dumps(table, indent=0))
        archive.writestr("values.npz", buffer.getvalue())


if __name__ == "__main__":
    record()
    print(f"recorded {len(CASES)} cases", file=sys.stderr)
