"""FILE:FUNCTION: a user's function, and its inputs.

The inputs come from the first of
    --shape 1024x1024,5x5     one float32 array per argument, normal random numbers, seed 0;
                              `scalar` for a number
    FUNCTION_inputs()         a function of this name in the file, which returns the tuple of them
"""

from __future__ import annotations

import importlib.util
import os
import sys
from types import ModuleType
from typing import Any

import numpy as np

from jato.tools.bench.programs import Program


class TargetError(ValueError):
    """What is wrong with FILE:FUNCTION or --shape."""


def load_target(target: str, shapes: str | None) -> Program:
    """The program that `target` names.

    TargetError says which part is missing and how to give it.
    """
    path, separator, name = target.rpartition(":")
    if not separator or not path or not name:
        raise TargetError(
            f"bench: expected FILE:FUNCTION, `blur` or `dense`, got {target!r} "
            "(for example my_model.py:forward)"
        )
    module = load_file(path)
    function = getattr(module, name, None)
    if not callable(function):
        known = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise TargetError(
            f"bench: {path} has no function {name!r}; it has {', '.join(sorted(known)) or 'none'}"
        )
    return Program(name, function, find_inputs(module, path, name, shapes))


def load_file(path: str) -> ModuleType:
    """Runs a Python file as a module; its folder is the first place it imports from."""
    if not os.path.isfile(path):
        raise TargetError(f"bench: there is no file {path!r}")
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TargetError(f"bench: {path!r} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    return module


def find_inputs(module: ModuleType, path: str, name: str, shapes: str | None) -> tuple[Any, ...]:
    """The tuple of inputs, as the head of this file says."""
    if shapes is not None:
        return arrays_of(shapes)
    maker = getattr(module, f"{name}_inputs", None)
    if maker is None:
        raise TargetError(
            f"bench: what should {name} be called with? Give --shape, for example "
            f"--shape 1024x1024,5x5, or define {name}_inputs() in {path}; it returns the tuple of "
            "arguments."
        )
    inputs = maker()
    if not isinstance(inputs, tuple):
        raise TargetError(
            f"bench: {name}_inputs() must return a tuple of arguments, got {type(inputs).__name__}"
        )
    return inputs


def arrays_of(shapes: str) -> tuple[Any, ...]:
    """One random float32 array for each shape in a list like '1024x1024,5x5,scalar'.

    >>> [x.shape for x in arrays_of("3x4,2,scalar")]
    [(3, 4), (2,), ()]
    """
    random = np.random.default_rng(0)
    return tuple(
        np.asarray(random.standard_normal(shape_of(text)), np.float32) for text in shapes.split(",")
    )


def shape_of(text: str) -> tuple[int, ...]:
    """
    >>> shape_of("1024x5")
    (1024, 5)
    """
    if text.strip() == "scalar":
        return ()
    try:
        shape = tuple(int(part) for part in text.strip().split("x"))
    except ValueError:
        shape = (-1,)
    if min(shape) < 0:
        raise TargetError(
            f"bench: --shape expects shapes like 1024x1024,5x5 or scalar, got {text!r}"
        )
    return shape
