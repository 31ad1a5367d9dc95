"""What every layer stands on.  Importing it first makes sure of the native module."""

from jato.base.native_build import require_current_module as _require_current_module

_require_current_module()
