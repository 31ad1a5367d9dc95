"""Settings of the process: a few typed flags under JAX's names.

A flag is a row of `FLAGS`: its type, default, environment variables, what it does.  Reading is
attribute access (`config.jax_enable_x64`), writing is `config.update(name, value)`, and
`config.override(name, value)` is the `with` form.  The values of all flags that affect what programs
compute have a number, the config epoch: cached calls are used under their own configuration only,
and again when it comes back.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from jato import _native
from jato.base import dtypes

_TRUE = ("1", "true", "yes", "on", "y", "t")
_FALSE = ("0", "false", "no", "off", "n", "f", "")


@dataclass(frozen=True, slots=True)
class Flag:
    """One setting.  `kind`: bool, int or str; `optional`: None is allowed; `choices`: if limited."""

    name: str
    kind: type
    default: Any
    doc: str
    environment: tuple[str, ...] = ()
    choices: tuple[Any, ...] = ()
    optional: bool = False
    # does it change what programs compute, so that cached calls must not be reused?
    semantic: bool = True

    def parse(self, text: str) -> Any:
        """The value of an environment variable."""
        if self.kind is bool:
            lowered = text.strip().lower()
            if lowered in _TRUE or lowered in _FALSE:
                return lowered in _TRUE
            raise ValueError(f"expected a truth value such as '1' or '0', got {text!r}")
        return self.check(int(text) if self.kind is int else text)

    def check(self, value: Any) -> Any:
        """The value in its canonical form; TypeError or ValueError if it is none."""
        if value is None and self.optional:
            return None
        if self.kind is bool and isinstance(value, int) and value in (0, 1):
            return self.chosen(bool(value))
        if self.kind is int and isinstance(value, int) and not isinstance(value, bool):
            return self.chosen(int(value))
        if self.kind is str and isinstance(value, str):
            return self.chosen(value)
        raise TypeError(
            f"config.update: {self.name} must be of type {self.kind.__name__}"
            + (" or None" if self.optional else "")
            + f", got {value!r}"
        )

    def chosen(self, value: Any) -> Any:
        if self.choices and value not in self.choices:
            raise ValueError(
                f"config.update: {self.name} must be one of {', '.join(map(str, self.choices))}, "
                f"got {value!r}. {self.doc}"
            )
        return value


def _flag(name: str, kind: type, default: Any, doc: str, **options: Any) -> Flag:
    variables = (name.upper(), "JATO_" + name.removeprefix("jax_").upper())
    return Flag(name, kind, default, doc, options.pop("environment", variables), **options)


_MATMUL = ("default", "high", "highest", "bfloat16", "tensorfloat32", "float32", "fastest")
FLAGS: tuple[Flag, ...] = (
    _flag("jax_enable_x64", bool, False, "64-bit types are kept, not narrowed to 32 bits."),
    _flag("jax_disable_jit", bool, False, "jit and control flow run as plain Python."),
    _flag("jax_debug_nans", bool, False, "Raise FloatingPointError when a result has a NaN."),
    _flag("jax_debug_infs", bool, False, "Raise FloatingPointError when a result has an infinity."),
    _flag("jax_check_tracer_leaks", bool, False, "Report tracers that outlive their trace.",
          environment=("JAX_CHECK_TRACER_LEAKS",)),
    _flag("jax_debug_key_reuse", bool, False, "Uses of random keys are not tracked.",
          choices=(False,)),
    _flag("jax_enable_custom_prng", bool, False, "random.PRNGKey makes typed keys."),
    _flag("jax_threefry_partitionable", bool, True,
          "Random bits are those of JAX's partitionable Threefry, its default.", choices=(True,)),
    _flag("jax_numpy_dtype_promotion", str, "standard", "'strict' forbids implicit promotion.",
          choices=("standard", "strict")),
    _flag("jax_numpy_rank_promotion", str, "allow", "What implicit rank promotion does.",
          choices=("allow", "warn", "raise")),
    _flag("jax_default_matmul_precision", str, None,
          "Accepted; products are always computed in full precision.",
          choices=_MATMUL, optional=True, semantic=False),
    _flag("jax_default_prng_impl", str, "threefry2x32", "The random bit generator.",
          choices=("threefry2x32",)),
    _flag("jax_num_cpu_devices", int, 1, "Number of logical CPU devices."),
    _flag("jax_platforms", str, None, "Accepted; the platform is the CPU.", optional=True,
          environment=("JAX_PLATFORMS",), semantic=False),
    _flag("jax_platform_name", str, "", "Accepted; the platform is the CPU.", semantic=False),
    _flag("jax_log_compiles", bool, False, "Log each compilation.", semantic=False),
    _flag("jax_explain_cache_misses", bool, False, "Log why a call was traced again.",
          semantic=False),
    _flag("jax_traceback_filtering", str, "auto", "Accepted; tracebacks are not filtered.",
          semantic=False),
    _flag("jax_transfer_guard", str, "allow", "Accepted; host and device memory are one.",
          semantic=False, optional=True),
    _flag("jax_compilation_cache_dir", str, None,
          "Folder of the disk cache ('' is off), in place of the environment's JATO_CACHE_DIR.",
          optional=True, semantic=False, environment=()),
    _flag("jax_persistent_cache_min_compile_time_secs", int, 0,
          "Accepted; every kernel is cached.", semantic=False),
    _flag("jax_include_full_tracebacks_in_locations", bool, False, "Accepted.", semantic=False),
)  # fmt: skip


# Variables that native code reads when it starts: a typing error must not be taken for "not set".
NATIVE_VARIABLES = {
    "JATO_NUM_THREADS": (r"[0-9]+", "a number of threads (0: as many as there are cores)"),
    "JATO_MEMORY_LIMIT": (r"[0-9]+(\.[0-9]+)?([KMGT]i?)?B?", "bytes, such as 4000000000 or 4G"),
    "JATO_CACHE_LIMIT": (r"[0-9]+", "bytes, such as 1000000000"),
}


def _check_environment() -> None:
    for variable, (pattern, expected) in NATIVE_VARIABLES.items():
        text = os.environ.get(variable)
        if text and not re.fullmatch(pattern, text, re.IGNORECASE):
            raise ValueError(f"environment variable {variable}: expected {expected}, got {text!r}")


class Config:
    """The values of the flags, as attributes.  The one instance is `config`."""

    def __init__(self) -> None:
        self.__dict__["_flags"] = {flag.name: flag for flag in FLAGS}
        self.__dict__["_listeners"] = {}
        _check_environment()
        for flag in FLAGS:
            self.__dict__[flag.name] = self._from_environment(flag)
        self.__dict__["_epochs"] = {self._semantics(): 0}  # of every configuration so far
        self.__dict__["_epoch"] = 0

    @staticmethod
    def _from_environment(flag: Flag) -> Any:
        for variable in flag.environment:
            text = os.environ.get(variable)
            if text is not None:
                try:
                    return flag.parse(text)
                except (ValueError, TypeError) as error:
                    raise ValueError(f"environment variable {variable}: {error}") from None
        return flag.default

    def __setattr__(self, name: str, value: Any) -> None:
        self.update(name, value)

    def __getattr__(self, name: str) -> Any:  # only for names that do not exist
        raise AttributeError(f"jato has no setting {name!r}. {self._suggestion(name)}")

    def _suggestion(self, name: str) -> str:
        bare = name.removeprefix("jax_")
        near = [n for n in self._flags if bare and (bare in n or n.removeprefix("jax_") in name)]
        return f"Did you mean {near[0]}?" if near else f"Known: {', '.join(sorted(self._flags))}."

    def update(self, name: str, value: Any) -> None:
        """Sets a flag.

        >>> config.update("jax_numpy_rank_promotion", "allow")

        AttributeError for an unknown name; TypeError or ValueError for a value of another kind.
        """
        flag = self._flags.get(name)
        if flag is None:
            raise AttributeError(
                f"config.update: there is no setting {name!r}. {self._suggestion(name)}"
            )
        value = flag.check(value)
        if value == self.__dict__[name]:
            return
        for listener in self._listeners.get(name, ()):  # may refuse by raising
            listener(value)
        self.__dict__[name] = value
        if flag.semantic:
            self.__dict__["_epoch"] = self._epochs.setdefault(self._semantics(), len(self._epochs))
            _native.set_config_epoch(self._epoch)

    def _semantics(self) -> tuple[Any, ...]:
        return tuple(self.__dict__[f.name] for f in FLAGS if f.semantic)

    def read(self, name: str) -> Any:
        """The value of a flag by name."""
        return getattr(self, name)

    @property
    def values(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self._flags}

    @property
    def epoch(self) -> int:
        """The number of the present values of the flags that affect what programs compute."""
        return int(self._epoch)

    def on_change(self, name: str, listener: Callable[[Any], None]) -> None:
        """Calls `listener(value)` now and before each change; it may refuse by raising."""
        self._listeners.setdefault(name, []).append(listener)
        listener(self.__dict__[name])

    @contextmanager
    def override(self, name: str, value: Any) -> Iterator[None]:
        """Sets a flag inside a `with` block (for the whole process)."""
        previous = getattr(self, name)
        self.update(name, value)
        try:
            yield
        finally:
            self.update(name, previous)


config = Config()
config.on_change("jax_enable_x64", dtypes.set_x64)


class ConfigContext:
    """A public context manager of one flag: `with enable_x64(): ...`, `with enable_x64(False):`."""

    def __init__(self, name: str, default: Any = True):
        self._name = name
        self._default = default
        self.__doc__ = f"Context manager that sets `{name}`: {config._flags[name].doc}"

    def __call__(self, new_val: Any = None) -> Any:
        return config.override(self._name, self._default if new_val is None else new_val)

    def __repr__(self) -> str:
        return f"<context manager of {self._name}>"


enable_x64 = ConfigContext("jax_enable_x64")
debug_nans = ConfigContext("jax_debug_nans")
debug_infs = ConfigContext("jax_debug_infs")
checking_leaks = ConfigContext("jax_check_tracer_leaks")
check_tracer_leaks = checking_leaks
debug_key_reuse = ConfigContext("jax_debug_key_reuse")
log_compiles = ConfigContext("jax_log_compiles")
explain_cache_misses = ConfigContext("jax_explain_cache_misses")
numpy_dtype_promotion = ConfigContext("jax_numpy_dtype_promotion", "standard")
numpy_rank_promotion = ConfigContext("jax_numpy_rank_promotion", "allow")
default_matmul_precision = ConfigContext("jax_default_matmul_precision", None)
transfer_guard = ConfigContext("jax_transfer_guard", "allow")
threefry_partitionable = ConfigContext("jax_threefry_partitionable")
enable_custom_prng = ConfigContext("jax_enable_custom_prng")
default_prng_impl = ConfigContext("jax_default_prng_impl", "threefry2x32")


def disable_jit(disable: bool = True) -> Any:
    """Context manager in which jit and control flow run as plain Python.

    >>> with disable_jit():
    ...     config.jax_disable_jit
    True
    """
    return config.override("jax_disable_jit", bool(disable))

