"""The drop-in: after `install()`, `import jax` gives jato.

    import jato.compat
    jato.compat.install()
    import jax.numpy as jnp     # jato.numpy

names.toml lists which module stands for which; importer.py puts it into effect.
"""

from jato.compat.importer import install as install
from jato.compat.importer import module_names as module_names
from jato.compat.importer import uninstall as uninstall
