import re
from typing import Annotated

import pytest

from signoff.core import graph
from signoff.core.args import Arg, Param
from signoff.core.context import StepContext
from signoff.core.outcome import End, Outcome
from signoff.core.spend import Limits
from signoff.core.step import Condition, Edge, Gate, GateOption, Result, StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.sub_agents import AgentRole, Dispatch

SHIP = Gate(
    "Ship it?",
    [
        GateOption("yes", None),
        GateOption("again", Edge("draft", 2), requires_input=True),
        GateOption("no", End.REJECTED),
    ],
)


def review() -> Workflow:
    return Workflow(
        "review",
        StepDef(
            "draft",
            "Write it",
            handler=lambda ctx: (Outcome.OK, {}),
            next={Outcome.OK: "judge"},
            on_error="help",
            phase="work",
            preconditions=[Condition("brief given", lambda ctx: True, "no brief")],
        ),
        StepDef(
            "judge",
            handler=Dispatch(AgentRole.QUALITY_REVIEWER),
            next={
                Outcome.OK: "ship",
                Outcome.ITERATE: Edge("draft", 3, starts_iteration=True, on_limit="ask"),
                Outcome.FAIL: End.NOT_CONVERGING,
            },
            phase="work",
            postconditions=[Condition("verdict", lambda ctx: True, "no verdict")],
            retries=2,
            timeout=30,
            limits=Limits(usd=2.5, calls=3),
        ),
        StepDef("ship", gate=SHIP, next={Outcome.FAIL: Edge("judge", 1)}),
        StepDef("help", next={Outcome.DEFAULT: End.FAILED}),
        description="until it is good",
        max_iterations=5,
    )


def test_the_text_shows_every_step_and_where_each_outcome_leads() -> None:
    """People check a workflow by reading this before they pay for a run."""
    assert graph.text(review()) == (
        "review: 4 steps\n"
        "until it is good\n"
        "at most 5 rounds\n"
        "\n"
        "-- work --\n"
        "\n"
        "> draft  Write it\n"
        "    needs  brief given\n"
        "    ok     -> judge\n"
        "    error  -> help\n"
        "\n"
        "  judge\n"
        "    by       quality-reviewer\n"
        "    ensures  verdict\n"
        "    retries  2 times with feedback, then a human decides\n"
        "    timeout  30 seconds\n"
        "    limits   2.5 usd, 3 calls\n"
        "    ok       -> ship\n"
        "    iterate  -> draft  (loop, at most 3 times, then a human decides, next round)\n"
        "    fail     -> [not_converging]\n"
        "\n"
        "-- no phase --\n"
        "\n"
        "  ship\n"
        "    fail     -> judge  (loop, once at most)\n"
        '    ok       -> a human decides: "Ship it?"\n'
        "      yes    -> [completed]\n"
        "      again  -> draft  (loop, at most 2 times, with a reason)\n"
        "      no     -> [rejected]\n"
        "\n"
        "  help\n"
        "    otherwise  -> [failed]\n"
    )


@pytest.mark.parametrize(
    ("retries", "text"),
    [(0, "never, a human decides"), (3, "3 times with feedback, then a human decides")],
)
def test_the_text_says_how_often_a_step_is_tried_again(retries: int, text: str) -> None:
    """Each try is paid for."""
    flow = Workflow("x", StepDef("a", retries=retries, next={Outcome.OK: None}))

    assert f"    retries  {text}\n" in graph.text(flow)


def test_a_loop_that_its_rounds_end_shows_these() -> None:
    """A bound that is never reached would mislead who plans the costs."""

    def look(ctx: StepContext, iteration: Annotated[int, Arg(min=1, max=5)] = 1) -> Result:
        return (Outcome.OK if iteration >= 5 else Outcome.ITERATE), {}

    again = {Outcome.OK: None, Outcome.ITERATE: "look"}
    bounded = {Outcome.OK: None, Outcome.ITERATE: Edge("look", bound=2)}

    assert "(loop, at most 5 rounds)" in graph.text(
        Workflow("w", StepDef("look", handler=look, next=again))
    )
    assert "(loop, at most 2 times)" in graph.text(
        Workflow("w", StepDef("look", handler=look, next=bounded))
    )


def test_the_flowchart_shows_every_step_and_where_each_outcome_leads() -> None:
    """Loops are dotted, gates are diamonds, ends are round: the shape can be read from afar."""
    assert graph.mermaid(review()) == (
        "flowchart TD\n"
        '    subgraph p0["work"]\n'
        '    s0["draft<br/>Write it"]\n'
        '    s1[["judge<br/>by quality-reviewer"]]\n'
        "    end\n"
        '    s2("ship")\n'
        '    s2g{"Ship it?"}\n'
        '    s3("help")\n'
        '    stop_not_converging(["not_converging"])\n'
        '    stop_completed(["completed"])\n'
        '    stop_rejected(["rejected"])\n'
        '    stop_failed(["failed"])\n'
        '    begin(("begin"))\n'
        "    begin --> s0\n"
        '    s0 -->|"ok"| s1\n'
        '    s0 -->|"error"| s3\n'
        '    s1 -->|"ok"| s2\n'
        '    s1 -.->|"iterate, at most 3 times, then a human decides, next round"| s0\n'
        '    s1 -->|"fail"| stop_not_converging\n'
        '    s2 -->|"ok"| s2g\n'
        '    s2 -.->|"fail, once at most"| s1\n'
        '    s2g -->|"yes"| stop_completed\n'
        '    s2g -.->|"again, at most 2 times"| s0\n'
        '    s2g -->|"no"| stop_rejected\n'
        '    s3 -->|"otherwise"| stop_failed\n'
    )


HOSTILE = [
    'say "hi"',
    "a --> b",
    "x]; click s0 callback",
    "<script>alert(1)</script>",
    "`code` and **bold** and _this_",
    '%%{init: {"securityLevel": "loose"}}%%',
    "style s0 fill:#f00;",
    "#quot; &quot; #35;",
    "flow direction LR here",
    "1. first",
    "- point",
    "two\nlines\r\nor\tthree",
    "end",
    "{{a}} | [b] (c) @{shape: d}",
    "back\\slash $$x$$ ~~~ ^",
    "\x1b[31mred\x07\x00",
    "\u202etxet",
    "x" * 500,
]


@pytest.mark.parametrize("words", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_a_title_holds_the_flowchart_keeps_its_lines(words: str) -> None:
    """A title written by a model must not add steps, hide edges or run anything in a browser."""
    gate = Gate(words, [GateOption("yes", None)])
    hostile = Workflow("x", StepDef("a", words, phase=words, gate=gate))
    harmless = Workflow(
        "x", StepDef("a", "t", phase="t", gate=Gate("t", [GateOption("yes", None)]))
    )

    assert _skeleton(graph.mermaid(hostile)) == _skeleton(graph.mermaid(harmless))
    for label in re.findall(r'"(.*)"', graph.mermaid(hostile)):
        rest = re.sub(r"#\d+;|<br/>", "", label)
        assert not set(rest) & set('"<>`#&;%{}[]()|\\$~^*:=@+\n\x1b\x00')
        assert "direction" not in rest
        assert len(rest) < 300


def _skeleton(chart: str) -> list[str]:
    """Returns the chart without its quoted texts."""
    return [re.sub(r'".*"', '""', line) for line in chart.splitlines()]


def test_step_ids_and_labels_may_be_hostile_too() -> None:
    """They are as free as titles, and appear on edges."""
    gate = Gate("?", [GateOption('yes" --> b', None), GateOption("no|", Edge("end"))])
    flow = Workflow("x", StepDef("end", gate=gate))

    chart = graph.mermaid(flow)

    assert 's0("end")' in chart
    assert 's0g -->|"yes#34; #45;#45;#62; b"| stop_completed' in chart
    assert 's0g -.->|"no#124;, at most 20 times"| s0' in chart


def test_words_that_hold_nothing_printable_leave_no_empty_label() -> None:
    """An empty pair of quotes is a syntax error in Mermaid."""
    gate = Gate("\x00", [GateOption("yes", None)])

    assert '""' not in graph.mermaid(Workflow("x", StepDef("a", "\n", phase="\x00", gate=gate)))


def test_nothing_a_terminal_would_obey_reaches_it() -> None:
    """A title with escape codes could otherwise repaint the reader's screen."""
    hostile = "\x1b[2J\x9b31m\u202e\rgone"
    gate = Gate(hostile, [GateOption("yes", None)])
    flow = Workflow("x", StepDef("a", hostile, phase=hostile, gate=gate), description=hostile)

    drawing = graph.text(flow)

    assert all(line.isprintable() for line in drawing.split("\n"))
    assert "gone" in drawing


def test_the_data_form_holds_what_the_drawings_show() -> None:
    """Programs draw their own pictures from it."""
    data = graph.data(review())

    assert data["digest"] == review().digest
    assert data["entry_point"] == "draft"
    assert data["steps"][2] == {"id": "ship", "title": "", "phase": "", "gate": True}
    assert data["edges"][3] == {
        "from": "judge",
        "on": "iterate",
        "to": "draft",
        "end": None,
        "loops": True,
        "bound": 3,
        "starts_round": True,
    }
    assert data["edges"][4]["end"] == "not_converging"
    assert data["edges"][6]["on"] == "gate:yes"
    assert data["edges"][6]["end"] == "completed"


def test_declared_parameters_are_listed() -> None:
    """A user sees what a run takes before starting one."""
    inputs = [
        Param("table", str, Arg("the\ntable", choices=("a", "b"))),
        Param("n", int, default=3),
    ]
    flow = Workflow("x", StepDef("only", next={Outcome.OK: None}), inputs=inputs)

    assert "parameter table: one of a, b, required: the table\n" in graph.text(flow)
    assert "parameter n: whole number, default 3\n" in graph.text(flow)
    assert [each["name"] for each in graph.data(flow)["parameters"]] == ["table", "n"]
