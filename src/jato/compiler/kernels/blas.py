"""BLAS and LAPACK for the native runtime: function pointers out of SciPy, handed over when first needed.

`scipy.linalg.cython_blas` publishes the addresses of a Fortran BLAS as capsules.  SciPy's OpenBLAS
also has `openblas_set_num_threads_local`, with which the runtime keeps BLAS on one thread while it
splits the work over its own; it is found in the library that the capsules' functions live in.
"""

from __future__ import annotations

import ctypes
import functools
import re
from typing import Any

from jato import _native
from jato.base.lazy import LazyModule

cython_blas: Any = LazyModule("scipy.linalg.cython_blas")
cython_lapack: Any = LazyModule("scipy.linalg.cython_lapack")

_ROUTINES = ("sgemm", "dgemm", "cgemm", "zgemm", "sgemv", "dgemv", "cgemv", "zgemv")
_BLAS_OF_LAPACK = tuple(t + name for name in ("trsm", "trsv") for t in "sdcz")
_LAPACK = (
    *(t + name for name in ("potrf", "getrf", "geqrf", "gesdd", "geev") for t in "sdcz"),
    *(t + name for name in ("orgqr", "syevd") for t in "sd"),
    *(t + name for name in ("ungqr", "heevd") for t in "cz"),
)
# routines of the native library that call LAPACK
LAPACK_USERS = frozenset(
    (
        "cholesky", "lu", "lu_solve", "triangular_solve", "qr", "qr_r", "geqrf", "householder", "svd",
        "singular_values", "eigh", "eigvalsh", "eigenvalues", "eig_left", "eig_right", "eig",
    )
)  # fmt: skip
_LOCAL_THREADS = ("scipy_openblas_set_num_threads_local", "openblas_set_num_threads_local")


@functools.lru_cache(maxsize=1)
def load() -> None:
    """Gives the runtime its BLAS; later calls do nothing."""
    for name in _ROUTINES:
        _native.set_library_symbol(name, _capsule_address(cython_blas.__pyx_capi__[name]))
    control = _thread_control()
    if control:
        _native.set_library_symbol("openblas_set_num_threads_local", control)


@functools.lru_cache(maxsize=1)
def load_lapack() -> None:
    """Gives the runtime its LAPACK, and BLAS with it; later calls do nothing."""
    load()
    for module, names in ((cython_blas, _BLAS_OF_LAPACK), (cython_lapack, _LAPACK)):
        for name in names:
            _native.set_library_symbol(name, _capsule_address(module.__pyx_capi__[name]))


def _capsule_address(capsule: Any) -> int:
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return int(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))


def _thread_control() -> int:
    """Address of OpenBLAS's per-thread limit in the copy that SciPy has loaded; 0 without."""
    for path in _loaded_libraries():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for name in _LOCAL_THREADS:
            function = getattr(library, name, None)
            if function is not None:
                return int(ctypes.cast(function, ctypes.c_void_p).value or 0)
    return 0


def _loaded_libraries() -> list[str]:
    try:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            text = maps.read()
    except OSError:
        return []
    found = dict.fromkeys(re.findall(r"(/\S*openblas\S*\.so\S*)", text))
    return sorted(found, key=lambda p: "scipy" not in p)
