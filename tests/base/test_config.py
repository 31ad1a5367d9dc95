"""Settings: types, environment, override, messages; caches and events."""

import weakref

import pytest

from jato.base import caches, dtypes, observe
from jato.base.config import Config, config, enable_x64


def test_update_and_override():
    assert config.jax_enable_x64 == dtypes.x64_enabled()
    before, epoch = config.jax_enable_x64, config.epoch
    with enable_x64(not before):
        other = config.epoch
    assert config.epoch == epoch != other  # the same configuration again
    with enable_x64(True):
        assert dtypes.x64_enabled() and config.jax_enable_x64
        with enable_x64(False):
            assert not dtypes.x64_enabled()
    assert config.jax_enable_x64 == before


def test_unknown_setting_suggests_a_name():
    with pytest.raises(AttributeError, match="Did you mean jax_enable_x64"):
        config.update("enable_x64", True)
    with pytest.raises(AttributeError, match="no setting 'jax_nothing'"):
        _ = config.jax_nothing


def test_values_are_checked():
    with pytest.raises(TypeError, match="jax_enable_x64 must be of type bool, got 'yes'"):
        config.update("jax_enable_x64", "yes")
    with pytest.raises(ValueError, match="must be one of standard, strict"):
        config.update("jax_numpy_dtype_promotion", "loose")


def test_what_is_not_there_is_refused():
    with pytest.raises(ValueError, match="jax_threefry_partitionable must be one of True"):
        config.update("jax_threefry_partitionable", False)
    with pytest.raises(ValueError, match="keys are not tracked"):
        config.update("jax_debug_key_reuse", True)


def test_a_listener_may_refuse():
    private = Config()

    def refuse(value):
        if value > 8:
            raise ValueError("too many")

    private.on_change("jax_num_cpu_devices", refuse)
    with pytest.raises(ValueError, match="too many"):
        private.update("jax_num_cpu_devices", 9)
    assert private.jax_num_cpu_devices == 1


@pytest.mark.parametrize("variable", ["JAX_ENABLE_X64", "JATO_ENABLE_X64"])
def test_environment(monkeypatch, variable):
    monkeypatch.setenv(variable, "true")
    assert Config().jax_enable_x64
    monkeypatch.setenv(variable, "perhaps")
    with pytest.raises(ValueError, match=f"environment variable {variable}: .*'perhaps'"):
        Config()


def test_lru_cache_is_bounded_and_cleared():
    cache = caches.LruCache(capacity=2)
    for i in range(3):
        cache.put(i, i * i)
    assert cache.get(0) is caches.MISSING
    assert cache.get(2) == 4
    caches.clear_all()
    assert len(cache) == 0


def test_the_list_of_caches_keeps_none_alive():
    gone = weakref.ref(caches.LruCache())
    assert gone() is None


def test_weak_cache_forgets_with_its_anchor():
    calls = []

    class Anchor:
        pass

    @caches.weakly_cached()
    def derived(anchor, factor):
        calls.append(factor)
        return factor * 2

    anchor = Anchor()
    assert derived(anchor, 2) == derived(anchor, 2) == 4
    assert derived(anchor, 3) == 6
    assert calls == [2, 3]
    gone = weakref.ref(anchor)
    del anchor
    assert gone() is None


def test_events_reach_listeners_only_inside():
    events = []
    with observe.listening(events.append):
        assert observe.heard()
        observe.stage("fuse", "ir")
        observe.decision("retrace", "shape of x")
    observe.timing("emit", 0.1)
    assert [e.kind for e in events] == ["stage", "decision"]
    assert not observe.heard()
