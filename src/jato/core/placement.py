"""Where an array lives: devices, and the protocol of placements.

A device is a queue of the native runtime; all share the host's memory.  An array's `placement`
is None for the default device, or an object with this protocol (parallel/ supplies the kinds):

    device_set     the devices that hold a part of it
    key            hashable; part of the signature of a call
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jato import _native


@dataclass(frozen=True)
class Device:
    """A logical CPU device: a queue of its own on the host's cores."""

    id: int
    platform: str = "cpu"
    process_index: int = 0
    device_kind: str = "cpu"

    @property
    def local_hardware_id(self) -> int:
        return self.id

    @property
    def client(self) -> Any:
        return None

    def memory_stats(self) -> dict[str, int]:
        """Bytes of the buffer pool, which all devices share."""
        return dict(_native.pool_stats())

    def __repr__(self) -> str:
        return f"CpuDevice(id={self.id})"

    def __str__(self) -> str:
        return f"CPU_{self.id}"


@dataclass(frozen=True)
class SingleDevice:
    """The placement of an array that was put on one device."""

    device: Device

    @property
    def device_set(self) -> frozenset[Device]:
        return frozenset({self.device})

    @property
    def key(self) -> Any:
        return ("device", self.device.id)

    def pieces(self, shape: tuple[int, ...]) -> list[tuple[Device, tuple[slice, ...]]]:
        """Which device holds which part of an array of this shape."""
        return [(self.device, (slice(None),) * len(shape))]


@dataclass(frozen=True)
class Shard:
    """The part of an array that one device holds: array[index] is data."""

    device: Device
    index: tuple[slice, ...]
    replica_id: int
    data: Any
