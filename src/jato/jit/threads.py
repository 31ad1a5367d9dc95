"""The number of threads that compiled code uses."""

from __future__ import annotations

from types import TracebackType

from jato import _native


def num_threads() -> int:
    """How many threads compiled code may use in this thread's calls."""
    return int(_native.num_threads())


class set_num_threads:
    """Sets the number of threads, for the process or for a `with` block.

    count: at least 1; 0 means the default (JATO_NUM_THREADS, or the cores this process may use).
    As a statement it holds for the whole process; `with set_num_threads(1): ...` holds inside the
    block, for calls of this thread.

    >>> import jato
    >>> with jato.set_num_threads(1):
    ...     jato.num_threads()
    1
    """

    def __init__(self, count: int):
        self._count = count if count else int(_native.default_num_threads())
        self._previous = num_threads()
        _native.set_num_threads(count)

    def __enter__(self) -> set_num_threads:
        _native.set_num_threads(self._previous)
        _native.push_num_threads(self._count)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _native.pop_num_threads()
