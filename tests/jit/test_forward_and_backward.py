"""fwd_and_bwd against grad; parameters of transforms that only have a default."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jato
import jato.numpy as jnp

X, Y = np.float32([1.0, 2.0, 3.0]), np.float32([4.0, 5.0, 6.0])


@pytest.mark.parametrize("jitted", [True, False])
def test_passes(jitted: bool) -> None:
    forward, backward = jato.fwd_and_bwd(lambda x, y: jnp.sin(x) * y, (0, 1), jitted=jitted)
    out, residuals = forward(X, Y)
    np.testing.assert_allclose(out, np.sin(X) * Y, rtol=1e-6)
    found = backward(residuals, jnp.ones(3))
    np.testing.assert_allclose(found[0], np.cos(X) * Y, rtol=1e-6)
    np.testing.assert_allclose(found[1], np.sin(X), rtol=1e-6)
    forward, backward = jato.fwd_and_bwd(lambda x, y: (x * y, {"kept": y}), -1, True, jitted)
    out, residuals, aux = forward(X, Y)
    np.testing.assert_allclose(backward(residuals, jnp.ones(3)), X)
    np.testing.assert_allclose(aux["kept"], Y)


def test_passes_are_compiled_once() -> None:
    forward, backward = jato.fwd_and_bwd(lambda x: jnp.sin(x) ** 2, 0)
    for factor in (1.0, 2.0, 3.0):
        _, residuals = forward(factor * X)
        backward(residuals, jnp.ones(3))
    assert forward.stats().traces == backward.stats().traces == 1


def test_messages() -> None:
    with pytest.raises(TypeError, match="fwd_and_bwd: expected a function, got 3"):
        jato.fwd_and_bwd(3, 0)
    with pytest.raises(ValueError, match=r"argnums are \(2,\), but the call has 1 arguments"):
        jato.fwd_and_bwd(lambda x: x, 2)[0](X)
    for call in (
        lambda: jato.vjp(jnp.sin, X, saveable_args=False),
        lambda: jato.vjp(jnp.sin, X, in_nzs=(True,)),
        lambda: jato.vjp(jnp.sin, X, reduce_axes=("i",)),
        lambda: jato.linearize(jnp.sin, X, in_nzs=(True,)),
        lambda: jato.vmap(jnp.sin, sum_match=True),
        lambda: jato.random.gamma(jato.random.key(0), 1.0, method="fast"),
        lambda: jato.random.poisson(jato.random.key(0), 1.0, method="fast"),
    ):
        with pytest.raises(NotImplementedError, match="argument '.*': expected"):
            call()


@pytest.mark.parametrize(
    "call",
    [
        lambda s: jnp.zeros((2,), out_sharding=s),
        lambda s: jnp.array([1.0], out_sharding=s),
        lambda s: jnp.arange(3, out_sharding=s),
        lambda s: jnp.matmul(X, Y, out_sharding=s),
        lambda s: jnp.einsum("i,i", X, Y, out_sharding=s),
        lambda s: jnp.asarray(X).at[0].set(1.0, out_sharding=s),
        lambda s: jato.random.normal(jato.random.key(0), (2,), out_sharding=s),
        lambda s: jato.nn.initializers.normal()(jato.random.key(0), (2,), out_sharding=s),
        lambda s: jato.ops.segment_sum(X, np.array([0, 0, 1]), 2, out_sharding=s),
    ],
)
def test_sharding_is_refused(call: Any) -> None:
    call(None)
    with pytest.raises(NotImplementedError, match="argument 'out_sharding': expected None"):
        call("devices")


def test_names_of_the_package() -> None:
    assert jato.typeof(X).shape == (3,) and jato.typeof(1.0).weak_type
    assert jato.jacobian is jato.jacrev and jato.checkpoint_policies.dots_saveable
    assert (jato.host_id(), jato.host_count(), jato.host_ids(), jato.process_indices()) == (
        0,
        1,
        [0],
        [0],
    )
    assert jato.copy_to_host_async({"a": X})["a"] is X
    with jato.debug_nans(new_val=True):
        assert jato.config.jax_debug_nans
    with jato.disable_jit(disable=False):
        assert not jato.config.jax_disable_jit
    with jato.disable_jit():
        assert jato.config.jax_disable_jit
    with (
        jato.default_prng_impl("threefry2x32"),
        jato.enable_custom_prng(),
        jato.check_tracer_leaks(),
    ):
        assert jato.config.jax_enable_custom_prng and jato.config.jax_check_tracer_leaks
