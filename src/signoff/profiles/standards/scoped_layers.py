"""Standards as files of text, sorted by the layers of a system.

    root: standards
    scopes:
      domain: {layers: [entity]}
      full: {layers: [entity, repository]}
    layer_standards:
      _universal: [java.md]
      entity: [entity.md, naming.md]
      repository: [repository.md, naming.md]

A scope gets the universal files and those of its own layers, nothing else: scopes do not build
on each other.
"""

from __future__ import annotations

from pydantic import Field

from signoff.documents.sections import Section
from signoff.profiles.standards.folder import (
    FolderConfig,
    FolderStandards,
    StandardsFiles,
    choose_scope,
    join_files,
)

UNIVERSAL = "_universal"
"""The layer that belongs to every scope."""


class LayerScope(Section):
    """What a scope consists of."""

    layers: list[str] = Field(default_factory=list, description="a list of layers")


class ScopedLayerConfig(FolderConfig):
    """The configuration of `scoped-layer-fs`."""

    scopes: dict[str, LayerScope] = Field(description="name: {layers: [...]}")
    layer_standards: dict[str, list[str]] = Field(description="layer: [file, ...]")


class ScopedLayerStandards(FolderStandards[ScopedLayerConfig]):
    """Bundles the files of a scope's layers, the universal ones first."""

    description = "files of a folder, by the layers of a scope"
    model = ScopedLayerConfig

    def _bundle(self, config: ScopedLayerConfig, scope: str, files: StandardsFiles) -> str:
        layers = [UNIVERSAL, *choose_scope(config.scopes, scope).layers]
        names = [name for layer in layers for name in config.layer_standards.get(layer, ())]
        return join_files(files.read(names))

    def _problem(self, config: ScopedLayerConfig) -> str:
        named = {layer for scope in config.scopes.values() for layer in scope.layers}
        unknown = sorted(named - {*config.layer_standards})
        if unknown:
            known = ", ".join(sorted(config.layer_standards)) or "none"
            return f"unknown layers {', '.join(unknown)}; valid: {known}"
        return super()._problem(config)
