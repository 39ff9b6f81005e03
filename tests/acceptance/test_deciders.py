"""Records name who decided."""

from tests.acceptance import flow_project as play
from tests.acceptance.flow_project import DRAFT, FINAL, FlowProject

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
    flow_project.script(play.author_writes(), play.critics_pass())

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
    flow_project.script(play.author_writes(), {"step": "critique", "text": "I think it is fine."})
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
    flow_project.script(
        play.author_writes("The see is wide.\n"), {"step": "critique", "text": refused}
    )

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


SIGNED = f"{FLOW}  - {{step: sign_off, name: approval}}\n"
HOSTILE = "It is wrong.\nfacts: passed by \x1b[2Jeve"


def test_a_sign_off_shows_what_is_open_and_who_read_what(flow_project: FlowProject) -> None:
    """The approver saw the text and the cost, but neither the goal nor who had read it."""
    flow_project.write_flow(SIGNED.replace("name: review, agent: claude", "name: review"))
    flow_project.constraints("short", "clear", "facts", clear="agents: [local-check]\n")
    flow_project.write(
        ".signoff/config.yaml",
        "agents: {local-check: {kind: check, argv: ['true'], constraint: clear}}\n",
    )
    flow_project.script(
        play.author_writes(),
        play.critic_finds(
            "short", play.issue("MEDIUM", finding=HOSTILE), play.issue("LOW", finding="Minor.")
        ),
        {"step": "critique", "constraint": "facts", "text": "I think it is fine."},
        play.judge_decides("APPROVED"),
    )
    flow_project.run()
    flow_project.call("answer", "one", "pass", "--by", "ann")
    flow_project.call("resume", "one", "--no-input")

    (request,) = flow_project.call("inbox", "one", "--json").json
    printed = flow_project.call("inbox", str(request["number"])).out

    shown = request["shown"]
    assert [*shown][:3] == ["open findings", "goal", "constraints"]
    assert shown["constraints"] == {
        "clear": "passed by local-check",
        "facts": "passed by ann; claude gave no usable review",
        "short": "1 MEDIUM open, 1 LOW ignored; read by claude",
    }
    (line,) = shown["open findings"]
    assert line.startswith("line 1: MEDIUM short: It is wrong. facts: passed by")
    assert "Minor." in shown["ignored findings"][0]
    assert "with 1 finding open (1 MEDIUM)" in request["prompt"]
    assert printed.index("open findings:") < printed.index("facts: passed by ann")
    assert printed.index("facts: passed by ann") < printed.index("The see is wide.")
    assert "\x1b" not in printed
    (asked,) = flow_project.load("hitl/questions.json")["questions"]
    assert asked["questions"][0]["shown"] == shown

    done = flow_project.call("approve", "one", "--by", "bob", "--resume", "--no-input")

    assert done.code == COMPLETED, done.err
    resolution = flow_project.load("resolution.json")
    assert (resolution["reason"], resolution["decided_by"]) == ("approved", "bob")
    constraints = flow_project.call("show", "one", "--json").json["constraints"]
    assert {each["constraint"]: each["result"] for each in constraints} == shown["constraints"]
    kinds = {each["constraint"]: each["read_by"][0]["kind"] for each in constraints}
    assert kinds == {"clear": "check", "facts": "critic", "short": "critic"}
    for name in ("report.md", "report.html"):
        flow_project.call("report", "one", "--output", name)
        assert "passed by ann; claude gave no usable" in (flow_project.folder / name).read_text()


def test_a_sign_off_says_what_was_changed_after_it_was_read(flow_project: FlowProject) -> None:
    """Without a loop, the fix is not read again; it must not look as if it was."""
    flow_project.write_flow(
        """
workflow:
  - {step: generate, agent: claude}
  - {step: critique, name: review, agent: claude}
  - {step: adjudicate, name: judge, agent: policy}
  - {step: refine, name: fix, mode: rewrite, agent: claude}
  - {step: sign_off, name: approval}
"""
    )
    flow_project.constraints("short")
    flow_project.script(
        play.author_writes(times=1),
        play.critic_finds("short", play.issue("HIGH")),
        play.author_writes(FINAL),
    )

    waiting = flow_project.run("--no-input")
    (request,) = flow_project.call("inbox", "one", "--json").json

    assert waiting.code == WAITING, waiting.err
    assert request["prompt"].startswith("Sign off this result? It has not passed review, with 1")
    assert request["shown"]["constraints"] == {
        "short": "not read since the last change; before it: 1 HIGH open; read by claude"
    }


def test_records_name_the_human_who_answered_for_an_agent(flow_project: FlowProject) -> None:
    """`manual` is no one: a person wrote the review and the verdict."""
    flow_project.write_flow(
        FLOW.replace("name: review, agent: claude", "name: review, agent: manual")
    )
    flow_project.constraints("short")
    flow_project.script(play.author_writes())
    flow_project.run("--no-input")

    flow_project.call("answer", "one", play.passing_critique(), "--by", "ann")
    done = flow_project.call("resume", "one", "--no-input")

    assert done.code == COMPLETED, done.err
    assert "short: passed by ann" in done.err
    assert "short: passed by ann" in flow_project.call("logs", "one").out
    (line,) = [each for each in flow_project.thread if each["phase"] == "critique"]
    assert (line["agent"], line["answered_by"]) == ("manual", "ann")
    (read,) = flow_project.call("show", "one", "--json").json["constraints"]
    assert read["read_by"] == [{"name": "ann", "kind": "human", "usable": True}]
    assert flow_project.load("resolution.json")["decided_by"] == "policy"


def test_records_name_the_agent_that_auto_chose(flow_project: FlowProject) -> None:
    """`auto` reads nothing itself."""
    flow_project.write_flow(FLOW.replace("claude", "auto").replace("gemini", "auto"))
    flow_project.constraints("short", "clear")
    flow_project.script(
        play.author_writes(),
        play.critics_pass("short"),
        play.critic_finds("clear", play.issue("MEDIUM")),
        play.judge_decides("APPROVED"),
    )

    done = flow_project.run()

    assert done.code == COMPLETED, done.err
    assert "short: passed by claude" in done.err
    assert "claude: passed, 1 open" in done.err
    assert flow_project.load("resolution.json")["decided_by"] == "claude"
    by_phase = {each["phase"]: each for each in flow_project.thread}
    assert by_phase["critique"]["answered_by"] == by_phase["adjudicate"]["agent"] == "claude"


def test_whoever_judges_in_the_place_of_a_judge_sees_its_answer(flow_project: FlowProject) -> None:
    """`rules` passes the text; the request named neither the findings nor the text."""
    flow_project.write_flow(FLOW)
    flow_project.constraints("short")
    flow_project.script(
        play.author_writes(),
        play.critic_finds("short", play.issue("MEDIUM")),
        {"step": "adjudicate", "text": "I would rather not say."},
    )

    waiting = flow_project.run("--no-input")
    (request,) = flow_project.call("inbox", "one", "--json").json

    assert waiting.code == WAITING, waiting.err
    shown = request["shown"]
    assert [*shown] == ["findings", "goal", "rules", "artifact", "reply"]
    assert shown["findings"][0].startswith("line 1: MEDIUM short: It is wrong.")
    assert (shown["artifact"], shown["reply"]) == (DRAFT, "I would rather not say.")


def test_a_human_who_decides_about_escalated_findings_sees_the_text(
    flow_project: FlowProject,
) -> None:
    flow_project.write_flow(f"default_behavior: {{HIGH: escalate}}\n{FLOW}")
    flow_project.constraints("short")
    flow_project.script(play.author_writes(), play.critic_finds("short", play.issue("HIGH")))

    waiting = flow_project.run("--no-input")
    (request,) = flow_project.call("inbox", "one", "--json").json

    assert waiting.code == WAITING, waiting.err
    assert [*request["shown"]] == ["goal", "rules", "artifact"]
