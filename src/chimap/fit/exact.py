"""What ``features="exact"`` takes: the settings that a machine which keeps every row supports."""

from __future__ import annotations

from chimap._errors import InputError
from chimap._messages import Message, Setting
from chimap.losses import Loss
from chimap.recipe import Recipe
from chimap.recipe.sizes import has_form_on_device
from chimap.solvers.kernel_matrix import has_exact_machine


def check_exact(recipe: Recipe, loss: str | Loss) -> None:
    """Raise ValueError for settings that machines which keep every row do not support."""
    refused = {
        "n_principal": recipe.n_principal is not None,
        "loss": not has_exact_machine(loss),
        "precision": recipe.is_rounded,
    }
    for name, is_refused in refused.items():
        if is_refused:
            raise InputError(
                Message(
                    "{features='exact'} solves {loss='square'}, {loss='squared_hinge'}, {loss='poisson'} or "
                    "{loss='quantile'} on the kernel matrix, and does not support {}. Leave that out, or use "
                    "{features='landmarks'}.",
                    Setting(name, getattr(recipe, name)),
                )
            )
    if not has_form_on_device(recipe):
        raise InputError(
            Message(
                "{features='exact'} on {device=}: kernel {} has no map, and its values are computed on this "
                "machine only. Use {device='cpu'}, or {features='landmarks'}.",
                recipe.device,
                ", ".join(repr(k.name) for k in recipe.exact_kernels if k.inner is None),
            )
        )
