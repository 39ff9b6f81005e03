"""Where the standards of a profile's sessions come from: the settings, or the profile itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signoff.errors import Problem, ProviderError
from signoff.notation import CompileContext
from signoff.profiles.discovery import all_profiles
from signoff.profiles.factories import StandardsProviderFactory
from signoff.profiles.profile import WorkflowProfile
from signoff.profiles.profile_calls import standards_config
from signoff.profiles.providers import StandardsProvider
from signoff.profiles.settings import SECTION, ProfileSettings

DEFAULT_PROVIDER = "scoped-layer-fs"
"""The provider of standards where none is named."""

_SETTING = f"{SECTION}.standards"


@dataclass(frozen=True)
class StandardsSource:
    """A provider of standards and its configuration."""

    provider: str
    config: Mapping[str, Any]
    """Empty if there are no standards."""
    setting: str = ""
    """The setting that has the configuration; empty if it is the profile's own."""

    @classmethod
    def of(
        cls,
        name: str,
        profile: WorkflowProfile,
        section: ProfileSettings,
        context: Mapping[str, Any],
    ) -> StandardsSource:
        """Returns the source for a profile's sessions; the settings replace the profile's own."""
        own = section.standards.get(name)
        if own is not None:
            provider = own.get("provider") or section.standards_provider or DEFAULT_PROVIDER
            return cls(str(provider), own, f"{_SETTING}.{name}")
        config = standards_config(profile, context)
        provider = section.standards_provider or config.get("provider") or DEFAULT_PROVIDER
        return cls(str(provider), config)

    def create(self, folder: Path) -> StandardsProvider:
        """Returns the provider, ready to be used; raises `ProviderError`.

        Relative paths of the configuration start in `folder`.
        """
        provider = StandardsProviderFactory.create(self.provider, self.config, folder=folder)
        try:
            provider.validate()
        except ProviderError as error:
            if not self.setting:
                raise
            raise ProviderError(f"{self.setting}: {error}") from error
        return provider


def unknown_profiles(section: ProfileSettings, context: CompileContext) -> Iterator[Problem]:
    """Yields a problem for every profile that has standards in the settings and does not exist."""
    if not section.standards:
        return
    known = {each.name for each in all_profiles(context)}
    for name in sorted(section.standards.keys() - known):
        valid = ", ".join(sorted(known))
        yield Problem(_SETTING, f"unknown profile {name!r}", f"valid: {valid}")
