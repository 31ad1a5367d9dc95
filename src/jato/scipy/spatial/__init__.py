"""jato.scipy.spatial: rotations."""

from jato.scipy.spatial import transform as transform
