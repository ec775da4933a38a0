"""Packages that only sweeps need."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class MissingExtraError(ValueError):
    """A package of the extra ``sweep`` is not installed; the message has the command."""


def need(module: str) -> Any:
    """Import a module of the extra ``sweep``.

    Parameters
    ----------
    module : str
        Its full name.

    Raises
    ------
    MissingExtraError
        Its package is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingExtraError(
            f"sweeps need {package}, which is not installed: pip install 'numalab[sweep]' (in a checkout: '.[sweep]')"
        ) from None
