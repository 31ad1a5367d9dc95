"""Bounded caches, and the one list of them that `clear_caches()` empties.

`LruCache` maps keys to values.  `WeakLruCache` remembers what was derived from an object (a Graph, a function)
for as long as that object lives.  Start reading at `weakly_cached`.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

_clearers: list[Callable[[], None]] = []
# caches of functions come and go with them
_caches: weakref.WeakSet[Any] = weakref.WeakSet()
_FunctionT = TypeVar("_FunctionT", bound=Callable[..., Any])
MISSING = object()


def register(clear: Callable[[], None]) -> None:
    """Adds a function that empties a cache of the process to those that `clear_all` calls."""
    _clearers.append(clear)


def clear_all() -> None:
    """Empties every in-memory cache of jato."""
    for cache in list(_caches):
        cache.clear()
    for clear in _clearers:
        clear()


def _renew_locks() -> None:
    """In a child of fork: another thread of the parent may have held a lock."""
    for cache in list(_caches):
        cache._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


class LruCache:
    """A thread-safe map that forgets what was used least recently."""

    def __init__(self, capacity: int = 4096):
        self.capacity = capacity
        self.hits = 0
        self.misses = 0
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()
        _caches.add(self)

    def get(self, key: Hashable) -> Any:
        """The value, or MISSING."""
        with self._lock:
            try:
                value = self._entries[key]
            except KeyError:
                self.misses += 1
                return MISSING
            self._entries.move_to_end(key)
            self.hits += 1
            return value

    def put(self, key: Hashable, value: Any) -> None:
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            if len(self._entries) > self.capacity:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)


class WeakLruCache:
    """anchor -> {key -> value}: lives as long as the anchor, a bounded number of keys for each.

    A value must not refer to its anchor, or neither is ever freed.
    """

    def __init__(self, capacity: int = 64):
        self.capacity = capacity
        self._tables: weakref.WeakKeyDictionary[Any, OrderedDict[Hashable, Any]] = (
            weakref.WeakKeyDictionary()
        )
        self._lock = threading.Lock()
        _caches.add(self)

    def get(self, anchor: Any, key: Hashable) -> Any:
        """The value, or MISSING."""
        with self._lock:
            table = self._tables.get(anchor)
            if table is None or key not in table:
                return MISSING
            table.move_to_end(key)
            return table[key]

    def put(self, anchor: Any, key: Hashable, value: Any) -> None:
        with self._lock:
            table = self._tables.setdefault(anchor, OrderedDict())
            table[key] = value
            if len(table) > self.capacity:
                table.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._tables.clear()

    def __len__(self) -> int:
        return len(self._tables)


def weakly_cached(capacity: int = 64) -> Callable[[_FunctionT], _FunctionT]:
    """Decorator: remembers results by the first argument (weakly, by identity) and the others,
    which must be hashable and positional."""

    def decorate(function: _FunctionT) -> _FunctionT:
        cache = WeakLruCache(capacity)

        @functools.wraps(function)
        def cached(anchor: Any, *key: Hashable) -> Any:
            value = cache.get(anchor, key)
            if value is MISSING:
                value = function(anchor, *key)  # outside the lock: it may trace
                cache.put(anchor, key, value)
            return value

        return cached  # type: ignore[return-value]

    return decorate
