"""jato.custom_derivatives: functions with derivatives of the user's making."""

from jato.control.closure_convert import closure_convert as closure_convert
from jato.control.custom_jvp import custom_jvp as custom_jvp
from jato.control.custom_jvp import custom_jvp_call_p as custom_jvp_call_p
from jato.control.custom_rules import SymbolicZero as SymbolicZero
from jato.control.custom_vjp import (
    CustomVJPPrimal as CustomVJPPrimal,
    custom_gradient as custom_gradient,
    custom_vjp as custom_vjp,
    custom_vjp_call_p as custom_vjp_call_p,
    custom_vjp_primal_tree_values as custom_vjp_primal_tree_values,
)
from jato.control.linear_call import linear_call as linear_call
