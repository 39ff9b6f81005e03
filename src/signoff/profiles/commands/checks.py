"""Checks of providers for `signoff profile validate`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from signoff.app.agents import check_agents, known_agents
from signoff.errors import SignoffError, UnknownName
from signoff.profiles.discovery import all_profiles, find_profile
from signoff.profiles.factories import AIProviderFactory, StandardsProviderFactory
from signoff.profiles.session import ROLES
from signoff.profiles.settings import ProfileSettings, agent_name
from signoff.profiles.standards_source import DEFAULT_PROVIDER, StandardsSource, unknown_profiles

if TYPE_CHECKING:
    from signoff.app.settings import Settings
    from signoff.notation import CompileContext


@dataclass(frozen=True)
class ProviderCheck:
    """Whether a provider can be used."""

    kind: str
    name: str
    ready: bool
    detail: str

    def to_json(self) -> dict[str, Any]:
        """Returns the check as plain values."""
        return asdict(self)


def check_ai(settings: Settings, key: str | None) -> Iterator[ProviderCheck]:
    """Checks one provider of responses, or those that the settings name."""
    registered = AIProviderFactory.registered()
    agents = known_agents(settings.agents)
    if key is not None and agent_name(key) not in (*registered, *agents):
        raise UnknownName("provider", key, [*registered, *agents])
    section = ProfileSettings.of(settings.sections)
    used = {section.provider_for(role) for role in ROLES.values()} | {*settings.agents, *registered}
    names = used if key is None else {agent_name(key)}
    health = check_agents(settings.agents) if names - set(registered) else {}
    for name in sorted(names):
        if name in registered:
            yield _registered_check(name)
        elif name in health:
            found = health[name]
            remedy = "" if found.remedy in found.detail else f"; {found.remedy}"
            yield ProviderCheck("responses", name, found.ready, f"{found.detail}{remedy}")
        else:
            yield ProviderCheck("responses", name, name in agents, "a human answers")


def check_standards(
    context: CompileContext, key: str | None, profile_name: str | None
) -> Iterator[ProviderCheck]:
    """Checks the standards of one profile, or of all profiles that can be used."""
    if key is not None:
        StandardsProviderFactory.get_class(key)
    for problem in unknown_profiles(ProfileSettings.of(context.settings), context):
        yield ProviderCheck("standards", "none", False, str(problem))
    entries = [each.name for each in all_profiles(context) if each.problem is None]
    for name in [profile_name] if profile_name is not None else entries:
        check = _standards_check(name, context)
        if key in (None, check.name):
            yield check


def _registered_check(name: str) -> ProviderCheck:
    try:
        AIProviderFactory.create(name).validate()
    except Exception as error:  # noqa: BLE001  # a provider may raise anything
        return ProviderCheck("responses", name, False, str(error) or type(error).__name__)
    return ProviderCheck("responses", name, True, "registered by a program")


def _standards_check(profile_name: str, context: CompileContext) -> ProviderCheck:
    section = ProfileSettings.of(context.settings)
    name = section.standards_provider or DEFAULT_PROVIDER
    try:
        profile = find_profile(profile_name, context)
        schema = profile.get_metadata().get("context_schema") or {}
        values = {key: field.get("default") for key, field in schema.items()}
        source = StandardsSource.of(profile_name, profile(), section, values)
        name = source.provider
        if source.config:
            source.create(context.root)
    except SignoffError as error:
        return ProviderCheck("standards", name, False, f"{profile_name}: {error}")
    origin = f" (from {source.setting})" if source.setting else ""
    what = profile_name if source.config else "no standards"
    return ProviderCheck("standards", name, True, f"{what}{origin}")
