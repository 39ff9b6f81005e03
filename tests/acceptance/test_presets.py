"""Every preset is valid, and runs unchanged with scripted agents."""

import json
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from signoff.app.settings.presets import presets
from signoff.review.flow.reading import read_flow_file
from signoff.surfaces.cli import main

NAMES = [name for name, (_, notation) in presets().items() if notation.name == "flows"]
PASSED = {"overall": "PASS", "issues": []}
CLAUDE = "agents:\n  claude: {kind: scripted, file: script.yaml}\n"
PROGRAM = re.compile(r"argv: .*")

Set = Callable[..., None]


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Set:
    """Returns a function that sets up a project with a preset and a scripted agent."""
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("SIGNOFF_HOME", raising=False)

    def set_up(preset: str, rules: list[dict[str, Any]], tests: Sequence[str] = ("true",)) -> None:
        assert main(["init", "--preset", preset]) == 0
        config = Path(".signoff/config.yaml")
        settings = PROGRAM.sub(f"argv: {json.dumps(tests)}", config.read_text())
        head, agents, rest = settings.partition("\nagents:\n")
        config.write_text(f"{head}\n{CLAUDE}{rest}" if agents else f"{head}{CLAUDE}")
        Path("README.md").write_text("It always works.\n")
        script = {"version": 1, "rules": [*rules, {"regex": ".", "json": PASSED}]}
        Path("script.yaml").write_text(json.dumps(script))

    return set_up


def run(preset: str) -> int:
    return main(["run", preset, "--goal", f"{preset}-goal.yaml", "--name", "one", "--no-input"])


def final(name: str = "artifact.md") -> str:
    return Path(".signoff/runs/one/final", name).read_text()


def state() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(Path(".signoff/runs/one/state.json").read_text())
    return read


def failed(severity: str, evidence: str, **more: Any) -> dict[str, Any]:
    issue = {"severity": severity, "finding": "This is wrong.", "evidence": evidence, **more}
    return {"overall": "FAIL", "issues": [issue]}


def judge_reply(status: str, bill: str = "") -> str:
    return f"=== ADJUDICATION ===\n{json.dumps({'status': status})}\n=== BILL_OF_WORK ===\n{bill}\n"


@pytest.mark.parametrize("preset", NAMES)
def test_a_preset_is_valid_and_its_bound_is_within_its_limit(
    preset: str, begin: Set, capsys: pytest.CaptureFixture[str]
) -> None:
    """A limit below the possible number of calls would stop a normal run."""
    begin(preset, [])
    flow, goal = f".signoff/flows/{preset}.yaml", ("--goal", f"{preset}-goal.yaml", "--json")
    capsys.readouterr()

    valid = main(["validate", flow, *goal])
    report = json.loads(capsys.readouterr().out)
    planned = main(["run", preset, *goal, "--dry-run"])
    calls = json.loads(capsys.readouterr().out)["calls"]

    assert (valid, planned) == (0, 0)
    assert (report["problems"], report["warnings"], report["workflows"]) == ([], [], [preset])
    limit = read_flow_file(Path(flow)).limits.calls
    assert limit is not None
    assert 0 < calls["at_most"] + calls["again_at_most"] <= limit
    assert not Path(".signoff/runs").exists()


def test_documentation_is_fixed_by_exact_edits_and_an_agent_for_the_rest(begin: Set) -> None:
    """Exact edits of critics need no call; the agent does the rest."""
    wrong, right = "greet needs Python 2.", "greet needs Python 3.11 or newer."
    begin(
        "docs",
        [
            {"step": "draft", "text": f"# greet\n\n{wrong} Simply run it.\n"},
            {
                "key": "accuracy",
                "times": 1,
                "json": failed("CRITICAL", wrong, edit={"find": wrong, "text": right}),
            },
            {"key": "tone", "times": 1, "json": failed("HIGH", "Simply run it.")},
            {"step": "fix", "files": {"artifact.md": f"# greet\n\n{right} Run it.\n"}},
        ],
    )

    code = run("docs")

    assert code == 0
    assert final() == f"# greet\n\n{right} Run it.\n"
    changes = json.loads(Path(".signoff/runs/one/iterations/1/changes.json").read_text())
    assert [edit["find"] for edit in changes["applied"]] == [wrong]
    assert [sum(each["open"].values()) for each in state()["rounds"]] == [2, 0]


def test_code_whose_tests_fail_goes_back_until_they_pass(begin: Set) -> None:
    """Whether code works is not a matter of opinion: the tests of the project are run on it."""
    wrong, right = "def double(n): return n + 1\n", "def double(n): return n * 2\n"
    begin(
        "code",
        [
            {"step": "write", "text": wrong},
            {
                "step": "judge",
                "contains": "AssertionError",
                "times": 1,
                "text": judge_reply("REWRITE"),
            },
            {"step": "judge", "key": "verdict", "text": judge_reply("APPROVED")},
            {"step": "fix", "files": {"artifact.md": right}},
        ],
        tests=[sys.executable, "check_double.py"],
    )
    Path("check_double.py").write_text(
        "import artifact\nopen('ran', 'a').write('x')\nassert artifact.double(2) == 4\n"
    )

    code = run("code")

    assert code == 0
    assert final("artifact.py") == right
    assert [sum(each["open"].values()) for each in state()["rounds"]] == [1, 0]
    # The tests ran in a copy, so the project has neither the file nor what they wrote.
    assert not Path("artifact.py").exists()
    assert not Path("ran").exists()


def test_the_review_preset_fixes_a_file_of_the_project_after_the_sign_off(begin: Set) -> None:
    """Nothing in the project changes before a human has seen the diff."""
    edit = {"kind": "replace", "find": "always", "text": "usually"}
    issue = {"path": "README.md", "evidence": "It always works.", "finding": "No.", "edit": edit}
    failing = {"overall": "FAIL", "issues": [{**issue, "severity": "HIGH"}]}
    begin("review", [{"step": "review", "key": "correctness", "times": 1, "json": failing}])

    waiting = run("review")
    before = Path("README.md").read_text()
    approved = main(["approve", "one", "--resume"])

    assert (waiting, approved) == (10, 0)
    assert before == "It always works.\n"
    assert Path("README.md").read_text() == "It usually works.\n"


def test_a_contract_runs_to_its_sign_off_and_its_release(
    begin: Set, capsys: pytest.CaptureFixture[str]
) -> None:
    """The start of a user who has steps to be proved."""
    main(["init", "--preset", "contract"])
    suggested = next_commands(capsys.readouterr().err)

    assert main(suggested[0]) == 0
    assert main([*suggested[1], "--name", "one", "--no-input"]) == 10
    assert main(["answer", "one", "Release", "--resume"]) == 0


def test_a_profile_waits_at_its_first_gate(begin: Set, capsys: pytest.CaptureFixture[str]) -> None:
    """The start of a user who wants code gate by gate."""
    main(["init", "--preset", "profile"])
    suggested = next_commands(capsys.readouterr().err)

    assert main(suggested[0]) == 0
    assert main([*suggested[1], "--name", "one", "--no-input"]) == 10
    prompt = Path(".signoff/runs/one/iteration-1/planning-prompt.md").read_text()
    assert prompt.startswith("Outline a friendly letter to a new customer")


def test_a_skill_hands_out_its_first_step(begin: Set, capsys: pytest.CaptureFixture[str]) -> None:
    """The start of a user who has a procedure for a coding agent."""
    main(["init", "--preset", "skill"])
    suggested = next_commands(capsys.readouterr().err)

    assert main(suggested[0]) == 0
    assert main([*suggested[1], "--name", "one"]) == 10
    out = capsys.readouterr().out
    assert "Find the shortest command that shows it." in out
    assert "signoff submit one" in out


def next_commands(text: str) -> list[list[str]]:
    """Returns the commands that `init` suggests, without the program's name."""
    lines = [line.removeprefix("next: signoff ") for line in text.splitlines()]
    return [shlex.split(line) for line in lines if line.startswith(("validate", "run"))]
