"""Flow, goal and constraint files that are invalid, or that ask for what is not allowed."""

import json

import pytest

from tests.acceptance.desk import (
    DRAFT,
    FINAL,
    Desk,
    finds,
    issue,
    mends,
    passes,
    rules,
    writes,
)

FLOW = """\
max_iterations: 2
workflow:
  - {step: generate, name: draft}
  - {step: critique, name: review}
  - {step: adjudicate, name: judge}
  - {step: refine, name: fix, loop_to: review}
"""
GOOD = (writes(FINAL), passes(), rules("APPROVED"))


def begin(desk: Desk, flow: str = FLOW) -> None:
    """Sets up a flow that would be approved at once."""
    desk.flow(flow)
    desk.constraints("clear")
    desk.play(*GOOD)


def test_one_constraint_of_ten_that_does_not_parse_prevents_the_run(
    desk: Desk,
) -> None:
    """A review against nine of ten requirements must not look like a review against ten."""
    desk.flow(FLOW)
    desk.constraints(*(f"c{n}" for n in range(9)))
    desk.write(".signoff/constraints/broken.yaml", "id: broken\nrules: [\n  {id: x\n")

    done = desk.run()

    assert (done.code, desk.calls) == (2, [])
    assert ".signoff/constraints/broken.yaml:4: " in done.err
    assert "has 1 problem" in done.err
    assert not desk.place.exists()


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("flow.yaml", "frobnicate: 1\n", "flow.yaml:7: unknown key 'frobnicate' (valid: "),
        ("flow.yaml", "max_iteration: 1\n", "flow.yaml:7: unknown key 'max_iteration' (did you"),
        (
            "flow.yaml",
            "default_behavior: {critical: stop}\n",
            "default_behavior.critical is 'stop' (one of: halt, continue, escalate, ignore)",
        ),
        (
            "flow.yaml",
            "adjudication: {approval: {block_on: [HUGE]}}\n",
            "approval.block_on[0] is 'HUGE' (one of: CRITICAL, HIGH, MEDIUM, LOW)",
        ),
        ("goal.yaml", "sauce: 3\n", "goal.yaml:2: unknown key 'sauce' (did you mean 'source'?"),
        (
            ".signoff/constraints/clear.yaml",
            "behavior: {huge: halt}\n",
            "clear.yaml:6: unknown key 'huge' (valid: critical, high, medium, low)",
        ),
        (
            ".signoff/constraints/clear.yaml",
            "priority: 2\n",
            'clear.yaml:6: found duplicate key "priority"',
        ),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_what_is_valid(
    desk: Desk, file: str, text: str, message: str
) -> None:
    """Users should be able to fix a typo without opening the manual."""
    begin(desk)
    path = desk.folder / file
    path.write_text(path.read_text() + text)

    run, checked = desk.run(), desk.here("validate", "flow.yaml", "--goal", "goal.yaml")

    assert (run.code, checked.code, desk.calls) == (2, 2, [])
    assert message in run.err
    assert message in checked.out


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("{step: critique, execution: sideways}", ":4: workflow[1].execution is 'sideways' (one"),
        ("{step: critique, order: random}", ":4: workflow[1].order is 'random' (one of: priority"),
        ("{step: adjudicate, scope: some}", ":4: workflow[1].scope is 'some' (one of: accum"),
        ("{step: refine, mode: edt}", ":4: workflow[1].mode is 'edt' (one of: edit, rewrite"),
        ("{step: refine, loop_to: nowhere}", ":4: workflow[1].loop_to is 'nowhere', an unknown"),
        ("{step: critique, loop_to: draft}", ":4: unknown key 'loop_to' (only refine steps have"),
        ("{step: polish}", ":4: workflow[1].step is 'polish' (one of: generate, critique"),
        ("{step: critique, name: draft}", ":4: 'draft' is the name of workflow[0] and of"),
    ],
)
def test_an_invalid_step_is_reported_with_the_valid_choices(
    desk: Desk, step: str, message: str
) -> None:
    """Nothing is started, and no default replaces an invalid value."""
    begin(desk, f"max_iterations: 1\nworkflow:\n  - {{step: generate, name: draft}}\n  - {step}\n")

    done = desk.run()

    assert (done.code, desk.calls) == (2, [])
    assert f"flow.yaml{message}" in done.err


def test_a_flow_without_a_goal_is_refused_with_a_remedy(desk: Desk) -> None:
    """The first thing a newcomer forgets."""
    begin(desk)

    done = desk.here("run", "flow.yaml", "--name", "one")

    assert (done.code, desk.calls) == (2, [])
    assert "--goal" in done.err


def test_sources_outside_the_project_are_never_read(desk: Desk) -> None:
    """Someone else's flow must not send private files to a vendor."""
    begin(desk)
    outside = desk.folder.parent / f"{desk.folder.name}.md"
    outside.write_text("TOP SECRET")
    (desk.folder / "link.md").symlink_to(outside)
    paths = ["notes.txt", f"../{outside.name}", "link.md", str(outside)]
    source = {"files": paths, "globs": [f"../{outside.name}", "*.md"], "inline": "It is blue."}
    desk.write("notes.txt", "It is salty.")
    desk.write("goal.yaml", json.dumps({"goal": "Write about the sea.", "source": source}))

    done = desk.run()

    asked = desk.read("iterations/1/prompt_generate_claude.txt")
    assert done.code == 0, done.err
    assert "It is salty." in asked
    assert "It is blue." in asked
    assert not any("TOP SECRET" in desk.read(name) for name in desk.names)
    for path in paths[1:]:
        assert f"warning: sources of the goal: {path}: " in done.err


def test_scripts_run_only_when_they_are_allowed(desk: Desk) -> None:
    """Running someone else's flow must not run their programs."""
    begin(desk)
    desk.write("goal.yaml", "goal: Write.\nsource: {scripts: [sh facts.sh]}\n")
    desk.write("facts.sh", "echo ran >> ran.txt\necho It is salty.\n")
    desk.constraints("clear", clear="script: sh check.sh\n")
    desk.write("check.sh", "echo ran >> ran.txt\nwc -w\n")

    refused = desk.run()
    ran = (desk.folder / "ran.txt").exists()
    prompt = desk.read("iterations/1/prompt_generate_claude.txt")
    again = ("run", "flow.yaml", "--goal", "goal.yaml", "--name", "two", "--allow-scripts")
    allowed = desk.here(*again)

    assert (refused.code, ran) == (0, False), refused.err
    assert "scripts run only if the run allows them (allow_scripts)" in refused.err
    assert "It is salty." not in prompt
    assert allowed.code == 0, allowed.err
    two = desk.folder / ".signoff/runs/two/iterations/1"
    assert "It is salty." in (two / "prompt_generate_claude.txt").read_text()
    analysis = (two / "critiques/prompt_clear_claude.txt").read_text()
    assert "exit code 0" in analysis
    assert (desk.folder / "ran.txt").read_text() == "ran\nran\n"


def test_critics_of_the_authors_family_are_refused_if_the_flow_asks_for_that(desk: Desk) -> None:
    """Models of one family share their blind spots."""
    begin(desk, f"{FLOW}independence: different_family\n")

    refused = desk.run()
    desk.flow(
        f"{FLOW}independence: different_family\n".replace("critique,", "critique, agent: gemini,")
    )
    independent = desk.run()

    assert refused.code == 2
    assert "of the author's family anthropic: claude" in refused.err
    assert independent.code == 0, independent.err
    assert "independence" not in independent.err


def test_critics_of_the_authors_family_are_reported_if_that_is_enough(desk: Desk) -> None:
    """Readers of the report must know how much the approval is worth."""
    begin(desk, f"{FLOW}independence: {{rule: different_family, otherwise: report}}\n")

    done = desk.run()

    assert done.code == 0, done.err
    assert "critics are not independent: of the author's family anthropic: claude" in done.err


def test_a_dry_run_shows_what_would_happen_and_starts_nothing(desk: Desk) -> None:
    """Users see the maximum cost and the reviewers before anything is paid for."""
    begin(desk)
    desk.constraints("clear", "short")

    text = desk.run("--dry-run")
    content = desk.run("--dry-run", "--json").json

    assert text.code == 0, text.err
    assert "at most 10 calls: 5 a round, 2 rounds" in text.out
    assert "constraints clear, short" in text.out
    assert content["calls"] == {"per_round": 5, "rounds": 2, "at_most": 10, "again_at_most": 6}
    (review,) = [step for step in content["plan"] if step["step"] == "review"]
    assert [each["constraint"] for each in review["asks"]] == ["clear", "short"]
    assert all(each["prompt_chars"] > 500 for each in review["asks"])
    assert desk.calls == []
    assert not desk.place.exists()


def test_no_run_makes_more_calls_than_its_dry_run_shows(desk: Desk) -> None:
    """An upper bound must always hold."""
    desk.flow(FLOW)
    desk.constraints("clear", "short")
    desk.play(writes(), finds("clear", issue()), passes(), rules("REWRITE", bill="x"), mends("e"))
    bound = desk.run("--dry-run", "--json").json["calls"]["at_most"]

    done = desk.run()

    assert done.code == 11, done.err
    assert len(desk.calls) <= bound


def test_patterns_that_match_nothing_are_warned_about(desk: Desk) -> None:
    """A misspelled pattern would otherwise silently skip a constraint."""
    desk.flow(
        FLOW.replace("critique,", "critique, constraints: ['clear', 'legal*'],")
        + "constraints: {routing: {rules: [{match: 'secur*', agents: [claude]}]}}\n"
    )
    desk.constraints("clear", "other")

    text = desk.here("validate", "flow.yaml", "--goal", "goal.yaml")
    content = desk.here("validate", "flow.yaml", "--goal", "goal.yaml", "--json").json

    assert text.code == 0
    assert "flow.yaml:4: workflow[1].constraints[1]: 'legal*' matches no constraint" in text.err
    assert [each["what"].partition(": ")[2] for each in content["warnings"]] == [
        "workflow[1].constraints[1]: 'legal*' matches no constraint",
        "constraints.routing.rules[0].match: 'secur*' matches no constraint",
        "no critique step reviews the artifact against 'other'",
    ]
    assert (content["valid"], content["problems"]) == (True, [])


def test_the_graph_shows_the_loops_of_a_flow(desk: Desk) -> None:
    """Users check their loops visually."""
    begin(desk)

    drawn = desk.here("graph", "flow.yaml")
    edges = desk.here("graph", "flow.yaml", "--json").json["edges"]
    mermaid = desk.here("graph", "flow.yaml", "--format", "mermaid")

    assert "ok  -> review  (loop, next iteration)" in drawn.out
    assert [edge["to"] for edge in edges if edge["starts_iteration"]] == ["review"]
    assert "review" in mermaid.out


def test_show_has_the_history_of_the_findings(desk: Desk) -> None:
    """Whether the loop converges is the first question about a run."""
    desk.flow(FLOW)
    desk.constraints("clear")
    two = (issue(), issue("MEDIUM", "wide", finding="Too wide."))
    desk.play(
        writes(),
        finds("clear", *two, contains=DRAFT),
        finds("clear", two[1]),
        rules("REWRITE", bill="x"),
        mends(),
    )

    run, text = desk.run("--json").json, desk.here("show", "one").out
    content = desk.here("show", "one", "--json").json

    assert run["exit_code"] == content["exit_code"] == 11
    rows = [line.split() for line in text.splitlines() if line.strip()[:1] in ("1", "2")]
    assert rows[0][:3] == ["1", "2", "HM"]
    assert rows[1][:3] == ["2", "1", "M"]
    assert "Too wide." in text
    assert [(each["new"], each["persisting"], each["fixed"]) for each in content["rounds"]] == [
        (2, 0, 0),
        (0, 1, 1),
    ]


def test_an_api_key_that_the_vendor_refuses_ends_the_run_with_a_remedy(desk: Desk) -> None:
    """Exit code 1 is for errors that neither a retry nor an answer can fix."""
    begin(desk)
    refused = {"type": "result", "is_error": True, "result": "Invalid API key"}
    raw = f"{json.dumps(refused | {'api_error_status': 401})}\n"
    desk.play({"step": "generate", "raw": raw, "code": 1})

    failed = desk.run()
    desk.play(*GOOD)
    mended = desk.here("resume", "one", "--json")

    assert failed.code == 1
    assert "/login" in failed.out
    assert (mended.code, mended.json["status"]) == (0, "completed"), mended.err


def test_a_limit_on_calls_stops_a_flow_between_two_of_them(desk: Desk) -> None:
    """Paid results are stored, and a higher limit lets the run continue."""
    begin(desk)

    stopped = desk.run("--limit", "calls=2")
    more = desk.here("resume", "one", "--limit", "calls=3")

    assert (stopped.code, more.code) == (12, 0), more.err
    assert desk.asked("step") == ["generate", "critique", "adjudicate"]
