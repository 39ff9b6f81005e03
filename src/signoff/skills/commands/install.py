"""`signoff skill install` and `uninstall`: the files by which coding agents find skills."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click

from signoff.cli import exits
from signoff.cli.options import CliCommand, output_options
from signoff.cli.output import Output
from signoff.documents.files import display_path
from signoff.documents.python_files import make_importable
from signoff.errors import Problem, UnknownName, UsageError
from signoff.skills.commands.project import context_here
from signoff.skills.commands.skill_file import can_be_folder, skill_text
from signoff.skills.commands.skill_folder import FileAction, InstallAction, SkillFolder
from signoff.skills.discovery import Skill, all_skills, find_source

_SHARED = Path(".agents", "skills")
PLACES = {"claude": Path(".claude", "skills"), "codex": _SHARED, "gemini": _SHARED}
"""Where each agent looks for skills, in a project and in the home directory."""


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the names of skills, and the options that choose the folders."""
    for option in (
        click.option("--user", is_flag=True, help="Use your home directory, not the project."),
        click.option("--to", type=click.Path(path_type=Path), metavar="DIR",
                     help="Another folder of skills, for an agent that is not listed."),
        click.option("--agent", type=click.Choice([*PLACES]),
                     help="Only the folder that this agent reads."),
        click.argument("names", metavar="[NAME]...", nargs=-1),
    ):  # fmt: skip
        command = option(command)
    return command


@click.command(cls=CliCommand)
@place_options
@output_options
def install(
    names: Sequence[str], agent: str | None, to: Path | None, user: bool, out: Output
) -> int:
    """Install skills for coding agents.

    Writes NAME/SKILL.md for each skill: when to use it, its first command, and how to follow it.
    Claude Code reads .claude/skills, Codex and Gemini read .agents/skills; both folders are
    written. Without a NAME, that is every skill of the library and of the project. Installing
    again updates files that have not changed since; files that you edited stay as they are.

    Examples:
      signoff skill install
      signoff skill install planner code-review --agent codex
      signoff skill install --user
    """
    folders = _folders(to, agent, user=user)
    skills, problems = _skills(names)
    _print([_install(each, folder) for folder in folders for each in skills], out)
    for problem in problems:
        out.warn(str(problem))
    return exits.ERROR if problems else exits.OK


@click.command(cls=CliCommand)
@place_options
@output_options
def uninstall(
    names: Sequence[str], agent: str | None, to: Path | None, user: bool, out: Output
) -> None:
    """Remove installed skills.

    Without a NAME, these are all that were installed in the folders. Files that you edited, and
    those that signoff did not write, stay as they are.

    Examples:
      signoff skill uninstall
      signoff skill uninstall planner
      signoff skill uninstall --user
    """
    folders = _folders(to, agent, user=user)
    known = {name for each in folders for name in each.names()}
    for name in names:
        if name not in known:
            every = {name for each in folders for name in each.installed_names()}
            raise UnknownName("installed skill", name, sorted(every))
    results = []
    for folder in folders:
        chosen = folder.names() if names else folder.installed_names()
        results += [folder.uninstall(each) for each in chosen if not names or each in names]
    _print(results, out)


def _install(skill: Skill, folder: SkillFolder) -> FileAction:
    # A file of the project may be under version control, where nobody else has its path.
    root = context_here().root.absolute()
    is_found = skill.source.in_library or folder.path.absolute().is_relative_to(root)
    text = skill_text(skill.workflow, "" if is_found else str(root))
    return folder.install(skill.workflow.name, text)


def _folders(to: Path | None, agent: str | None, *, user: bool) -> list[SkillFolder]:
    if to is not None and (user or agent):
        raise UsageError(f"--to and {'--user' if user else '--agent'} exclude each other")
    if to is not None:
        return [SkillFolder(to.expanduser())]
    root = Path.home() if user else context_here().root
    places = [PLACES[agent]] if agent else dict.fromkeys(PLACES.values())
    return [SkillFolder(root / each) for each in places]


def _skills(names: Sequence[str]) -> tuple[list[Skill], list[Problem]]:
    """Returns the skills to install, and why others cannot be."""
    context = context_here()
    problems: list[Problem] = []
    with redirect_stdout(sys.stderr):
        if names:
            sources = [find_source(name, context) for name in dict.fromkeys(names)]
            make_importable([context.root])
            found = [Skill(each.load(), each) for each in sources]
        else:
            found, problems = all_skills(context)
    named = [each for each in found if can_be_folder(each.workflow.name)]
    what = "cannot be installed: its name cannot be the name of a folder"
    problems += [
        Problem(f"skill {each.workflow.name!r}", what, "use letters, digits, - and _, at most 64")
        for each in found
        if each not in named
    ]
    return named, problems


def _print(results: Sequence[FileAction], out: Output) -> None:
    if out.as_json:
        out.json(
            [
                {"name": each.name, "path": str(each.path.absolute()), "action": each.action.value}
                | ({"reason": each.reason} if each.reason else {})
                for each in results
            ]
        )
    elif results:
        rows = [(each.name, each.action.value, display_path(each.path)) for each in results]
        out.table(("SKILL", "ACTION", "FILE"), rows)
    else:
        out.note("nothing to do")
    for each in results:
        if each.action is InstallAction.KEPT:
            out.warn(f"{display_path(each.path)} is kept: {each.reason}")
