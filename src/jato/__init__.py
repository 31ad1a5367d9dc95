"""jato: NumPy-style Python, traced, fused and compiled to native code.

    import jato
    import jato.numpy as jnp

    @jato.jit
    def f(x):
        return jnp.tanh(x) * 2 + 1

The names here are JAX's.  This file only gathers public names, fills the two hooks of
base/hooks.py, and tells the native runtime about the classes and tables it needs.  The modules of
LATER are imported when first used, which keeps `import jato` quick.
"""

import importlib as _importlib
from types import ModuleType as _ModuleType

from jato import _native
from jato.base import errors as errors  # noqa: PLC0414
from jato.base import hooks as _hooks
from jato.base.config import (
    check_tracer_leaks as check_tracer_leaks,
    checking_leaks as checking_leaks,
    config as config,
    debug_infs as debug_infs,
    debug_key_reuse as debug_key_reuse,
    debug_nans as debug_nans,
    default_matmul_precision as default_matmul_precision,
    default_prng_impl as default_prng_impl,
    disable_jit as disable_jit,
    enable_custom_prng as enable_custom_prng,
    enable_x64 as enable_x64,
    explain_cache_misses as explain_cache_misses,
    log_compiles as log_compiles,
    numpy_dtype_promotion as numpy_dtype_promotion,
    numpy_rank_promotion as numpy_rank_promotion,
    threefry_partitionable as threefry_partitionable,
    transfer_guard as transfer_guard,
)
from jato.base.dtypes import float0 as float0
from jato.base.version import __version__ as __version__
from jato.control.checkpoint import checkpoint as checkpoint
from jato.control.checkpoint import checkpoint_policies as checkpoint_policies
from jato.control.checkpoint import remat as remat
from jato.control.closure_convert import closure_convert as closure_convert
from jato.control.custom_jvp import custom_jvp as custom_jvp
from jato.control.custom_vjp import custom_gradient as custom_gradient
from jato.control.custom_vjp import custom_vjp as custom_vjp
from jato.core.array import Array as Array
from jato.core.compile_time import ensure_compile_time_eval as ensure_compile_time_eval
from jato.core.named_scope import named_call as named_call
from jato.core.named_scope import named_scope as named_scope
from jato.core.placement import Device as Device
from jato.core.placement import Shard as Shard
from jato.core.trace import Tracer as _Tracer
from jato.jit.api import (
    clear_caches as clear_caches,
    explain_retrace as explain_retrace,
    jit as jit,
)
from jato.jit.forward_and_backward import fwd_and_bwd as fwd_and_bwd
from jato.jit.eager import eval_primitive as _eval_primitive
from jato.jit.pipeline import unhashable_static as _unhashable_static
from jato.jit.threads import num_threads as num_threads
from jato.jit.threads import set_num_threads as set_num_threads
from jato import numpy as _numpy
from jato.jit.waiting import block_until_ready as block_until_ready
from jato.jit.waiting import effects_barrier as effects_barrier
from jato.ops.callback import pure_callback as pure_callback
from jato import ad_checkpoint as ad_checkpoint
from jato import custom_batching as custom_batching
from jato import custom_derivatives as custom_derivatives
from jato import debug as debug
from jato import profiler as profiler
from jato import dlpack as dlpack
from jato import dtypes as dtypes
from jato import flatten_util as flatten_util
from jato import lax as lax
from jato import numpy as numpy
from jato import ops as ops
from jato import stages as stages
from jato import tree as tree
from jato import tree_util as tree_util
from jato import typing as typing
from jato.numpy.methods import OPERATORS as _OPERATORS
from jato.numpy.methods import install as _install_methods
from jato.parallel.devices import (
    default_backend as default_backend,
    default_device as default_device,
    device_count as device_count,
    device_get as device_get,
    device_put as device_put,
    copy_to_host_async as copy_to_host_async,
    devices as devices,
    local_device_count as local_device_count,
    local_devices as local_devices,
    process_count as process_count,
    process_index as process_index,
    process_indices as process_indices,
    host_count as host_count,
    host_id as host_id,
    host_ids as host_ids,
    watch_config as _watch_config,
)
from jato.parallel.pmap import pmap as pmap
from jato.transforms.abstract_eval import (
    ShapeDtypeStruct as ShapeDtypeStruct,
    eval_shape as eval_shape,
    make_jaxpr as make_jaxpr,
    typeof as typeof,
)
from jato.transforms.grad import (
    grad as grad,
    hessian as hessian,
    jacfwd as jacfwd,
    jacrev as jacrev,
    value_and_grad as value_and_grad,
)
from jato.transforms.jvp import jvp as jvp
from jato.transforms.linearize import linearize as linearize
from jato.transforms.linearize import vjp as vjp
from jato.transforms.transpose import linear_transpose as linear_transpose
from jato.transforms.vmap import vmap as vmap

jacobian = jacrev

_hooks.eval_primitive.fill(_eval_primitive)
_hooks.array_operator.fill(_OPERATORS)
_native.set_tracer_type(_Tracer)
_native.set_static_error(_unhashable_static)
_native.set_cold_errors(errors.runtime_failure)
_install_methods(_numpy)
_watch_config()

LATER = ("image", "nn", "random", "scipy")


def __getattr__(name: str) -> _ModuleType:
    if name in LATER:
        return _importlib.import_module(f"jato.{name}")
    raise AttributeError(f"module 'jato' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *LATER})
