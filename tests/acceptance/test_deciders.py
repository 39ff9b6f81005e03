"""Records name who decided."""

from tests.acceptance.flow_project import FlowProject, author_writes, critics_pass

FLOW = """
workflow:
  - {step: generate, agent: claude}
  - {step: critique, name: review, agent: claude}
  - {step: adjudicate, name: judge, agent: gemini}
"""
COMPLETED, WAITING = 0, 10


def test_a_judge_that_was_not_asked_decided_nothing(flow_project: FlowProject) -> None:
    """Critics found nothing, so the rules pass the text, and gemini has no call."""
    flow_project.write_flow(FLOW)
    flow_project.constraints("short")
    flow_project.script(author_writes(), critics_pass())

    done = flow_project.run()

    assert done.code == COMPLETED, done.err
    assert "gemini" not in flow_project.call_fields("agent")
    assert "policy: passed" in done.err
    assert "gemini: passed" not in done.err + flow_project.read("live.log")
    (line,) = [each for each in flow_project.thread if each["phase"] == "adjudicate"]
    assert line["agent"] == "policy"
    assert flow_project.load("state.json")["last_adjudication"]["by"] == "policy"
    report = flow_project.call("report", "one", "--output", "report.md")
    assert report.code == 0, report.err
    assert "gemini" not in (flow_project.folder / "report.md").read_text()


def test_a_constraint_that_a_human_passed_says_so(flow_project: FlowProject) -> None:
    """The critic gave no usable review; it did not pass the text."""
    flow_project.write_flow(FLOW)
    flow_project.constraints("short")
    flow_project.script(author_writes(), {"step": "critique", "text": "I think it is fine."})
    waiting = flow_project.run()

    flow_project.call("answer", "one", "pass", "--by", "ann")
    done = flow_project.call("resume", "one")

    assert (waiting.code, done.code) == (WAITING, COMPLETED), done.err
    decided = "short: passed by ann; claude gave no usable review"
    assert decided in done.err
    assert "ann decided: pass" in flow_project.read("live.log")
    assert "short: passed by claude" not in done.err
    (line,) = [each for each in flow_project.thread if each["phase"] == "critique"]
    assert (line["agent"], line["decided_by"]) == ("claude", "ann")
    assert flow_project.load("iterations/1/critiques/short-claude.json")["decided_by"] == "ann"


def test_a_human_who_judges_sees_what_is_judged(flow_project: FlowProject) -> None:
    """Two blind passes once completed a run whose text was the prompt itself."""
    flow_project.write_flow(FLOW)
    flow_project.constraints("short")
    refused = "I think \x1b[2Jit is fine."
    flow_project.script(author_writes("The see is wide.\n"), {"step": "critique", "text": refused})

    waiting = flow_project.run()
    (request,) = flow_project.call("inbox", "--json").json
    printed = flow_project.call("inbox", "1")

    assert waiting.code == WAITING, waiting.err
    shown = request["shown"]
    assert shown["artifact"] == "The see is wide.\n"
    assert shown["goal"]
    assert "short" in shown["rules"]
    assert shown["reply"] == refused
    assert "The see is wide." in printed.out
    assert "I think" in printed.out
    assert "\x1b[2J" not in printed.out
