"""jato.ad_checkpoint: names and policies of checkpoint, as in jax.ad_checkpoint."""

from jato.control.checkpoint import (
    Offloadable as Offloadable,
    Recompute as Recompute,
    Saveable as Saveable,
    checkpoint as checkpoint,
    checkpoint_name as checkpoint_name,
    checkpoint_policies as checkpoint_policies,
    name_p as name_p,
    print_saved_residuals as print_saved_residuals,
    remat as remat,
)
