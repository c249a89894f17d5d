"""Recipes: how an ONNX file is written from published weights, without the framework that made them.

A recipe is a module with `VERSION` (raised whenever what it writes changes), `TOOLS` (distributions whose versions
belong to the lineage) and `build(sources, parameters) -> bytes`, a pure function: the same inputs give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from harness.canonical import digest_of
from harness.errors import ModelError

NAMES = ("centerface", "efficientnet_lite0", "minilm", "resnet50")


class Recipe(Protocol):
    """What a recipe's module offers."""

    VERSION: str
    TOOLS: tuple[str, ...]

    def build(self, sources: Mapping[str, Path], parameters: Mapping[str, Any]) -> bytes:
        """Return the model's bytes. Raises ModelError when the weights are not what the recipe expects."""
        ...


def recipe(name: str) -> Recipe:
    """Return the recipe of this name. Raises ModelError for an unknown one."""
    if name not in NAMES:
        raise ModelError(f"There is no recipe {name!r}.", f"There are: {', '.join(NAMES)}.")
    return cast(Recipe, import_module(f"harness.models.recipes.{name}"))


def recipe_digest(name: str, version: str, parameters: Mapping[str, Any]) -> str:
    """Return a recipe's identity: name, version and parameters."""
    return digest_of({"recipe": name, "version": version, "parameters": dict(parameters)})
