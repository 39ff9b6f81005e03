"""`signoff profile list`, `show`, `providers` and `validate`: what there is to use."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from signoff.app.home import expected_home
from signoff.app.settings import Settings, load_settings
from signoff.app.trust import context_here
from signoff.cli import exits
from signoff.cli.options import CliCommand, output_options, project_dir_option
from signoff.cli.output import Output
from signoff.errors import SignoffError, UnknownName
from signoff.profiles.compile import DEFAULT_PROVIDER, StandardsSource, unknown_profiles
from signoff.profiles.discovery import all_profiles, find_profile, load_profiles
from signoff.profiles.factories import (
    GROUP,
    AIProviderFactory,
    ApprovalProviderFactory,
    StandardsProviderFactory,
)
from signoff.profiles.session import ROLES
from signoff.profiles.settings import STAGES, ProfilesSection, agent_name

if TYPE_CHECKING:
    from signoff.notation import CompileContext


def settings_here() -> Settings:
    """Returns the settings of the project around the current folder."""
    return load_settings(expected_home(Path.cwd(), os.environ), os.environ)


@click.command("list", cls=CliCommand)
@project_dir_option
@output_options
def list_profiles(out: Output) -> None:
    """List profiles.

    These are shipped with signoff, installed by packages, or in the project's .signoff/profiles/.
    A profile whose file cannot be read is listed with the reason.
    """
    from signoff.installed import package_summary

    listed = [
        {
            "name": each.name,
            # Only loading an installed profile would show its own description.
            "description": each.description or package_summary(GROUP, each.name),
            "origin": each.origin,
            "problem": str(each.problem) if each.problem else None,
        }
        for each in all_profiles(context_here())
    ]
    if out.as_json:
        out.json(listed)
        return
    rows = [
        (
            each["name"],
            each["origin"],
            f"cannot be used: {each['problem']}" if each["problem"] else each["description"],
        )
        for each in listed
    ]
    out.table(("PROFILE", "FROM", "DESCRIPTION"), rows, spare=("FROM",))


@click.command(cls=CliCommand)
@click.argument("name", metavar="NAME")
@project_dir_option
@output_options
def show(name: str, out: Output) -> None:
    """Show what a profile needs.

    Lists the values of its context, its options, and who would respond and approve in a session
    now.

    Examples:
      signoff profile show python-module
    """
    context = context_here()
    profile = find_profile(name, context)
    metadata, section = profile.get_metadata(), ProfilesSection.of(context.settings)
    schema, options = metadata.get("context_schema") or {}, metadata.get("options") or {}
    providers = {role: section.provider_for(role) for role in ROLES.values()}
    approvers = {stage: section.stage(stage).approver for stage in STAGES}
    if out.as_json:
        out.json(
            {
                "name": name,
                "description": metadata.get("description", ""),
                "context_schema": schema,
                "options": options,
                "can_regenerate_prompts": profile.can_regenerate_prompts,
                "providers": providers,
                "approvers": approvers,
                "max_iterations": section.max_iterations,
            }
        )
        return
    out.line(f"{name}: {metadata.get('description', '')}")
    for heading, fields in (("CONTEXT", schema), ("OPTION", options)):
        if fields or heading == "CONTEXT":
            out.line()
            out.table((heading, "TYPE", "VALUE", "DESCRIPTION"), [*_fields(fields)])
    out.line()
    out.table(("ROLE", "PROVIDER"), list(providers.items()))
    out.line()
    out.table(("STAGE", "APPROVER"), list(approvers.items()))
    out.line()
    needed = [key for key, field in schema.items() if _is_required(field)]
    values = "".join(f" -c {key}=..." for key in needed)
    out.line(f"start a session: signoff profile init {name}{values}")


def _fields(schema: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str, str]]:
    for key, field in schema.items():
        default = field.get("default")
        value = "optional" if default in (None, "") else f"default: {default}"
        value = "required" if _is_required(field) else value
        if choices := field.get("choices"):
            value += f"; one of: {', '.join(map(str, choices))}"
        if field.get("exists"):
            value += "; must exist"
        yield key, str(field.get("type", "string")), value, str(field.get("description", ""))


def _is_required(field: Mapping[str, Any]) -> bool:
    return bool(field.get("required")) and "default" not in field


@click.command(cls=CliCommand)
@click.argument("name", required=False, metavar="[NAME]")
@project_dir_option
@output_options
def providers(name: str | None, out: Output) -> None:
    """List providers and approvers.

    These are the agents, and what profiles and programs register. Every agent can respond, and
    can approve as a judge.
    """
    listed = list(_providers())
    if name is not None:
        known = [each["name"] for each in listed]
        listed = [each for each in listed if each["name"] == name]
        if not listed:
            raise UnknownName("provider", name, known)
    if out.as_json:
        out.json(listed)
        return
    rows = [(each["name"], each["kind"], each["description"]) for each in listed]
    out.table(("PROVIDER", "FOR", "DESCRIPTION"), rows)


def _providers() -> Iterator[dict[str, Any]]:
    from signoff.agents.kinds import MANUAL
    from signoff.app.agents import known_agents

    load_profiles(context_here())
    agents = known_agents(settings_here().agents)
    approvers = sorted(set(ApprovalProviderFactory.keys()) - set(agents))
    for name, agent in agents.items():
        model = f", model {agent.options['model']}" if agent.options.get("model") else ""
        kind = "an agent" if agent.kind == name else f"an agent of the kind {agent.kind}"
        kind = "a human" if agent.kind == MANUAL else kind
        yield {"name": name, "kind": "responses, approval", "description": f"{kind}{model}"}
    for factory, keys, kind in (
        (AIProviderFactory, AIProviderFactory.registered(), "responses, approval"),
        (ApprovalProviderFactory, approvers, "approval"),
        (StandardsProviderFactory, StandardsProviderFactory.keys(), "standards"),
    ):
        for key in keys:
            description = getattr(factory.get_class(key), "description", "")
            yield {"name": key, "kind": kind, "description": description}


@click.command(cls=CliCommand)
@click.argument("what", type=click.Choice(["ai", "standards", "all"]), metavar="ai|standards|all")
@click.argument("key", required=False, metavar="[KEY]")
@click.option("--profile", "profile_name", metavar="NAME",
              help="Check the standards of this profile; default: of all profiles.")  # fmt: skip
@project_dir_option
@output_options
def validate(what: str, key: str | None, profile_name: str | None, out: Output) -> int:
    """Check that providers can be used, without calling any.

    `ai` checks who responds, `standards` where the standards come from. Exits with 1 if one of
    them is not ready. KEY is the name of one provider.

    Examples:
      signoff profile validate ai claude
      signoff profile validate standards --profile python-module
    """
    context = context_here()
    load_profiles(context)
    context.trust("")
    checks: list[dict[str, Any]] = []
    if what in ("ai", "all"):
        checks += _check_ai(settings_here(), key)
    if what in ("standards", "all"):
        checks += _check_standards(context, key, profile_name)
    if out.as_json:
        out.json(checks)
    else:
        rows = [
            (each["kind"], each["name"], "ready" if each["ready"] else "not ready", each["detail"])
            for each in checks
        ]
        out.table(("FOR", "PROVIDER", "STATE", "DETAILS"), rows)
    return exits.OK if all(each["ready"] for each in checks) else exits.ERROR


def _check_ai(settings: Settings, key: str | None) -> Iterator[dict[str, Any]]:
    """Checks one provider of responses, or those that the settings name."""
    from signoff.app.agents import check_agents, known_agents

    registered = AIProviderFactory.registered()
    agents = known_agents(settings.agents)
    if key is not None and agent_name(key) not in (*registered, *agents):
        raise UnknownName("provider", key, [*registered, *agents])
    section = ProfilesSection.of(settings.sections)
    used = {section.provider_for(role) for role in ROLES.values()} | {*settings.agents, *registered}
    names = used if key is None else {agent_name(key)}
    health = check_agents(settings.agents) if names - set(registered) else {}
    for name in sorted(names):
        if name in registered:
            problem = _registered_problem(name)
            yield _check("responses", name, not problem, problem or "registered by a program")
        elif name in health:
            found = health[name]
            remedy = "" if found.remedy in found.detail else f"; {found.remedy}"
            yield _check("responses", name, found.ready, f"{found.detail}{remedy}")
        else:
            yield _check("responses", name, name in agents, "a human answers")


def _check_standards(
    context: CompileContext, key: str | None, profile_name: str | None
) -> Iterator[dict[str, Any]]:
    """Checks the standards of one profile, or of all profiles that can be used."""
    if key is not None:
        StandardsProviderFactory.get_class(key)
    for problem in unknown_profiles(ProfilesSection.of(context.settings), context):
        yield _check("standards", "none", False, str(problem))
    usable = [each.name for each in all_profiles(context) if each.problem is None]
    for name in [profile_name] if profile_name is not None else usable:
        check = _standards_check(name, context)
        if key in (None, check["name"]):
            yield check


def _check(kind: str, name: str, ready: bool, detail: str) -> dict[str, Any]:
    return {"kind": kind, "name": name, "ready": ready, "detail": detail}


def _registered_problem(name: str) -> str:
    try:
        AIProviderFactory.create(name).validate()
    except Exception as error:  # noqa: BLE001  # a provider may raise anything
        return str(error) or type(error).__name__
    return ""


def _standards_check(profile_name: str, context: CompileContext) -> dict[str, Any]:
    section = ProfilesSection.of(context.settings)
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
        return _check("standards", name, False, f"{profile_name}: {error}")
    origin = f" (from {source.setting})" if source.setting else ""
    what = profile_name if source.config else "no standards"
    return _check("standards", name, True, f"{what}{origin}")
