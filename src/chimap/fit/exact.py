"""What ``features="exact"`` takes: the settings that a machine which keeps every row supports."""

from __future__ import annotations

from chimap._errors import InputError
from chimap._messages import Message, Setting
from chimap._types import Parameters
from chimap.backends import on_host
from chimap.features.base import FeatureSettings
from chimap.features.exact import has_map
from chimap.losses import Loss
from chimap.solvers.kernel_matrix import has_exact_machine


def kernels_of_blocks(given: Parameters) -> list[FeatureSettings]:
    """Return the settings of the features of each block of columns, for the parameters of an estimator."""
    gamma = given["gamma"] if given["gamma"] != "auto" else "mean"
    kernels = given["kernel"] if isinstance(given["kernel"], list | tuple) else [given["kernel"]]
    return [FeatureSettings(kernel, gamma, n_terms=given["n_terms"], map=given["map"]) for kernel in kernels]


def has_form_on_device(given: Parameters) -> bool:
    """Return whether the device of an estimator can compute the values of its kernels: the host can of any."""
    return on_host(given["device"]) or all(has_map(block.exact) for block in kernels_of_blocks(given))


def check_exact(given: Parameters, loss: str | Loss) -> None:
    """Raise ValueError for parameters of an estimator that machines which keep every row do not support."""
    refused = {
        "n_principal": given["n_principal"] is not None,
        "loss": not has_exact_machine(loss),
        "precision": given["precision"] == "bfloat16",
    }
    for name, is_refused in refused.items():
        if is_refused:
            raise InputError(
                Message(
                    "{features='exact'} solves {loss='square'} or {loss='squared_hinge'} on the kernel matrix, and "
                    "does not support {}. Leave that out, or use {features='landmarks'}.",
                    Setting(name, given[name]),
                )
            )
    if not has_form_on_device(given):
        raise InputError(
            Message(
                "{features='exact'} on {device=}: kernel {} has no map, and its values are computed on this "
                "machine only. Use {device='cpu'}, or {features='landmarks'}.",
                given["device"],
                ", ".join(repr(k.exact.name) for k in kernels_of_blocks(given) if not has_map(k.exact)),
            )
        )
