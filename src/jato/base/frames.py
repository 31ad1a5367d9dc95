"""Where in the user's code something happened, for messages and profiles.

Taking a frame must be cheap, since tracing does it for every operation: only the code object and
the instruction offset are kept; the line is found when somebody asks.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from types import CodeType, FrameType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_internal: dict[CodeType, bool] = {}


@dataclass(frozen=True, slots=True)
class Frame:
    """A place in the user's code."""

    code: CodeType
    offset: int
    scope: str = ""  # names of the scopes around it

    def within(self, scope: str) -> Frame:
        """The same place in a scope; a place keeps the scope it has."""
        return self if self.scope else Frame(self.code, self.offset, scope)

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        return self.code.co_name

    @property
    def line(self) -> int:
        index = self.offset // 2
        for i, (_, _, line) in enumerate(_per_instruction(self.code)):
            if i == index and line is not None:
                return line
        return self.code.co_firstlineno

    def __str__(self) -> str:
        scope = f" in {self.scope}" if self.scope else ""
        return f"{self.file}:{self.line} ({self.function}){scope}"


def _per_instruction(code: CodeType) -> list[tuple[int, int, int | None]]:
    rows: list[tuple[int, int, int | None]] = []
    for start, end, line in code.co_lines():
        rows.extend((o, o + 2, line) for o in range(start, end, 2))
    return rows


def _is_internal(code: CodeType) -> bool:
    known = _internal.get(code)
    if known is None:
        name = code.co_filename
        known = _internal[code] = name.startswith((_PACKAGE, "<frozen"))
    return known


def user_frame() -> Frame | None:
    """The innermost frame outside jato, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not _is_internal(frame.f_code):
            return Frame(frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return None
