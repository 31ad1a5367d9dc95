"""jato.profiler: a record of every kernel that ran, for chrome://tracing and ui.perfetto.dev.

    with jato.profiler.trace("out"):
        step(state).block_until_ready()

writes out/jato.trace.json: one row for each thread, one bar for each kernel, library routine and
annotation, with the bytes it moved.
"""

from __future__ import annotations

import functools
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from jato import _native
from jato.base.errors import check

FILE_NAME = "jato.trace.json"
_CAPACITY = 1 << 20  # events


class _Recording:
    """The folder of the recording in progress, and its annotations."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.annotations: list[dict[str, Any]] = []
        self.lock = threading.Lock()


_recording = _Recording()


def start_trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> None:
    """Begins a recording; `stop_trace` writes it to `log_dir`/jato.trace.json.

    The other arguments are accepted.  RuntimeError if one is in progress.
    """
    del create_perfetto_link, create_perfetto_trace, profiler_options
    with _recording.lock:
        check(
            _recording.folder is None,
            RuntimeError,
            f"profiler.start_trace: a recording to {_recording.folder} is in progress. Call "
            "stop_trace first.",
        )
        _recording.folder = os.fspath(log_dir)
        _recording.annotations = []
    _native.profile_start(_CAPACITY)


def stop_trace() -> None:
    """Waits for what is queued, ends the recording and writes it.

    RuntimeError if none is in progress.
    """
    check(
        _recording.folder is not None,
        RuntimeError,
        "profiler.stop_trace: no recording is in progress. Call start_trace first.",
    )
    _native.synchronize()
    events = _native.profile_stop()
    with _recording.lock:
        folder, annotations = _recording.folder, _recording.annotations
        _recording.folder = None
    assert folder is not None
    rows = [_event(name, start, end, thread, {"bytes": size}) for name, start, end, thread, size in events]
    names = sorted({row["tid"] for row in rows})
    header = [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": t, "args": {"name": f"jato thread {t}"}}
        for t in names
    ]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, FILE_NAME), "w", encoding="utf-8") as file:
        json.dump({"traceEvents": header + annotations + rows, "displayTimeUnit": "ns"}, file)


@contextmanager
def trace(log_dir: str | os.PathLike[str], **options: Any) -> Iterator[None]:
    """Records what runs inside the `with` block; see `start_trace`.

    >>> import pathlib, tempfile, jato.numpy as jnp
    >>> folder = tempfile.mkdtemp()
    >>> with trace(folder):
    ...     _ = (jnp.ones(100) + 1).block_until_ready()
    >>> (pathlib.Path(folder) / "jato.trace.json").exists()
    True
    """
    start_trace(log_dir, **options)
    try:
        yield
    finally:
        stop_trace()


class TraceAnnotation:
    """A named bar in the recording for the time inside a `with` block; free when none is on."""

    def __init__(self, name: str, **metadata: Any):
        self.name = name
        self.metadata = metadata
        self._start = 0

    def __enter__(self) -> TraceAnnotation:
        self._start = time.perf_counter_ns()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if _recording.folder is None:
            return
        row = _event(
            self.name, self._start, time.perf_counter_ns(), threading.get_native_id(), self.metadata
        )
        with _recording.lock:
            _recording.annotations.append(row)


class StepTraceAnnotation(TraceAnnotation):
    """The annotation of one step of a training loop: StepTraceAnnotation("train", step_num=3)."""


def annotate_function(
    func: Callable[..., Any] | None = None, name: str | None = None, **metadata: Any
) -> Callable[..., Any]:
    """Decorator: calls of the function are annotated with its name."""
    if func is None:
        return functools.partial(annotate_function, name=name, **metadata)
    label = name or getattr(func, "__qualname__", repr(func))

    @functools.wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(label, **metadata):
            return func(*args, **kwargs)

    return annotated


def _event(name: str, start: int, end: int, thread: int, details: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name, "ph": "X", "pid": 1, "tid": thread, "ts": start / 1e3,
        "dur": (end - start) / 1e3, "args": {k: v for k, v in details.items() if v is not None},
    }  # fmt: skip
