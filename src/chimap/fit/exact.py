"""What ``features="exact"`` takes: the settings that a machine which keeps every row supports."""

from __future__ import annotations

from typing import Any

from chimap._errors import InputError
from chimap._messages import Message, Setting
from chimap.backends import on_host
from chimap.features.base import FeatureSettings
from chimap.features.exact import has_map
from chimap.losses import Loss
from chimap.recipe import Recipe, is_auto
from chimap.solvers.kernel_matrix import has_exact_machine


def kernels_of_blocks(recipe: Recipe) -> list[FeatureSettings]:
    """Return the settings of the features of each block of columns."""
    gamma = "mean" if is_auto(recipe.gamma) else recipe.gamma
    kernels: Any = recipe.kernel if isinstance(recipe.kernel, list | tuple) else [recipe.kernel]
    return [FeatureSettings(kernel, gamma, n_terms=recipe.n_terms, map=recipe.map) for kernel in kernels]


def has_form_on_device(recipe: Recipe) -> bool:
    """Return whether the device can compute the values of the kernels: the host can of any."""
    return on_host(recipe.device) or all(has_map(block.exact) for block in kernels_of_blocks(recipe))


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
                    "{features='exact'} solves {loss='square'} or {loss='squared_hinge'} on the kernel matrix, and "
                    "does not support {}. Leave that out, or use {features='landmarks'}.",
                    Setting(name, getattr(recipe, name)),
                )
            )
    if not has_form_on_device(recipe):
        raise InputError(
            Message(
                "{features='exact'} on {device=}: kernel {} has no map, and its values are computed on this "
                "machine only. Use {device='cpu'}, or {features='landmarks'}.",
                recipe.device,
                ", ".join(repr(k.exact.name) for k in kernels_of_blocks(recipe) if not has_map(k.exact)),
            )
        )
