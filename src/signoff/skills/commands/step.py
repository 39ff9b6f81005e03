"""`signoff skill step`: the instructions of one step, and the command for the next.

The options of a step are the parameters of its skill, so the skill is found first, and the
command line is parsed with its options then.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click

from signoff.cli.options import CliCommand, enter_folder, output_options, project_dir_option
from signoff.cli.output import Output
from signoff.cli.text import clean
from signoff.core.args import UNDECLARED, Param, placeholder
from signoff.core.step import ITERATION
from signoff.core.workflow import Workflow
from signoff.errors import Problem, UsageError
from signoff.skills.commands.command_text import PROJECT_DIR, SkillPlace, option_name
from signoff.skills.commands.project import context_here
from signoff.skills.commands.step_page import (
    ANSWER_ID,
    ANSWER_VALUE,
    OPEN_ANSWER,
    Answers,
    as_json,
    as_text,
    may_ask,
)
from signoff.skills.discovery import InvalidSkill, find_in_folder
from signoff.skills.stateless import STATE_DIR, evaluate_step, keeps_state, repeats, step_at

_SWITCHES = ("--json", "--debug", "--help", "-h")
"""The options without a value."""
_RESERVED = ("step", "json", "debug", "help", "total_steps", PROJECT_DIR, ANSWER_ID, ANSWER_VALUE)
_HELP = {ITERATION: "How often the step has been reached; 1 is the first time."}
_TARGET = "signoff.skills.target"
"""The key in click's context under which is stored how printed commands find the skill."""
_PREFIX = "skill_"
"""Begins the names of a skill's parameters in click, apart from the command's own."""


class StepCommand(CliCommand):
    """A command whose options depend on the skill that its first argument names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Finds the skill, adds its options, and parses the command line."""
        name = _first_argument(args)
        if name is not None and not ctx.resilient_parsing:
            # The skill is found before its options, and with them this one, are parsed.
            if project_dir := _value_of(option_name(PROJECT_DIR), args):
                enter_folder(ctx, project_dir)
            # A module may print while it is imported; stdout is for instructions.
            with redirect_stdout(sys.stderr):
                ctx.obj, folder = find_in_folder(name, context_here())
            ctx.meta[_TARGET] = SkillPlace(name, str(folder.absolute()) if folder else "")
            _refuse_reserved(ctx.obj)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if not isinstance(ctx.obj, Workflow):
                raise
            # The help of the command without a skill does not have the skill's options.
            listed = ", ".join(map(option_name, _params(ctx.obj))) or "none"
            what = f"{error.message.rstrip('.')}; {ctx.obj.name!r} has these options: {listed}"
            what = f"{what} ({UNDECLARED})" if ctx.obj.inputs is not None else what
            raise UsageError(what) from None

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Returns the command's own parameters, and those of the skill."""
        own = super().get_params(ctx)
        return [*own, *_options(ctx.obj)] if isinstance(ctx.obj, Workflow) else own


@click.command(cls=StepCommand)
@click.argument("name", metavar="NAME")
@click.option("--step", "number", type=int, required=True, metavar="N",
              help="The step to show; 1 is the first.")  # fmt: skip
@click.option(option_name(ANSWER_ID), "headers", multiple=True, metavar="HEADER",
              help="A sub-agent's question that the user answered. Repeatable.")  # fmt: skip
@click.option(option_name(ANSWER_VALUE), "labels", multiple=True, metavar="ANSWER",
              help="The answer to it.")  # fmt: skip
@project_dir_option
@output_options
@click.pass_context
def step(
    context: click.Context,
    /,
    name: str,  # noqa: ARG001  # was read to find the skill
    number: int,
    headers: Sequence[str],
    labels: Sequence[str],
    out: Output,
    **values: str | None,
) -> None:
    """Show one step of a skill, and the next command.

    NAME is a skill, a file (`skill.py`), or `package.module:WORKFLOW`. The other options are the
    parameters of the skill: `signoff skill step NAME --help` lists them. The parameters decide
    where the step leads. Those that later steps take are part of the next command.

    Examples:
      signoff skill step decision-critic --step 1
      signoff skill step deepthink --step 1 --mode quick
      signoff skill step deepthink --step 1 --json
    """
    workflow, target = context.obj, context.meta[_TARGET]
    declared = _params(workflow)
    given = {
        name.removeprefix(_PREFIX): _read(declared.get(name.removeprefix(_PREFIX)), name, value)
        for name, value in values.items()
        if value is not None
    }
    if keeps_state(workflow) and given.get(STATE_DIR):
        # The next command may be run in another folder.
        given[STATE_DIR] = str(Path(given[STATE_DIR]).absolute())
    answers = _answers(headers, labels)
    if answers and not may_ask(step_at(workflow, number)):
        raise UsageError(
            f"step {number} of {workflow.name!r} has no sub-agent that may ask the user"
        )
    _refuse_missing(workflow, number, given)
    with redirect_stdout(sys.stderr):
        evaluated = evaluate_step(workflow, number, given)
    if out.as_json:
        out.json(as_json(evaluated, target, answers))
    else:
        out.line(as_text(evaluated, target, answers))


def _first_argument(args: Sequence[str]) -> str | None:
    """Returns the first word that is neither an option nor the value of one."""
    words = iter(args)
    for word in words:
        if not word.startswith("-"):
            return word
        if word not in _SWITCHES and "=" not in word:
            next(words, None)
    return None


def _value_of(option: str, args: Sequence[str]) -> str:
    """Returns the value of an option in arguments that are not parsed yet; empty without it."""
    for word, following in zip(args, [*args[1:], ""], strict=True):
        if word == option or word.startswith(f"{option}="):
            return following if word == option else word.partition("=")[2]
    return ""


def _params(workflow: Workflow) -> dict[str, Param | None]:
    """Returns what a skill takes, by name; None for a text that is not declared as data."""
    names: dict[str, Param | None] = dict.fromkeys(sorted(workflow.inputs or ()))
    if repeats(workflow):
        names[ITERATION] = None
    return {**names, **workflow.declared_params}


def _options(workflow: Workflow) -> Iterator[click.Option]:
    for name, param in _params(workflow).items():
        yield click.Option(
            [option_name(name), f"{_PREFIX}{name}"],
            metavar=placeholder(param) if param is not None and param.domain() else "TEXT",
            help=(param.arg.description if param is not None else "") or _HELP.get(name, ""),
        )


def _refuse_reserved(workflow: Workflow) -> None:
    if taken := [name for name in _params(workflow) if name in _RESERVED]:
        what = "has the name of an option of every step"
        problems = [Problem(f"parameter {name!r}", what, "rename it") for name in taken]
        raise InvalidSkill(workflow.name, problems)


def _refuse_missing(workflow: Workflow, number: int, given: Collection[str]) -> None:
    own = {**workflow.input_params, **workflow.params[step_at(workflow, number).id]}
    missing = [each for name, each in own.items() if each.required and name not in given]
    if missing:
        needed = [f"{option_name(each.name)} {shlex.quote(placeholder(each))}" for each in missing]
        raise UsageError(f"step {number} of {workflow.name!r} needs {' '.join(needed)}")


def _answers(headers: Sequence[str], labels: Sequence[str]) -> Answers:
    """Returns the user's answers to a sub-agent, each with the header of its question."""
    names = f"{option_name(ANSWER_ID)} and {option_name(ANSWER_VALUE)}"
    if len(headers) != len(labels):
        raise UsageError(f"{names} belong together: {len(headers)} and {len(labels)} were given")
    answers = [
        (_typed(header), _typed(label)) for header, label in zip(headers, labels, strict=True)
    ]
    if any(not part for pair in answers for part in pair):
        raise UsageError(f"{names} must not be empty")
    if any(part in OPEN_ANSWER for pair in answers for part in pair):
        raise UsageError(f"{names} still have their placeholders; fill in the answer")
    return answers


def _typed(text: str) -> str:
    """Returns a text on one line, so that none of it can pass for an instruction."""
    return " ".join(clean(text.encode("utf-8", "replace").decode()).split())


def _read(param: Param | None, name: str, text: str) -> Any:
    """Returns the value of an option; lists and mappings may be written as JSON."""
    option = option_name(name.removeprefix(_PREFIX))
    if text == (placeholder(param) if param is not None else None):
        raise UsageError(f"{option} still has its placeholder {text}; fill in a value")
    # The next command carries the value, and a terminal would interpret control characters in it.
    text = clean(text.encode("utf-8", "replace").decode())
    if param is None or param.type not in (list, tuple, dict) or text[:1] not in ("[", "{"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{option} is not valid JSON: {error}") from error
