"""jato.scipy.integrate: the trapezoidal rule, that of jato.numpy."""

from jato.numpy.differences import trapezoid as trapezoid
