"""jato.scipy.sparse: linear systems whose matrix is given by its product."""

from jato.scipy.sparse import linalg as linalg
