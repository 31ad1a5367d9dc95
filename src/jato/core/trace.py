"""The current interpreter, tracers, and the way a primitive reaches its interpreter.

A thread has one *current trace* (None: eager).  `Primitive.bind` hands the operation to it.  A
trace knows its parent, the interpreter that was current when it was made, and runs the
operations it emits there.  So nothing is searched per operation.

A tracer belongs to one trace.  For every other trace it is a constant.

Start reading at `Trace` and `set_trace`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from jato import _native
from jato.base import hooks
from jato.base.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)


class _ThreadState(threading.local):
    def __init__(self) -> None:
        self.trace: Trace | None = None
        # axis name -> size, for collectives under vmap/pmap
        self.axis_sizes: dict[Any, int] = {}
        # the place in the user's code that derivative rules work for; None: look at the stack
        self.frame: Any = None
        # names of the scopes around the code that runs ("encoder/attention")
        self.scope: str = ""


STATE = _ThreadState()


class Trace:
    """An interpreter of primitives.  Subclasses: staging, jvp, batching, partial evaluation."""

    __slots__ = ("__weakref__", "parent", "valid")

    def __init__(self, parent: Trace | None):
        self.parent = parent
        self.valid = True  # false once the transformed function has returned

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        raise NotImplementedError

    def describe(self) -> str:
        """What the user calls this trace, for messages ("jit of f", "vmap", ...)."""
        return type(self).__name__


def current_trace() -> Trace | None:
    return STATE.trace


@contextmanager
def set_trace(trace: Trace | None) -> Iterator[None]:
    """Makes `trace` the current interpreter of this thread."""
    previous = STATE.trace
    STATE.trace = trace
    _native.set_trace_active(trace is not None)
    try:
        yield
    finally:
        STATE.trace = previous
        _native.set_trace_active(previous is not None)


def is_active(trace: Trace) -> bool:
    """Is `trace` the current trace or one of its ancestors?"""
    t = STATE.trace
    while t is not None:
        if t is trace:
            return True
        t = t.parent
    return False


def check_not_leaked(tracer: Tracer) -> None:
    if tracer.owner.valid and not is_active(tracer.owner):
        raise UnexpectedTracerError(
            f"a tracer of type {tracer.aval} made by {tracer.owner.describe()} was used outside of "
            "it, in a callback, another thread or an eager computation. Pass the value as an "
            f"argument instead of capturing it. {tracer.origin()}"
        )
    if not tracer.owner.valid:
        raise UnexpectedTracerError(
            f"a tracer of type {tracer.aval} made by {tracer.owner.describe()} was used after "
            "that had finished. It was probably stored in a global, an attribute or a closure; "
            f"return the value instead. {tracer.origin()}"
        )


class Tracer:
    """A stand-in for an array while a function is transformed.

    Operators and methods come from the table in `hooks.array_operator`, the same one the arrays
    use; they are set as attributes of this class by `install_operators`.
    """

    __slots__ = ("__weakref__", "aval", "owner")
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, trace: Trace, aval: Any):
        self.owner = trace
        self.aval = aval

    # -- what is known of it

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def itemsize(self) -> int:
        return self.aval.itemsize

    @property
    def nbytes(self) -> int:
        return self.aval.nbytes

    @property
    def weak_type(self) -> bool:
        return self.aval.weak_type

    def origin(self) -> str:
        """Where the value came from, in the user's words; "" if not recorded."""
        return ""

    def concrete(self) -> Any:
        """The number behind the tracer where the trace knows it (eager grad, vmap), else None."""
        return None

    # -- conversions that need numbers

    def _conversion(self, error: type[Exception], what: str, hint: str) -> Exception:
        origin = self.origin()
        return error(
            f"{what} a traced value of type {self.aval} ({self.owner.describe()}). {hint}"
            + (f" {origin}" if origin else "")
        )

    def __bool__(self) -> bool:
        value = self.concrete()
        if value is not None:
            return bool(value)
        raise self._conversion(
            TracerBoolConversionError,
            "the truth value was asked of",
            "Use jato.numpy.where or lax.cond, or mark the argument static.",
        )

    def _number(self, kind: type, error: type[Exception] = ConcretizationTypeError) -> Any:
        value = self.concrete()
        if value is not None:
            return kind(value)
        raise self._conversion(
            error,
            f"{kind.__name__}() was called on",
            "Mark the argument static, or keep the computation in jato.numpy.",
        )

    def __int__(self) -> int:
        return self._number(int)

    def __float__(self) -> float:
        return self._number(float)

    def __complex__(self) -> complex:
        return self._number(complex)

    def __index__(self) -> int:
        value = self.concrete()
        if value is not None:
            return value.__index__()
        raise self._conversion(
            TracerIntegerConversionError,
            "a Python integer was asked of",
            "Index a jato array instead of a list, or mark the argument static.",
        )

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        value = self.concrete()
        if value is not None:
            return value.__array__(*args, **kwargs)
        raise self._conversion(
            TracerArrayConversionError,
            "numpy.asarray() was called on",
            "Use the functions of jato.numpy inside a transformed function.",
        )

    def item(self, *args: int) -> Any:
        value = self.concrete()
        if value is not None:
            return value.item(*args)
        raise self._conversion(
            ConcretizationTypeError, ".item() was called on", "Return the array instead."
        )

    def tolist(self) -> Any:
        value = self.concrete()
        if value is not None:
            return value.tolist()
        raise self._conversion(
            ConcretizationTypeError, ".tolist() was called on", "Return the array instead."
        )

    def block_until_ready(self) -> Tracer:
        return self

    # values are immutable: a copy is another reference

    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self

    def __reduce__(self) -> Any:
        raise self._conversion(
            ConcretizationTypeError, "pickle was asked for", "Pickle the results, not what is traced."
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(
            f"arrays are immutable, traced ones too ({self.owner.describe()}): in place of "
            "x[index] = value write x = x.at[index].set(value)."
        )

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object")
        return self.aval.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.aval.shape:
            raise TypeError("iteration over a 0-d array")
        getitem = hooks.array_operator.get()["getitem"]
        return (getitem(self, i) for i in range(self.aval.shape[0]))

    def __repr__(self) -> str:
        return f"Tracer<{self.aval}> of {self.owner.describe()}"


# what an operator of a tracer takes; sequences are named in the error of the function
_OPERANDS = (
    Tracer, _native.ArrayImpl, float, int, complex, np.ndarray, np.generic, list, tuple,
)  # fmt: skip


def install_operators(operators: dict[str, Any], methods: dict[str, Any]) -> None:
    """Gives Tracer the operators ("add" -> __add__, __radd__) and methods of arrays."""

    def forward(function: Any) -> Any:
        def method(self: Any, other: Any) -> Any:
            if isinstance(other, _OPERANDS) or hasattr(other, "__jax_array__"):
                return function(self, other)
            return NotImplemented  # the other operand's reflected method may know what to do

        return method

    def reflected(function: Any) -> Any:
        def method(self: Any, other: Any) -> Any:
            if isinstance(other, _OPERANDS) or hasattr(other, "__jax_array__"):
                return function(other, self)
            return NotImplemented

        return method

    binary = (
        "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift divmod"
    ).split()
    for name in binary:
        if name in operators:
            setattr(Tracer, f"__{name}__", forward(operators[name]))
            setattr(Tracer, f"__r{name}__", reflected(operators[name]))
    for name in "eq ne lt le gt ge".split():
        if name in operators:
            setattr(Tracer, f"__{name}__", forward(operators[name]))
    if "getitem" in operators:
        getitem = operators["getitem"]
        setattr(Tracer, "__getitem__", lambda self, index: getitem(self, index))  # noqa: B010
    for name in "neg pos abs invert".split():
        if name in operators:
            function = operators[name]
            setattr(Tracer, f"__{name}__", lambda self, function=function: function(self))
    for name, method in methods.items():
        setattr(Tracer, name, method)
