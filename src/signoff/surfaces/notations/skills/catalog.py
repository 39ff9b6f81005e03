"""Which skills there are, what one of them does, and the files by which agents find them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import click

from signoff.app.settings.trust import context_here
from signoff.core.args import Param, placeholder, value_text
from signoff.core.errors import Problem, UsageError
from signoff.core.workflow import Workflow
from signoff.documents.files import MOST_BYTES, display_path
from signoff.documents.named_texts import read_texts
from signoff.documents.python_files import make_importable
from signoff.documents.regular_files import read_regular, translate_write_errors
from signoff.skills.discovery import Skill, all_skills, find_in_folder, find_source, listed_skills
from signoff.skills.stateless import keeps_state
from signoff.skills.step_text import SkillPlace, first_command, option_name
from signoff.surfaces.cli import exits
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.output import Output, one_line


@cli.command("list")
def list_skills(out: Output) -> int:
    """List skills.

    These are shipped with signoff, in the project's .signoff/skills/, or where the setting
    `workflows` says. Exits with 1 if a module cannot be used.

    Examples:
      signoff skill list
      signoff skill list --json
    """
    skills, problems = listed_skills(context_here())
    documents = [
        {"name": s.name, "description": s.description, "steps": s.steps, "origin": s.origin}
        for s in skills
    ]
    rows = [(s.name, s.steps or "", s.origin, _first_sentence(s.description)) for s in skills]
    headings = ("SKILL", "STEPS", "FROM", "DESCRIPTION")
    out.listing(documents, headings, rows, spare=("FROM", "STEPS"))
    for problem in problems:
        out.warn(str(problem))
    return exits.ERROR if problems else exits.OK


@cli.command()
@click.argument("name", metavar="NAME")
@cli.project_dir_option
def show(name: str, out: Output) -> None:
    """Show the steps and the parameters of a skill.

    Examples:
      signoff skill show decision-critic
      signoff skill show decision-critic --json
    """
    # Importing a skill runs its module, which may print; stdout is for the answer.
    with redirect_stdout(sys.stderr):
        workflow, folder = find_in_folder(name, context_here())
    steps, params = _steps(workflow), _params(workflow)
    pinned = str(folder.absolute()) if folder is not None else ""
    first = first_command(workflow, SkillPlace(name, pinned))
    if out.as_json:
        shown = {"name": workflow.name, "description": workflow.description}
        out.json({**shown, "steps": steps, "params": params, "first_command": first})
        return
    out.prose(f"{workflow.name}: {' '.join(workflow.description.split())}")
    out.line()
    rows = [(s["step"], s["title"], s["agent"], _arrows(s["next"])) for s in steps]
    out.table(("STEP", "TITLE", "BY", "NEXT"), rows, spare=("BY",))
    if params:
        out.line()
        rows_of_params = [
            (p["option"], p["values"], "required" if p["required"] else p["default"] or "",
             p["description"]) for p in params
        ]  # fmt: skip
        out.table(("OPTION", "VALUES", "DEFAULT", "DESCRIPTION"), rows_of_params)
    out.line()
    needed = [each for each in workflow.input_params.values() if each.required]
    inputs = [word for each in needed for word in ("-i", f"{each.name}={placeholder(each)}")]
    run = shlex.join(["signoff", "run", name, *inputs])
    out.line(f"first step: {first}")
    out.line(f"as a run:   {run} --pull (you do the work), or {run} (an agent does)")


def _steps(workflow: Workflow) -> list[dict[str, Any]]:
    numbers = {step: number for number, step in enumerate(workflow.steps, 1)}
    return [
        {
            "step": numbers[step.id],
            "id": step.id,
            "title": step.title,
            "agent": step.agent,
            "next": {
                edge.name: numbers.get(edge.to) if edge.to is not None else None
                for edge in workflow.edges.from_step(step.id)
            },
        }
        for step in workflow.steps.values()
    ]


def _params(workflow: Workflow) -> list[dict[str, Any]]:
    return [
        {
            "option": option_name(name),
            "values": placeholder(param),
            "required": param.required,
            "default": None if param.required or param.default is None
            else value_text(param.default),
            "description": param.arg.description,
        }
        for name, param in {**_undeclared(workflow), **workflow.declared_params}.items()
    ]  # fmt: skip


def _undeclared(workflow: Workflow) -> dict[str, Param]:
    """Returns the texts that handlers read from their context without declaring them."""
    return {name: Param(name, str, default=None) for name in sorted(workflow.inputs or ())}


def _first_sentence(text: str) -> str:
    """Returns what a table has room for; the rest says when to use the skill and when not."""
    first, separator, _ = " ".join(text.split()).partition(". ")
    return first + separator.strip()


def _arrows(targets: dict[str, int | None]) -> str:
    """Returns where each outcome leads; a single way on needs no name."""
    # Most steps have one way on, and naming its outcome would only fill the table.
    if len(set(targets.values())) == 1:
        return str(next(iter(targets.values())) or "end")
    return ", ".join(f"{name}: {number or 'end'}" for name, number in targets.items())


# The files by which coding agents find skills.
#
# Each `SKILL.md` ends with a mark that holds a digest of the rest. So a file that was not changed
# since can be told from one that its user edited, without a list of files anywhere. Files that
# their user edited, and anything that is not a plain file in a plain folder, stay as they are.

FILE = "SKILL.md"
MOST_DESCRIPTION = 1024
"""Agents refuse a skill with a longer description."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
_MARK = "\n<!-- signoff skill install: "
_WIDTH = 100


_SHARED = Path(".agents", "skills")
PLACES = {"claude": Path(".claude", "skills"), "codex": _SHARED, "gemini": _SHARED}
"""Where each agent looks for skills, in a project and in the home directory."""


@cli.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--agent", type=click.Choice([*PLACES]),
              help="Only the folder that this agent reads.")  # fmt: skip
@click.option("--to", type=click.Path(path_type=Path), metavar="DIR",
              help="Another folder of skills, for an agent that is not listed.")  # fmt: skip
@click.option("--user", is_flag=True, help="Use your home directory, not the project.")
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


def _install(skill: Skill, folder: Path) -> FileAction:
    # A file of the project may be under version control, where nobody else has its path.
    root = context_here().root.absolute()
    # A skill of the library is found from everywhere. A project's own skill is found by its name
    # only below the project, so elsewhere its commands name the folder.
    is_found = skill.source.in_library or folder.absolute().is_relative_to(root)
    text = skill_text(skill.workflow, "" if is_found else str(root))
    return install_file(folder / skill.workflow.name / FILE, text)


def _folders(to: Path | None, agent: str | None, *, user: bool) -> list[Path]:
    if to is not None and (user or agent):
        raise UsageError(f"--to and {'--user' if user else '--agent'} exclude each other")
    if to is not None:
        return [to.expanduser()]
    root = Path.home() if user else context_here().root
    places = [PLACES[agent]] if agent else dict.fromkeys(PLACES.values())
    return [root / each for each in places]


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
    documents = [
        {"name": each.name, "path": str(each.path.absolute()), "action": each.action.value}
        | ({"reason": each.reason} if each.reason else {})
        for each in results
    ]
    rows = [(each.name, each.action.value, display_path(each.path)) for each in results]
    out.listing(documents, ("SKILL", "ACTION", "FILE"), rows)
    for each in results:
        if each.action is InstallAction.KEPT:
            out.warn(f"{display_path(each.path)} is kept: {each.reason}")


class InstallAction(StrEnum):
    """What was done with a file."""

    INSTALLED = "installed"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    KEPT = "kept"


@dataclass(frozen=True)
class FileAction:
    """What was done with the file of a skill, and why it was kept if it was."""

    path: Path
    action: InstallAction
    reason: str = ""

    @property
    def name(self) -> str:
        """The skill's name."""
        return self.path.parent.name


def install_file(file: Path, text: str) -> FileAction:
    """Writes the file of a skill, unless there is one that is not ours to change."""
    with translate_write_errors(file):
        before = _read(file)
        if reason := _foreign(file, before):
            return FileAction(file, InstallAction.KEPT, reason)
        if before == text:
            return FileAction(file, InstallAction.UNCHANGED)
        _write(file, text)
    return FileAction(file, InstallAction.INSTALLED if before is None else InstallAction.UPDATED)


def _read(file: Path) -> str | None:
    """Returns the text of a file; None if there is none, and no link that leads nowhere."""
    if not os.path.lexists(file):
        return None
    try:
        return read_regular(file, MOST_BYTES, follow=True).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def _foreign(file: Path, text: str | None) -> str:
    """Returns why a file must not be changed; empty if it may be."""
    # Links are never followed: what they lead to was not written here, and may belong to another
    # project.
    if file.parent.is_symlink():
        return "its folder is a link"
    if file.is_symlink():
        return "it is a link"
    if text is None or is_untouched(file.parent.name, text):
        return ""
    return "it was edited since it was installed" if has_mark(text) else "signoff did not write it"


def _write(file: Path, text: str) -> None:
    """Replaces a file as a whole: an agent may be reading it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # An agent may read the folder at any time, and half a file would be half a procedure.
    scratch = file.with_name(f".{file.name}.{os.urandom(6).hex()}")
    try:
        with scratch.open("x", encoding="utf-8", newline="\n") as out:
            out.write(text)
        scratch.replace(file)
    finally:
        scratch.unlink(missing_ok=True)


def skill_text(workflow: Workflow, folder: str = "") -> str:
    """Returns the file of a skill, with its mark; `folder` is where its commands find the skill.

    It is empty if they find it wherever the file is read.
    """
    name, steps = workflow.name, workflow.total_steps
    texts = read_texts(Path(__file__).with_name("skill_file.md"))
    body = texts["body"].format(
        name=name,
        description=textwrap.fill(_description(workflow), _WIDTH, break_on_hyphens=False),
        steps=f"are {steps} steps" if steps > 1 else "is one step",
        first=first_command(workflow, SkillPlace(name, folder)),
        show=cli.in_project(shlex.join(["signoff", "skill", "show", name]), folder),
        run=cli.in_project(shlex.join(["signoff", "run", name, "--pull"]), folder),
        resume=texts["with-files" if keeps_state(workflow) else "without-files"],
    )
    return marked(name, f"{_front_matter(workflow)}\n{body}\n")


def can_be_folder(name: str) -> bool:
    """Tells whether a skill's name can be the name of its folder."""
    return _NAME.fullmatch(name) is not None


def marked(folder: str, text: str) -> str:
    """Returns a text with the mark for a folder."""
    return f"{text}{_MARK}{_digest(folder, text)} -->\n"


def has_mark(text: str) -> bool:
    """Tells whether a text was installed, even if it was edited since."""
    return _MARK in text.replace("\r\n", "\n")


def is_untouched(folder: str, text: str) -> bool:
    """Tells whether a file is as it was written into this folder."""
    # Version control may have changed how lines end.
    text = text.replace("\r\n", "\n")
    return text == marked(folder, text.rpartition(_MARK)[0])


def _digest(folder: str, text: str) -> str:
    # With the folder, a copy that a user made in another folder is not taken for ours.
    return hashlib.sha256(f"{folder}\n{text}".encode("utf-8", "replace")).hexdigest()[:16]


def _front_matter(workflow: Workflow) -> str:
    # Agents refuse descriptions that contain tags, and some take any three dashes for the end.
    text = re.sub("[<>]", "", re.sub("-{3,}", "--", _description(workflow)))
    # Cut here and nowhere else: the body of the file repeats the whole description.
    description = one_line(text, MOST_DESCRIPTION)
    # Every JSON string is a YAML string, whatever it contains.
    return f"---\nname: {workflow.name}\ndescription: {json.dumps(description)}\n---\n"


def _description(workflow: Workflow) -> str:
    titles = [step.title or step.id for step in workflow.steps.values()]
    text = one_line(workflow.description or f"A procedure in steps: {', '.join(titles)}.")
    # Some agents run what is between "!`" and "`" when they load the file.
    return text.replace("!`", "! `")
