"""An evaluated step as the text or the JSON that `signoff skill step` prints."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.step_output import NextCommand
from signoff.documents.control_characters import json_text
from signoff.runtime.dispatch import BUDGET_RULE, RUN_SCRIPT, Dispatch, typed_response
from signoff.skills.commands.command_text import SkillPlace, command_text, option_name
from signoff.skills.questions import QUESTION_RELAY_HANDLER, SUB_AGENT_QUESTION_FORMAT
from signoff.skills.stateless import STATE_DIR, EvaluatedStep, iterations
from signoff.skills.step_text import LAST_STEP, commands, page, when_done

ANSWER_ID, ANSWER_VALUE = "user_answer_id", "user_answer_value"
"""The parameters that bring a user's answers back: the header of a question, and its answer."""
OPEN_ANSWER = ("<header>", "<answer>")
"""Stands for an answer to fill in."""

Answers = Sequence[tuple[str, str]]

_VERDICTS = {Outcome.OK.value: "If it passes", Outcome.FAIL.value: "If it fails"}


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
        launched["user_response"] = typed_response(answers)
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
    return page(title, _actions(evaluated), [*more, *_end(evaluated, target)])


def _actions(evaluated: EvaluatedStep) -> Sequence[str]:
    """Returns the instructions of the step; none if its rounds are over."""
    return () if evaluated.is_over else evaluated.output.actions


def _round(evaluated: EvaluatedStep) -> Iterator[str]:
    """Yields which round of a step this is; the instructions are the same in each of them."""
    domain = iterations(evaluated.workflow, evaluated.step)
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
        words = [*RUN_SCRIPT, *(["--project-dir", pinned] if pinned else ()), *script]
        if evaluated.state_dir:
            words += [option_name(STATE_DIR), evaluated.state_dir]
        yield commands("Tell it to run this and follow what it prints:", shlex.join(words))
    if launched.get("context_vars"):
        context = json_text(dict(launched["context_vars"]), indent=2, default=str)
        yield f"Give it this context:\n\n{context}"
    if not launched.get("free_form"):
        yield "Ask it for a verdict, pass or fail, with its reasons. Anything unclear is a fail."
    yield f"Tell it: {BUDGET_RULE}"
    if may_ask(evaluated.step):
        yield from _relay(evaluated, target, answers)


def _relay(evaluated: EvaluatedStep, target: SkillPlace, answers: Answers) -> Iterator[str]:
    """Yields what lets the sub-agent ask, and brings the answers back to it."""
    yield f"Give it this as well:\n\n{_quoted(SUB_AGENT_QUESTION_FORMAT)}"
    if answers:
        yield (
            "The user has answered. End its task with the answers, and add the text of each "
            f"question as <question>:\n\n{_quoted(typed_response(answers))}"
        )
    yield QUESTION_RELAY_HANDLER
    yield commands(
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


def _quoted(text: str) -> str:
    """Returns a text for someone else, set apart from the instructions around it."""
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _end(evaluated: EvaluatedStep, target: SkillPlace) -> Iterator[str]:
    if evaluated.limit is not None:
        yield (
            f"This was round {evaluated.limit}, the last one that this step may have, and it "
            "is not finished. Stop, and report to the user what is still open."
        )
    elif evaluated.is_last:
        yield LAST_STEP
    elif evaluated.following is not None:
        yield when_done(command_text(evaluated.following, target))
    else:
        gate = evaluated.step.gate
        if gate is not None:
            yield f"Ask the user, and wait for the answer: {gate.prompt}"
        for label, command in evaluated.choices.items():
            yield _choice(_condition(evaluated, label), command, target)


def _condition(evaluated: EvaluatedStep, label: str) -> str:
    """Returns when one of several commands is run."""
    if len(evaluated.choices) == 1 and evaluated.output.dispatch is not None:
        return "When it is done"
    return _VERDICTS.get(label, f"If the answer is {label!r}")


def _choice(condition: str, command: NextCommand | None, target: SkillPlace) -> str:
    if command is None:
        return f"{condition}, stop: the skill ends there."
    return commands(f"{condition}, run:", command_text(command, target))
