"""`signoff profile list`, `show`, `providers` and `validate`: what there is to use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import click

from signoff.cli.options import CliCommand, output_options, project_dir_option
from signoff.cli.output import Output
from signoff.profiles.commands.project import context_here, settings_here


@click.command("list", cls=CliCommand)
@project_dir_option
@output_options
def list_profiles(out: Output) -> None:
    """List profiles.

    These are shipped with signoff, installed by packages, or in the project's .signoff/profiles/.
    A profile that cannot be used is listed with the reason.
    """
    from signoff.installed import package_summary
    from signoff.profiles.discovery import FOLDER, listed_profiles

    entries = [
        # Only loading an installed profile would show its own description.
        replace(each, description=each.description or package_summary(FOLDER, each.name))
        for each in listed_profiles(context_here())
    ]
    if out.as_json:
        out.json(
            [
                {
                    "name": each.name,
                    "description": each.description,
                    "origin": each.origin,
                    "problem": str(each.problem) if each.problem else None,
                }
                for each in entries
            ]
        )
        return
    rows = [(e.name, e.origin, f"cannot be used: {e.problem}" if e.problem else e.description)
            for e in entries]  # fmt: skip
    out.table(("PROFILE", "FROM", "DESCRIPTION"), rows, spare=("FROM",))


@click.command(cls=CliCommand)
@click.argument("name", metavar="NAME")
@project_dir_option
@output_options
def show(name: str, out: Output) -> None:
    """Show what a profile needs.

    Lists the values of its context, and who would respond and approve in a session now.

    Examples:
      signoff profile show python-module
    """
    from signoff.profiles.discovery import find_profile
    from signoff.profiles.session import ROLES
    from signoff.profiles.settings import STAGES, ProfileSettings

    context = context_here()
    profile = find_profile(name, context)
    metadata, section = profile.get_metadata(), ProfileSettings.of(context.settings)
    schema = metadata.get("context_schema") or {}
    providers = {role: section.provider_for(role) for role in ROLES.values()}
    approvers = {stage: section.stage(stage).approver for stage in STAGES}
    if out.as_json:
        out.json(
            {
                "name": name,
                "description": metadata.get("description", ""),
                "context_schema": schema,
                "can_regenerate_prompts": profile.can_regenerate_prompts,
                "providers": providers,
                "approvers": approvers,
                "max_iterations": section.max_iterations,
            }
        )
        return
    out.line(f"{name}: {metadata.get('description', '')}")
    out.line()
    out.table(("CONTEXT", "TYPE", "VALUE", "DESCRIPTION"), [*_fields(schema)])
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
    from signoff.errors import UnknownName

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
    from signoff.profiles.discovery import load_profiles
    from signoff.profiles.factories import (
        AIProviderFactory,
        ApprovalProviderFactory,
        StandardsProviderFactory,
    )

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
    from signoff.cli import exits
    from signoff.profiles.commands.checks import ProviderCheck, check_ai, check_standards
    from signoff.profiles.discovery import load_profiles

    checks: list[ProviderCheck] = []
    load_profiles(context_here())
    context_here().trust("")
    if what in ("ai", "all"):
        checks += check_ai(settings_here(), key)
    if what in ("standards", "all"):
        checks += check_standards(context_here(), key, profile_name)
    if out.as_json:
        out.json([each.to_json() for each in checks])
    else:
        rows = [(e.kind, e.name, "ready" if e.ready else "not ready", e.detail) for e in checks]
        out.table(("FOR", "PROVIDER", "STATE", "DETAILS"), rows)
    return exits.OK if all(each.ready for each in checks) else exits.ERROR
