"""`signoff skill step`: the instructions of one step, and the command for the next, as one page.

The options of a step are the parameters of its skill, so the skill is found first, and the
command line is parsed with its options then. `signoff skill script` is at the end.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from runpy import run_module
from typing import Any
from warnings import filterwarnings

import click

from signoff.app.settings.trust import context_here
from signoff.core.args import UNDECLARED, Param, placeholder
from signoff.core.errors import HandlerFailed, Problem, SignoffError, UsageError
from signoff.core.outcome import Outcome
from signoff.core.step import ITERATION, StepDef
from signoff.core.step_output import NextCommand
from signoff.core.workflow import Workflow
from signoff.documents.control_characters import json_text
from signoff.documents.discovery import NAME
from signoff.documents.python_files import (
    describe_failure,
    extend_import_path,
    make_importable,
)
from signoff.runtime import sub_agents
from signoff.runtime.sub_agents import Dispatch
from signoff.skills import stateless, step_text
from signoff.skills.discovery import InvalidSkill, find_in_folder, find_source, skills_folder
from signoff.skills.stateless import STATE_DIR, EvaluatedStep
from signoff.skills.step_text import PROJECT_DIR, SkillPlace, command_text, option_name
from signoff.skills.types import QUESTION_RELAY_HANDLER
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.entry import run_command
from signoff.surfaces.cli.output import Output, clean

ANSWER_ID, ANSWER_VALUE = "user_answer_id", "user_answer_value"
"""The parameters that bring a user's answers back: the header of a question, and its answer."""
OPEN_ANSWER = ("<header>", "<answer>")
"""Stands for an answer to fill in."""

Answers = Sequence[tuple[str, str]]

_VERDICTS = {Outcome.OK.value: "If it passes", Outcome.FAIL.value: "If it fails"}

_RESERVED = ("step", "json", "debug", "help", "total_steps", PROJECT_DIR, ANSWER_ID, ANSWER_VALUE)
_HELP = {ITERATION: "How often the step has been reached; 1 is the first time."}
_TARGET = "signoff.skills.target"
"""The key in click's context under which is stored how printed commands find the skill."""
_PREFIX = "skill_"
"""Begins the names of a skill's parameters in click, apart from the command's own."""


class StepCommand(cli.CliCommand):
    """A command whose options depend on the skill that its first argument names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Finds the skill, adds its options, and parses the command line."""
        # The options depend on the skill, so its name has to be known before click parses anything.
        # So it comes first on the command line, as in every command that signoff prints.
        name = args[0] if args and not args[0].startswith("-") else None
        if name is not None and not ctx.resilient_parsing:
            # The skill is found before its options, and with them this one, are parsed.
            if project_dir := _value_of(option_name(PROJECT_DIR), args):
                cli.enter_folder(ctx, project_dir)
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


@cli.command(cls=StepCommand)
@click.argument("name", metavar="NAME")
@click.option("--step", "number", type=int, required=True, metavar="N",
              help="The step to show; 1 is the first.")  # fmt: skip
@click.option(option_name(ANSWER_ID), "headers", multiple=True, metavar="HEADER",
              help="A sub-agent's question that the user answered. Repeatable.")  # fmt: skip
@click.option(option_name(ANSWER_VALUE), "labels", multiple=True, metavar="ANSWER",
              help="The answer to it.")  # fmt: skip
@cli.project_dir_option
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
    if stateless.keeps_state(workflow) and given.get(STATE_DIR):
        # The next command may be run in another folder.
        given[STATE_DIR] = str(Path(given[STATE_DIR]).absolute())
    answers = _answers(headers, labels)
    if answers and not may_ask(stateless.step_at(workflow, number)):
        raise UsageError(
            f"step {number} of {workflow.name!r} has no sub-agent that may ask the user"
        )
    _refuse_missing(workflow, number, given)
    with redirect_stdout(sys.stderr):
        evaluated = stateless.evaluate_step(workflow, number, given)
    if out.as_json:
        out.json(as_json(evaluated, target, answers))
    else:
        out.line(as_text(evaluated, target, answers))


def _value_of(option: str, args: Sequence[str]) -> str:
    """Returns the value of an option in arguments that are not parsed yet; empty without it."""
    for word, following in zip(args, [*args[1:], ""], strict=True):
        if word == option or word.startswith(f"{option}="):
            return following if word == option else word.partition("=")[2]
    return ""


def _params(workflow: Workflow) -> dict[str, Param | None]:
    """Returns what a skill takes, by name; None for a text that is not declared as data."""
    names: dict[str, Param | None] = dict.fromkeys(sorted(workflow.inputs or ()))
    if stateless.repeats(workflow):
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
    own = {**workflow.input_params, **workflow.params[stateless.step_at(workflow, number).id]}
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
    # A command that was pasted with its placeholder is no answer of the user's.
    if any(part in OPEN_ANSWER for pair in answers for part in pair):
        raise UsageError(f"{names} still have their placeholders; fill in the answer")
    return answers


def _typed(text: str) -> str:
    """Returns a text on one line, so that none of it can pass for an instruction."""
    return " ".join(clean(text.encode("utf-8", "replace").decode()).split())


def _read(param: Param | None, name: str, text: str) -> Any:
    """Returns the value of an option; lists and mappings may be written as JSON."""
    option = option_name(name.removeprefix(_PREFIX))
    # Agents paste commands as they are printed; a placeholder that was not filled in would be taken
    # for a report.
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


def as_json(evaluated: EvaluatedStep, target: SkillPlace, answers: Answers = ()) -> dict[str, Any]:
    """Returns the step for programs; `target` is how its commands find the skill."""
    following, dispatch = evaluated.following, evaluated.output.dispatch
    shown = {
        "workflow": evaluated.workflow.name,
        "step": evaluated.number,
        "total_steps": evaluated.workflow.total_steps,
        "step_id": evaluated.step.id,
        "title": evaluated.output.title,
        "actions": [*_actions(evaluated)],
        "next_command": command_text(following, target) if following is not None else None,
        "next_commands": {
            label: command_text(command, target) if command is not None else None
            for label, command in evaluated.choices.items()
        },
    }
    if dispatch is None:
        return shown
    launched = _launched(evaluated)
    if may_ask(evaluated.step):
        launched["answer_command"] = _answer_command(evaluated, target, answers)
    if answers:
        launched["user_response"] = sub_agents.typed_response(answers)
    return {**shown, "dispatch": launched}


def as_text(evaluated: EvaluatedStep, target: SkillPlace, answers: Answers = ()) -> str:
    """Returns the step for agents and people; `answers` are those of the user to a sub-agent."""
    workflow, output = evaluated.workflow, evaluated.output
    place = f"{workflow.name}, step {evaluated.number} of {workflow.total_steps}"
    title = f"{place}: {output.title or output.step}"
    if output.dispatch is not None:
        more = [*_launch(evaluated, target, answers)]
    else:
        folder = evaluated.state_dir
        more = [f"The state directory is {json_text(folder)}."] if folder else []
        more += _round(evaluated)
    return step_text.page(title, _actions(evaluated), [*more, *_end(evaluated, target)])


def _actions(evaluated: EvaluatedStep) -> Sequence[str]:
    """Returns the instructions of the step; none if its rounds are over."""
    return () if evaluated.is_over else evaluated.output.actions


def _round(evaluated: EvaluatedStep) -> Iterator[str]:
    """Yields which round of a step this is; the instructions are the same in each of them."""
    domain = stateless.iterations(evaluated.workflow, evaluated.step)
    if domain is None or evaluated.limit is not None:
        return
    if evaluated.is_over:
        yield "What you reported ends the rounds of this step: do not do another one."
    elif evaluated.iteration > 1 or evaluated.output.outcome is Outcome.ITERATE:
        yield f"This is round {evaluated.iteration}; there are at most {domain.hi}."


def may_ask(step: StepDef) -> bool:
    """Tells whether a step has a sub-agent that may ask the user."""
    return isinstance(step.handler, Dispatch) and step.handler.supports_questions


def _launched(evaluated: EvaluatedStep) -> dict[str, Any]:
    """Returns what is known about the sub-agent to launch; a gate adds fields of its own."""
    dispatch = evaluated.output.dispatch
    if isinstance(dispatch, Dispatch):
        return {each.name: getattr(dispatch, each.name) for each in fields(dispatch)}
    return {"agent": dispatch.agent} if dispatch is not None else {}


def _launch(evaluated: EvaluatedStep, target: SkillPlace, answers: Answers) -> Iterator[str]:
    """Yields how to launch the sub-agent of the step."""
    launched = _launched(evaluated)
    # One sub-agent for each value of a list: only a run can do that by itself, so the main agent is
    # told to.
    each = launched.get("for_each")
    what = f"a sub-agent for each of {each!r}, all at once," if each else "a sub-agent"
    yield (
        f"Do not do this step yourself. Launch {what} with the role {str(launched['agent'])!r}, "
        "and give it the instructions above."
    )
    if evaluated.state_dir:
        yield f"Tell it that the state directory is {json_text(evaluated.state_dir)}."
    if launched.get("script"):
        # A script may have options of its own, such as the phase of a quality review.
        script = shlex.split(launched["script"])
        # One that is part of signoff is found everywhere.
        pinned = target.folder if not script[0].startswith("signoff.") else ""
        words = [*sub_agents.RUN_SCRIPT, *(["--project-dir", pinned] if pinned else ()), *script]
        if evaluated.state_dir:
            words += [option_name(STATE_DIR), evaluated.state_dir]
        what = "Tell it to run this and follow what it prints:"
        yield step_text.commands(what, shlex.join(words))
    if launched.get("context_vars"):
        context = json_text(dict(launched["context_vars"]), indent=2, default=str)
        yield f"Give it this context:\n\n{context}"
    if not launched.get("free_form"):
        yield "Ask it for a verdict, pass or fail, with its reasons. Anything unclear is a fail."
    yield f"Tell it: {sub_agents.BUDGET_RULE}"
    if may_ask(evaluated.step):
        yield from _relay(evaluated, target, answers)


def _relay(evaluated: EvaluatedStep, target: SkillPlace, answers: Answers) -> Iterator[str]:
    """Yields what lets the sub-agent ask, and brings the answers back to it."""
    yield f"Give it this as well:\n\n{_set_apart(sub_agents.SUB_AGENT_QUESTION_FORMAT)}"
    if answers:
        yield (
            "The user has answered. End its task with the answers, and add the text of each "
            f"question as <question>:\n\n{_set_apart(sub_agents.typed_response(answers))}"
        )
    yield QUESTION_RELAY_HANDLER
    yield step_text.commands(
        "This prints the step with the answers; repeat both options for each answer:",
        _answer_command(evaluated, target, answers),
    )


def _answer_command(evaluated: EvaluatedStep, target: SkillPlace, answers: Answers) -> str:
    """Returns the command for this step with the answers so far, and one more to fill in."""
    pairs = [*answers, OPEN_ANSWER]
    more = [
        each for header, value in pairs for each in ((ANSWER_ID, header), (ANSWER_VALUE, value))
    ]
    return command_text(evaluated.again, target, more)


def _set_apart(text: str) -> str:
    """Returns a text for someone else, set apart from the instructions around it."""
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _end(evaluated: EvaluatedStep, target: SkillPlace) -> Iterator[str]:
    if evaluated.limit is not None:
        yield (
            f"This was round {evaluated.limit}, the last one that this step may have, and it "
            "is not finished. Stop, and report to the user what is still open."
        )
    elif evaluated.is_last:
        yield step_text.LAST_STEP
    elif evaluated.following is not None:
        yield step_text.when_done(command_text(evaluated.following, target))
    else:
        gate = evaluated.step.gate
        if gate is not None:
            yield f"Ask the user, and wait for the answer: {gate.prompt}"
        for label, command in evaluated.choices.items():
            yield _choice(_condition(evaluated, label), command, target)


def _condition(evaluated: EvaluatedStep, label: str) -> str:
    """Returns when one of several commands is run."""
    # A sub-agent that gives no verdict has one way on, and a condition would only make its caller
    # wonder.
    if len(evaluated.choices) == 1 and evaluated.output.dispatch is not None:
        return "When it is done"
    return _VERDICTS.get(label, f"If the answer is {label!r}")


def _choice(condition: str, command: NextCommand | None, target: SkillPlace) -> str:
    if command is None:
        return f"{condition}, stop: the skill ends there."
    return step_text.commands(f"{condition}, run:", command_text(command, target))


def run_step(workflow: Workflow, target: str, file: Path, arguments: Sequence[str]) -> int:
    """Shows a step of a skill by its name, or by `target` if the name does not lead to `file`."""
    found_by = workflow.name if _is_found(workflow.name, file) else target
    # A sub-agent is told to run a module, and knows nothing of steps yet.
    step = [] if _names_step(arguments) else ["--step", "1"]
    return run_command([*step_text.PROGRAM[1:], found_by, *step, *arguments])


def _names_step(arguments: Sequence[str]) -> bool:
    return any(
        each in ("--step", "-h", "--help") or each.startswith("--step=") for each in arguments
    )


def _is_found(name: str, file: Path) -> bool:
    with suppress(SignoffError):
        return find_source(name, context_here()).path.resolve() == file
    return False


# `signoff skill script`: runs a sub-agent's script in the Python that signoff is installed in.
#
# Which `python3` an agent finds depends on its shell, and it often lacks signoff.


@click.command(
    cls=cli.CliCommand,
    # Everything after the module belongs to the script, options included.
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@cli.project_dir_option
@click.argument("module", metavar="MODULE")
@click.argument("arguments", metavar="[ARGUMENT]...", nargs=-1, type=click.UNPROCESSED)
def script(module: str, arguments: Sequence[str]) -> None:
    """Run the script of a sub-agent.

    MODULE is a Python module of the project, of its `skills` folder, or of an installed package.
    It runs like `python -m MODULE`, in the Python that signoff is installed in.

    Examples:
      signoff skill script signoff.skills.quality_review --phase plan-design --state-dir DIR
    """
    context = context_here()
    context.trust("skills")
    # The same places in which a skill's own module is found, so that its scripts can be next to it.
    make_importable([Path.cwd(), context.root, *skills_folder(context)])
    extend_import_path(module)
    if not _exists(module):
        raise UsageError(f"unknown script {module!r}: there is no Python module of that name")
    # That a package imports its own script is nothing the agent could do anything about.
    filterwarnings("ignore", category=RuntimeWarning, module="runpy")
    # The script sees its arguments as if Python had been started with it.
    sys.argv[1:] = arguments
    try:
        ran = run_module(module, run_name="__main__", alter_sys=True)
    except SignoffError:
        raise
    except Exception as error:  # a user's script may raise anything at all
        raise HandlerFailed(f"the script {module} failed: {describe_failure(error)}") from error
    # Those of the library end without a call of `main`; a sub-agent can follow them all the same.
    if isinstance(workflow := ran.get(NAME), Workflow):
        file = Path(ran["__file__"]).resolve()
        sys.exit(run_step(workflow, f"{module}:{NAME}", file, arguments))


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
