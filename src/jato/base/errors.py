"""Every exception class of jato, and the two ways to raise.

`check` is for a user's mistake, `invariant` for a bug of ours; the classes never mix.  The
docstring of a class is its help page.  Names that exist in JAX keep their names.
"""

from __future__ import annotations

from typing import NoReturn


class JatoError(Exception):
    """Base of the errors that only jato raises."""


class InternalError(JatoError):
    """A bug in jato, not in the user's program.  Please report it with the message."""


class MissingRule(JatoError, NotImplementedError):
    """A primitive lacks the rule that a transformation needs."""

    def __init__(self, primitive: str, rule: str, hint: str = ""):
        self.primitive = primitive
        self.rule = rule
        super().__init__(
            f"primitive '{primitive}' has no '{rule}' rule." + (f" {hint}" if hint else "")
        )


class ConcretizationTypeError(TypeError):
    """A traced value was used where a concrete Python value is needed.

    Inside `jit`, `vmap` or `grad` a function runs on tracers: stand-ins with a shape and a dtype
    but no numbers.  Code that needs a number (as a shape, an index bound, a format field) cannot
    have one.  Mark the argument static (`static_argnums`), or compute the value with NumPy
    outside the transformed function.
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value was used in an `if`, `while`, `and`, `or` or `assert`.

    Use `jax.numpy.where` or `lax.cond` to choose between values, `lax.while_loop` to iterate,
    or mark the argument the value depends on as static.
    """


class TracerArrayConversionError(TypeError):
    """A traced value was passed to a NumPy function.

    NumPy works on numbers, which a tracer does not have: use the function of `jato.numpy`.
    """


class TracerIntegerConversionError(TypeError):
    """A traced value was used as a Python integer, for example as an index of a list.

    Index an array (`jato.numpy.asarray(items)[i]`) or mark the argument static.
    """


class UnexpectedTracerError(Exception):
    """A tracer outlived the function it was made for.

    It was stored in a global, an attribute or a closure while the function was being traced,
    and used later.  Return the value from the function instead.
    """


class NonConcreteBooleanIndexError(IndexError):
    """A boolean mask that is traced was used as an index; the result's shape would depend on it.

    Use `jato.numpy.where(mask, x, fill)` or `nonzero(..., size=n)`.
    """


class ShapeMismatchError(ValueError, TypeError):
    """Shapes that do not fit together.

    Sizes of two axes, counted from the last one, must be equal or 1 to be broadcast.  It is a
    ValueError, as in NumPy, and a TypeError, as in JAX.
    """


class KeyReuseError(RuntimeError):
    """A random key was used twice."""


class OutOfMemoryError(MemoryError):
    """An array did not fit into memory, or into the limit set with `JATO_MEMORY_LIMIT`."""


class JaxRuntimeError(RuntimeError):
    """A compiled program could not run to its end; `Ctrl-C` cancels programs, for example."""


def runtime_failure(kind: str, message: str) -> Exception:
    """The exception for a failure of the native runtime.

    kind: "out_of_memory", "value", "cancelled" or "runtime".
    """
    if kind == "out_of_memory":
        return OutOfMemoryError(message)
    if kind == "value":
        return ValueError(message)
    if kind == "cancelled":
        return JaxRuntimeError(f"{message}: it was interrupted before it had a result")
    return JaxRuntimeError(message)


def invariant(condition: object, message: str) -> None:
    """Raises InternalError when something that jato itself guarantees does not hold."""
    if not condition:
        raise InternalError(f"{message} (this is a bug in jato)")


def check(condition: object, error: type[Exception], message: str) -> None:
    """Raises `error(message)` for a user's mistake."""
    if not condition:
        raise error(message)


def fail(error: type[Exception], function: str, problem: str, hint: str = "") -> NoReturn:
    """Raises in the house form: `function: problem. Try hint`."""
    raise error(f"{function}: {problem}" + (f" {hint}" if hint else ""))


def require_unsharded(function: str, sharding: object, argument: str = "out_sharding") -> None:
    """NotImplementedError for an argument that spreads an array over devices."""
    if sharding is not None:
        fail(
            NotImplementedError,
            function,
            f"argument '{argument}': expected None, as an array lies on one device, got {sharding!r}.",
            "Try pmap to spread work over devices.",
        )
