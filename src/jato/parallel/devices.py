"""Logical devices of the CPU, their number, and putting arrays on them.

`jato.config.update("jax_num_cpu_devices", 8)` or `JATO_NUM_CPU_DEVICES=8` sets the number, at any
time.  A device is a queue of work; all devices share the memory and the cores of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from jato import _native
from jato.base.config import config
from jato.base.errors import check
from jato.base.pytree import tree_map
from jato.core.array import ArrayImpl, from_host, from_number
from jato.core.placement import Device, SingleDevice
from jato.core.trace import Tracer


def set_num_devices(count: int) -> None:
    """Called when `jax_num_cpu_devices` changes."""
    if count < 1:
        raise ValueError(f"config.update: jax_num_cpu_devices must be at least 1, got {count}")
    _native.set_num_devices(count)


def watch_config() -> None:
    """Makes the setting take effect; called once by the package."""
    config.on_change("jax_num_cpu_devices", set_num_devices)


def devices(backend: str | None = None) -> list[Device]:
    """All logical devices.

    >>> devices()[0]
    CpuDevice(id=0)

    RuntimeError for a backend other than "cpu".
    """
    if backend not in (None, "cpu"):
        raise RuntimeError(f"devices: unknown backend {backend!r}; jato has the backend 'cpu'")
    return [Device(i) for i in range(_native.num_devices())]


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of this process: all of them."""
    del process_index, host_id
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    """How many logical devices there are."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """How many devices this process has: all of them."""
    return len(devices(backend))


def process_index(backend: str | None = None) -> int:
    """The number of this process among all: 0."""
    del backend
    return 0


def process_count(backend: str | None = None) -> int:
    """How many processes compute together: 1."""
    del backend
    return 1


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes: [0]."""
    return list(range(process_count(backend)))


@contextmanager
def default_device(new_val: Device | str | None) -> Iterator[None]:
    """Context manager that says where arrays are made: on the first device, as always.

    NotImplementedError for another device; `device_put` moves arrays.

    >>> with default_device(devices("cpu")[0]):
    ...     pass
    """
    check(
        new_val is None or new_val == "cpu" or new_val == Device(0),
        NotImplementedError,
        f"default_device: expected None, 'cpu' or {Device(0)}, got {new_val!r}. Try device_put.",
    )
    yield


# names of before there were several processes on a host
host_id, host_count, host_ids = process_index, process_count, process_indices


def copy_to_host_async(x: Any) -> Any:
    """`x`, a pytree, whose arrays are ready for the host as soon as they are computed.

    Host and devices share their memory, so there is nothing to start.

    >>> copy_to_host_async({"a": 1})
    {'a': 1}
    """
    return x


def default_backend() -> str:
    """The name of the platform."""
    return "cpu"


def device_put(x: Any, device: Any = None, **options: Any) -> Any:
    """`x`, a tree of arrays and numbers, as arrays of jato on a device.

    NumPy arrays are copied: later changes of them are not seen.  device: a Device, or None for
    the default one.  TypeError for leaves that are no arrays and for a device that is none.
    """
    del options
    check(
        device is None or isinstance(device, (Device, SingleDevice)),
        TypeError,
        f"device_put: argument 'device' must be a device of jato.devices(), got {device!r:.60}",
    )

    def put(leaf: Any) -> Any:
        if isinstance(leaf, (Tracer, ArrayImpl)):
            return leaf
        if isinstance(leaf, (bool, int, float, complex)):
            return from_number(leaf)
        if isinstance(leaf, (np.ndarray, np.generic)):
            return from_host(leaf)
        raise TypeError(f"device_put: expected arrays or numbers, got {type(leaf).__name__}")

    placed = tree_map(put, x)
    if isinstance(device, Device) and device.id >= _native.num_devices():
        raise ValueError(
            f"device_put: {device} does not exist; there are {_native.num_devices()} devices"
        )
    return placed


def device_get(x: Any) -> Any:
    """A tree of arrays as a tree of NumPy arrays."""

    def get(leaf: Any) -> Any:
        return np.asarray(leaf) if isinstance(leaf, (ArrayImpl, Tracer)) else leaf

    return tree_map(get, x)


def pick_devices(given: Sequence[Device] | None) -> list[Device]:
    """The devices to use: those given (checked), or all."""
    if given is None:
        return devices()
    known = devices()
    for d in given:
        if d not in known:
            raise ValueError(f"pmap: {d} is not one of the {len(known)} devices of this process")
    if not given:
        raise ValueError("pmap: devices must not be empty")
    return list(given)


__all__ = [
    "Device", "SingleDevice", "default_backend", "device_count", "device_get", "device_put", "devices",
    "local_device_count", "local_devices", "process_count", "process_index",
]  # fmt: skip
