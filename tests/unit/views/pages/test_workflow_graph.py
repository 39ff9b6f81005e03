"""Tests of the graph of a workflow as SVG."""

from typing import Any

from signoff import End, Outcome, StepDef, Workflow
from signoff.core.workflow import describe
from signoff.views.pages.workflow_graph import MOST_STEPS, step_list, workflow_graph

HOSTILE = "<script>alert(1)</script>"


def step(name: str, **next_: Any) -> StepDef:
    edges = {Outcome(outcome): goal for outcome, goal in next_.items()}
    return StepDef(name, handler=lambda _context: (Outcome.OK, {}), next=edges)


def definition(*steps: StepDef) -> dict[str, Any]:
    return describe(Workflow("w", *steps, validate=False))


REVIEW = definition(
    step("draft", ok="review"),
    step("review", ok="judge"),
    step("judge", ok=None, iterate="fix", fail=End.NOT_CONVERGING),
    step("fix", ok="review"),
)


def test_the_current_step_loops_and_ends_are_shown() -> None:
    """A reader sees where the run is, and what can still happen."""
    made = workflow_graph(REVIEW, "judge", {"draft": 1, "review": 3, "judge": 2})

    assert made.count('class="now"') == 1
    assert "the run is at judge" in made
    assert '<g class="done"><title>draft</title>' in made
    assert '<g class="todo"><title>fix</title>' in made
    assert made.count('class="loop"') == 1
    assert "3x" in made
    assert "fail → not converging" in made


def test_texts_of_a_definition_stay_texts() -> None:
    """Names and titles of steps may come from anywhere."""
    hostile = {"steps": [{"id": HOSTILE, "title": HOSTILE, "next": {HOSTILE: [HOSTILE]}}]}

    made = workflow_graph(hostile, HOSTILE, {}) + step_list(hostile, HOSTILE)

    assert "<script" not in made
    assert "&lt;script&gt;" in made


def test_a_graph_that_is_too_long_is_only_listed() -> None:
    """A picture of hundreds of boxes helps no one."""
    long = {"steps": [{"id": f"s{n}", "next": {}} for n in range(MOST_STEPS + 1)]}

    assert workflow_graph(long, None, {}) == ""
    assert step_list(long, None).count("<li>") == MOST_STEPS + 1


def test_arrows_beside_each_other_do_not_overlap() -> None:
    """Two loops over the same steps would look like one."""
    made = workflow_graph(
        definition(step("a", ok="b"), step("b", ok="c", fail="a"), step("c", ok=None, fail="a")),
        "a",
        {},
    )

    loops = [part.split('"')[0] for part in made.split('<path d="')[1:] if 'class="loop"' in part]
    columns = {loop.split("H")[1].split(" ")[0] for loop in loops}
    assert len(loops) == len(columns) == 2
