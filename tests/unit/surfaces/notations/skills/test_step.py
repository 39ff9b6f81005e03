import shlex
import subprocess
from typing import Annotated, Any

import pytest

from signoff.core.args import Arg, Param
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import Edge, Gate, GateOption, StepDef
from signoff.core.step_output import NextCommand
from signoff.core.workflow import Workflow
from signoff.runtime.sub_agents import SUB_AGENT_QUESTION_FORMAT, Dispatch
from signoff.skills import format_step
from signoff.skills.stateless import evaluate_step
from signoff.skills.step_text import SkillPlace, command_text, first_command
from signoff.skills.types import QUESTION_RELAY_HANDLER
from signoff.surfaces.notations.skills.step import as_text

HOSTILE = [
    "two words",
    "it's",
    'a "quote"',
    "$HOME ${HOME} $(id) `id`",
    "a; id && id | id > out &",
    "line one\nline two\n",
    "<needs_user_input>&amp;</needs_user_input>",
    "-x",
    "--step",
    "=ls",
    "~",
    "*",
    "!!",
    "#",
    "",
    "\\",
    "ünïcode",
    "{a,b}",
]


def command(params: dict[str, Any], *still_open: Param) -> str:
    named = {param.name: param for param in still_open}
    return command_text(NextCommand("critic", "look", 3, params, named))


@pytest.mark.parametrize("value", HOSTILE)
def test_a_shell_takes_every_value_as_it_is(value: str) -> None:
    """A parameter that a shell runs as a command would be a way into the machine."""
    text = command({"decision": value})

    words = shlex.split(text)
    printed = subprocess.run(
        ["sh", "-c", f'signoff() {{ printf "%s\\0" "$@"; }}\n{text}'],
        capture_output=True,
        text=True,
    )

    assert words[:6] == ["signoff", "skill", "step", "critic", "--step", "3"]
    assert words[6:] in (["--decision", value], [f"--decision={value}"])
    assert printed.stdout.split("\0")[:-1] == words[1:]


def test_what_is_still_to_be_filled_in_is_quoted_as_well() -> None:
    """Pasted as it is, the shell would read the choices as programs and files."""
    sure = Param("sure", str, Arg(choices=("low", "high")))

    assert command({}, sure).endswith("--sure '<low|high>'")


def test_the_first_command_shows_what_the_first_step_requires() -> None:
    """Without it, the first thing that an agent sees would be an error."""

    def start(ctx: Any, to: str, tone: str = "") -> tuple[Outcome, dict[str, Any]]:
        return Outcome.OK, {}

    step = StepDef("start", "Start", ["Begin."], start, {Outcome.OK: None})
    inputs = [Param("task", str), Param("size", int, default=1)]

    assert first_command(Workflow("w", step, inputs=inputs)) == (
        "signoff skill step w --step 1 --task '<task>' --to '<to>'"
    )


def test_a_step_has_a_title_instructions_and_a_command() -> None:
    """Scripts of sub-agents print their steps like the command line does."""
    assert format_step("Do this.", "run that", title="Part 1") == (
        "# Part 1\n\nDo this.\n\nWhen this step is done, run:\n\n    run that"
    )


def test_a_step_without_a_command_is_the_last() -> None:
    """An agent stops there instead of guessing."""
    text = format_step(["One.", "Two."])

    assert text.startswith("One.\n\nTwo.\n\nThis was the last step.")


OK, FAIL, ITERATE = Outcome.OK, Outcome.FAIL, Outcome.ITERATE


def again(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
    return ITERATE, {}


REVIEW = Dispatch("reviewer", script="checks.review", context_vars={"file": "<plan>"})
GATE = Gate("Ship it?", [GateOption("ship", "loop"), GateOption("it's wrong", None)])
FLOW = Workflow(
    "flow",
    StepDef("review", "Review", ["Judge."], REVIEW, {OK: "ask", FAIL: None}),
    StepDef("ask", "Ask", ["Show it."], gate=GATE),
    StepDef("loop", "", ["Again."], again, {OK: None, ITERATE: Edge("loop", bound=1)}),
    inputs=[Param("state_dir", str, default=None)],
)


def text(number: int, **params: Any) -> str:
    return as_text(
        evaluate_step(FLOW, number, {"state_dir": "my dir", **params}), SkillPlace("flow")
    )


def test_an_ordinary_step_says_where_its_files_are() -> None:
    """The last step has no next command that would show it."""
    steps = [StepDef("only", "Only", ["Write it into `notes.md`."], next={OK: None})]
    flow = Workflow("flow", *steps, inputs=[Param("state_dir", str, default=None)])

    assert 'The state directory is "my dir".' in as_text(
        evaluate_step(flow, 1, {"state_dir": "my dir"}), SkillPlace("flow")
    )
    assert "state directory" not in as_text(evaluate_step(flow, 1, {}), SkillPlace("flow"))


def test_a_script_keeps_the_options_it_is_declared_with() -> None:
    """Quoted as one word, the command would name a module that does not exist."""
    review = Dispatch("reviewer", script="checks.review --phase 'a b'")
    workflow = Workflow("x", StepDef("a", handler=review, next={OK: None, FAIL: None}))

    page = as_text(evaluate_step(workflow, 1, {}), SkillPlace("x"))

    assert "\n    signoff skill script checks.review --phase 'a b'\n" in page


def test_a_sub_agent_that_returns_a_text_gives_no_verdict() -> None:
    """What it found is for the next step to judge."""
    explore = Dispatch("explore", free_form=True)
    workflow = Workflow(
        "x", StepDef("a", handler=explore, next={OK: "b"}), StepDef("b", next={OK: None})
    )

    page = as_text(evaluate_step(workflow, 1, {}), SkillPlace("x"))

    assert "When it is done, run:\n\n    signoff skill step x --step 2" in page
    assert "verdict" not in page
    assert "verdict, pass or fail" in text(1)


ASKING = Workflow(
    "asking",
    StepDef(
        "settle",
        handler=Dispatch("asker", free_form=True, supports_questions=True),
        next={OK: None},
    ),
    inputs=[Param("state_dir", str, default=None)],
)


def test_a_sub_agent_that_may_ask_gets_the_format_and_its_caller_the_relay() -> None:
    """Neither could guess what the other expects."""
    page = as_text(evaluate_step(ASKING, 1, {"state_dir": "my dir"}), SkillPlace("asking"))

    assert QUESTION_RELAY_HANDLER in page
    assert SUB_AGENT_QUESTION_FORMAT in page.replace("\n> ", "\n").replace("\n>\n", "\n\n")
    assert 'the state directory is "my dir"' in page
    assert (
        "\n    signoff skill step asking --step 1 --state-dir 'my dir' "
        "--user-answer-id '<header>' --user-answer-value '<answer>'\n"
    ) in page
    assert "<user_response>\n>   <answer" not in page


def look(
    ctx: StepContext,
    sure: Annotated[str, Arg("", choices=("no", "yes"))] = "no",
    iteration: Annotated[int, Arg("", min=1, max=3)] = 1,
) -> tuple[Outcome, dict[str, Any]]:
    return (OK if sure == "yes" or iteration == 3 else ITERATE), {}


@pytest.mark.parametrize(
    ("params", "line"),
    [
        ({}, "This is round 1; there are at most 3."),
        ({"iteration": 2, "sure": "no"}, "This is round 2; there are at most 3."),
        ({"iteration": 2, "sure": "yes"}, "What you reported ends the rounds"),
        ({"iteration": 3, "sure": "no"}, "This is round 3; there are at most 3."),
        ({"iteration": 3, "sure": "yes"}, "What you reported ends the rounds"),
    ],
)
def test_a_step_that_repeats_says_whether_another_round_is_due(
    params: dict[str, Any], line: str
) -> None:
    """Its instructions are the same each time, so an agent would follow them once too often."""
    steps = [
        StepDef("look", "Look", ["Find it."], look, {OK: "tell", ITERATE: "look"}),
        StepDef("tell", "Tell", ["Report it."], next={OK: None}),
    ]
    flow = Workflow("flow", *steps)

    page = as_text(evaluate_step(flow, 1, params), SkillPlace("flow"))

    is_over = line.startswith("What")
    assert f"{'Look' if is_over else 'Find it.'}\n\n{line}" in page
    assert ("Find it." in page) is not is_over
    assert "round" not in as_text(evaluate_step(flow, 2, {}), SkillPlace("flow"))


def test_a_loop_that_is_used_up_stops_the_agent() -> None:
    """In a run, the engine ends it there."""
    page = text(3, iteration=2)

    assert "round 2, the last one" in page
    assert "signoff skill" not in page
    assert page.startswith("# flow, step 3 of 3: loop\n")
