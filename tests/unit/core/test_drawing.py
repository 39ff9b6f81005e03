from signoff import Edge, End, Gate, GateOption, Outcome, StepDef, Workflow
from signoff.core import drawing


def review_loop() -> Workflow:
    return Workflow(
        "review",
        StepDef("draft", "Write it", next={Outcome.OK: "judge"}),
        StepDef(
            "judge",
            next={
                Outcome.OK: None,
                Outcome.ITERATE: Edge("draft", bound=3, starts_iteration=True),
                Outcome.FAIL: End.REJECTED,
            },
        ),
        description="until it is good",
    )


def test_the_text_shows_every_step_and_where_each_outcome_leads() -> None:
    """People check a workflow by reading this before they pay for a run."""
    assert drawing.text(review_loop()) == (
        "review: 2 steps, until it is good\n"
        "\n"
        "▶ draft  Write it\n"
        "    ok  → judge\n"
        "\n"
        "• judge\n"
        "    ok       → [completed]\n"
        "    iterate  ↺ draft  (at most 3 times)\n"
        "    fail     → [rejected]\n"
    )


def test_mermaid_draws_every_edge_and_dots_the_loops() -> None:
    """The drawing goes into documents; an edge left out would mislead their readers."""
    lines = drawing.mermaid(review_loop()).splitlines()

    assert lines[0] == "flowchart TD"
    assert '    s0 -- "ok" --> s1' in lines
    assert '    s1 -. "iterate ≤3" .-> s0' in lines
    assert '    s1 -- "fail" --> rejected' in lines
    assert '    s1 -- "ok" --> completed' in lines
    assert '    rejected(["rejected"])' in lines


def test_names_that_mean_something_to_mermaid_do_no_harm() -> None:
    """A step called `end`, or a quote in a title, would break the drawing."""
    flow = Workflow("x", StepDef("end", 'say "hi" <b> #1', next={Outcome.OK: None}))

    drawn = drawing.mermaid(flow)

    assert '["end: say #quot;hi#quot; #lt;b#gt; #35;1"]' in drawn
    assert "\n    end" not in drawn


def test_a_gate_is_drawn_with_its_options() -> None:
    """Where a person decides is what a reviewer of the graph looks for."""
    gate = Gate("Ship it?", [GateOption("ship", None), GateOption("again", Edge("draft", 2))])
    flow = Workflow("x", StepDef("draft", gate=gate))

    assert '{{"draft"}}' in drawing.mermaid(flow)
    assert "gate:again  ↺ draft  (at most 2 times)" in drawing.text(flow)


def test_the_data_form_holds_what_the_drawings_show() -> None:
    """Programs draw their own pictures from it."""
    data = drawing.data(review_loop())

    assert [step["id"] for step in data["steps"]] == ["draft", "judge"]
    assert data["edges"][2] == {
        "from": "judge",
        "on": "iterate",
        "to": "draft",
        "end": None,
        "loops": True,
        "bound": 3,
        "starts_iteration": True,
    }
    assert data["edges"][1]["end"] == "completed"
