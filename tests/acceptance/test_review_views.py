"""What users see of a review: `show`, `findings`, `diff`, `cat` and `metrics` of a finished run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance import flow_project as play
from tests.acceptance.flow_project import FlowProject
from tests.acceptance.forked_program import ForkedProgram

DRAFT = "# The see\n\nIt is wide.\n\x1b[31mIt is 深い \U0001f30a loud.\n"
FIXED = DRAFT.replace("see", "sea")

FLOW = """
max_iterations: 3
default_behavior: {low: continue}
workflow:
  - {step: generate, name: draft}
  - {step: critique, name: review}
  - {step: adjudicate, name: judge}
  - {step: refine, name: fix, loop_to: review}
"""


@pytest.fixture(scope="module")
def project(
    tmp_path_factory: pytest.TempPathFactory, command_server: ForkedProgram
) -> Iterator[FlowProject]:
    """A run of two rounds: one finding is fixed, one dismissed."""
    with pytest.MonkeyPatch.context() as patch:
        opened = FlowProject(tmp_path_factory.mktemp("views"), command_server, patch)
        opened.write_flow(FLOW)
        opened.constraints("clear", "tone")
        loud = play.issue(
            "LOW", "\U0001f30a loud", finding="Too \x1b[2Jloud.", suggested_fix="calm"
        )
        dismissed = {"issue_id": "tone-001", "status": "dismissed", "rationale": "It is a storm."}
        opened.script(
            play.author_writes(DRAFT),
            play.critic_finds(
                "clear", play.issue("HIGH", "The see", rule_id="words"), contains="# The see"
            ),
            play.critic_finds("tone", loud, contains="# The see"),
            play.critics_pass(),
            play.judge_decides("REWRITE", dismissed, bill="Fix the see.", contains="# The see"),
            play.judge_decides("APPROVED"),
            play.editor_replaces(),
        )
        done = opened.run()
        assert done.code == 0, done.err
        yield opened


def test_findings_are_printed_as_compilers_print_errors(project: FlowProject) -> None:
    """Editors jump to the place, and people see at once what became of each finding."""
    lines = project.call("findings", "one").out.splitlines()

    assert lines[0] == "artifact.md:1: HIGH clear/words: It is wrong."
    assert lines[1] == '    "The see"'
    assert lines[2].endswith("  fixed in round 2")
    assert lines[3] == "artifact.md:4: LOW tone: Too loud."
    assert lines[6].endswith("  dismissed in round 1 by claude: It is a storm.")
    assert lines[7] == "2 findings: 1 fixed, 1 dismissed"


@pytest.mark.parametrize(
    ("options", "constraints"),
    [
        ("--status fixed", ["clear"]),
        ("--status open", []),
        ("--severity low --severity critical", ["tone"]),
        ("--constraint tone --status dismissed", ["tone"]),
        ("--constraint tone --status fixed", []),
    ],
)
def test_findings_are_filtered(project: FlowProject, options: str, constraints: list[str]) -> None:
    """Of five hundred findings, someone wants to see those that block."""
    found = project.json("findings", "one", *options.split())

    assert [each["constraint"] for each in found] == constraints


def test_a_diff_names_the_findings_that_its_hunks_answer(project: FlowProject) -> None:
    """Reviewers of a change want to know why each line has changed."""
    (clear,) = project.json("findings", "one", "--constraint", "clear")

    lines = project.call("diff", "one").out.splitlines()

    assert lines[0] == "round 1: version 1 to 2, by claude (+1 -1)"
    assert lines[1:3] == ["--- a/artifact.md", "+++ b/artifact.md"]
    assert lines[3] == f"@@ -1,4 +1,4 @@ answers {clear['id']} (clear)"
    assert lines[4:6] == ["-# The see", "+# The sea"]
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("diff one --round 9", "run 'one' has no round 9; its rounds are 1 to 2"),
        ("diff one --from 1 --round 1", "use either --round, or --from and --to"),
        ("cat one nothing.md", "unknown file 'nothing.md'"),
        ("cat one --round 9", "run 'one' has no round 9"),
        ("findings one --severity=bad", "unknown severity 'bad'"),
        ("findings one --status=gone", "unknown status 'gone'"),
        ("findings one --constraint=ton", "unknown constraint 'ton'; valid names: tone, clear"),
    ],
)
def test_what_does_not_exist_is_an_error(project: FlowProject, arguments: str, words: str) -> None:
    """An empty answer would look as if nothing had changed."""
    refused = project.call(*arguments.split())

    assert refused.code != 0
    assert words in refused.err


def test_cat_prints_the_artifact_byte_for_byte(project: FlowProject) -> None:
    """Its output is redirected into the file that the user wants."""
    assert project.call("cat").out == FIXED
    assert project.call("cat", "one", "--round", "1").out == DRAFT
    assert project.call("cat", "one", "artifact.md").out == FIXED
    assert project.json("cat", "one")["files"] == {"artifact.md": FIXED}


def test_show_lists_the_findings_of_each_round_with_their_status(project: FlowProject) -> None:
    """A user sees how the review went without opening any file."""
    lines = project.call("show", "one").out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("ROUND  STATUS"))

    rows = [line.split()[:3] for line in lines[start + 1 : start + 4]]

    assert rows == [["1", "new", "HIGH"], ["1", "dismissed", "LOW"], ["2", "fixed", "HIGH"]]
    assert "\x1b" not in "".join(lines)


def test_a_run_without_a_review_says_so(project: FlowProject) -> None:
    """A workflow in Python has no findings, which is no error of the user."""
    project.write(
        "plain.py",
        "from signoff import Outcome, StepDef, Workflow\n"
        "WORKFLOW = Workflow('plain', StepDef('a', handler=lambda ctx: (Outcome.OK, {}),"
        " next={Outcome.OK: None}))\n",
    )
    project.call("run", "plain.py", "--name", "plain")

    codes: dict[str, Any] = {}
    for command in ("findings", "diff", "cat"):
        refused = project.call(command, "plain")
        codes[command] = refused.code
        assert "run 'plain' has no review" in refused.err

    assert codes == {"findings": 2, "diff": 2, "cat": 2}
