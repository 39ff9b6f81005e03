import json
import sys
from pathlib import Path
from typing import Any

import pytest

from signoff.agents.check import CheckAgent, Source, build_critique
from signoff.core.effects import AgentRequest
from signoff.core.errors import (
    AgentBadOutput,
    AgentBadRequest,
    AgentTimeout,
    ConfigError,
)
from signoff.core.spend import Usage
from tests.agent_harness import call_for

TEXT = "First line.\nTeh second.\n"
HERE = __name__


async def check(text: str = TEXT, **options: Any) -> dict[str, Any]:
    reply = await CheckAgent(**options).ask(AgentRequest(text), call_for())
    assert reply.usage == Usage(0, 0, 0.0)
    assert json.loads(reply.text) == reply.value
    found: dict[str, Any] = reply.value
    return found


def program(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def prints(text: str, code: int = 0) -> list[str]:
    return program(f"import sys; sys.stdin.read(); print({text!r}); sys.exit({code})")


async def test_a_check_gets_only_ordinary_and_named_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A third-party linter must not see the keys in the user's environment."""
    for name in ("OPENAI_API_KEY", "MINE", "OTHER"):
        monkeypatch.setenv(name, "value")
    names = "sorted(set(os.environ) & {'PATH', 'OPENAI_API_KEY', 'MINE', 'OTHER', 'FIXED'})"
    show = program(f"import os; print('x.md:1:', *{names})")

    found = await check(argv=show, findings="lines", pass_env=["MINE"], env={"FIXED": "1"})

    assert found["issues"][0]["finding"] == "FIXED MINE PATH"


async def test_a_program_that_succeeds_passes_the_artifact() -> None:
    """Most rules need no model."""
    found = await check(argv=program("import sys; sys.exit('Teh' not in sys.stdin.read())"))

    assert found == {
        "overall": "PASS",
        "issues": [],
        "approved_sections": [],
        "summary": "no findings",
    }


async def test_a_failing_exit_code_is_a_finding_with_the_output_as_evidence() -> None:
    """Test runners report failure by exit code, and the judge needs the reason."""
    found = await check(argv=prints("2 tests\nfailed: test_one", 1), constraint="tests")

    (issue,) = found["issues"]
    assert found["overall"] == "FAIL"
    assert (issue["id"], issue["rule_id"], issue["severity"]) == ("tests-001", "tests", "HIGH")
    assert issue["finding"] == "failed: test_one"
    assert "2 tests" in issue["evidence"]


async def test_lines_with_a_location_are_findings() -> None:
    """Linters print this format."""
    output = "<stdin>:2: Teh is no word\nother.md:7:3: warning: long line\nFound 2 problems"

    found = await check(argv=prints(output, 1), constraint="spelling")

    assert [(i["id"], i["severity"], i["location"], i["finding"]) for i in found["issues"]] == [
        ("spelling-001", "HIGH", "line 2", "Teh is no word"),
        ("spelling-002", "MEDIUM", "other.md:7", "long line"),
    ]
    assert [i["evidence"] for i in found["issues"]] == ["Teh second.", ""]


RUFF = {
    "code": "F841",
    "message": "Never used",
    "filename": "-",
    "location": {"row": 2, "column": 1},
    "fix": {"applicability": "unsafe", "message": "Remove it"},
}


@pytest.mark.parametrize(
    "output", ["-:2:1: F841 Never used", "-:2:1: F841 [*] Never used", json.dumps([RUFF])]
)
async def test_the_rule_that_a_linter_names_is_the_rule_of_the_finding(output: str) -> None:
    """Otherwise a decision about all findings like one would cover whatever the linter reports."""
    found = await check(argv=prints(output, code=1), constraint="lint")

    (issue,) = found["issues"]
    assert (issue["rule_id"], issue["finding"]) == ("F841", "Never used")
    assert issue["evidence"] == "Teh second."


async def test_the_artifact_can_be_passed_as_a_file() -> None:
    """Some programs read no standard input; the temporary file name must not appear in findings."""
    code = "import sys; print(sys.argv[1] + ':1: ' + open(sys.argv[1]).readline())"

    found = await check(argv=[*program(code), "{file}"])

    assert [(i["location"], i["finding"]) for i in found["issues"]] == [("line 1", "First line.")]


@pytest.mark.parametrize(
    ("document", "code", "overall", "findings"),
    [
        ([], 0, "PASS", []),
        ([{"message": "no title", "line": 1}], 0, "FAIL", ["no title"]),
        ({"overall": "PASS", "issues": []}, 0, "PASS", []),
        ({"overall": "PASS", "issues": ["no title"]}, 0, "FAIL", ["no title"]),
        ({"overall": "FAIL", "issues": [], "summary": "bad"}, 0, "FAIL", ["bad"]),
        ({"findings": [{"finding": "a"}, {"text": "b"}]}, 1, "FAIL", ["a", "b"]),
        # The program may have died after printing an empty list.
        ([], 1, "FAIL", ["the check failed with exit code 1 and reports no finding"]),
    ],
)
async def test_the_verdict_in_json_is_compared_with_its_findings(
    document: Any, code: int, overall: str, findings: list[str]
) -> None:
    """A broken script might report PASS although it lists findings."""
    found = await check(argv=prints(json.dumps(document), code))

    assert found["overall"] == overall
    assert [issue["finding"] for issue in found["issues"]] == findings


@pytest.mark.parametrize(
    ("output", "findings"),
    [
        ('{"issues": [', "auto"),
        ('{"other": 1}', "auto"),
        ("[7]", "auto"),
        ("[{}]", "auto"),
        ('{"overall": "MAYBE", "issues": []}', "auto"),
        ("all is well", "json"),
    ],
)
async def test_unreadable_output_is_not_a_pass(output: str, findings: str) -> None:
    """A truncated list of findings looks like a short one."""
    with pytest.raises(AgentBadOutput):
        await check(argv=prints(output), findings=findings)


async def test_output_that_is_nested_too_deeply_is_unreadable() -> None:
    """Python gives up with an error of its own, which must not end the run."""
    with pytest.raises(AgentBadOutput):
        await check(argv=program("print('[' * 200_000)"), findings="json")


async def test_the_format_of_findings_can_be_set() -> None:
    """A program that prints the locations of passed checks would fail every artifact."""
    argv = prints("a.md:1: checked")

    assert (await check(argv=argv))["overall"] == "FAIL"
    assert (await check(argv=argv, findings="exit"))["overall"] == "PASS"


async def test_a_broken_check_is_neither_a_pass_nor_a_finding() -> None:
    """Otherwise an agent would rewrite the text because a linter is missing."""
    with pytest.raises(AgentBadRequest, match="no-such-program"):
        await check(argv=["no-such-program"])
    with pytest.raises(AgentBadOutput, match="exit code 2"):
        await check(argv=prints("usage", 2), broken_codes=[2])
    with pytest.raises(AgentBadOutput, match="exit code -9"):
        await check(argv=program("import os; os.kill(os.getpid(), 9)"))
    with pytest.raises(AgentTimeout):
        await check(argv=program("import time; time.sleep(600)"), timeout=0.2)


async def test_the_artifact_option_is_checked_instead_of_the_prompt() -> None:
    """A critic's prompt contains more than the artifact, which would affect rules about length."""
    agent = CheckAgent(function=f"{HERE}:shouting")
    request = AgentRequest("CRITICISE THIS", options={"artifact": "quiet", "constraint": "tone"})

    reply = await agent.ask(request, call_for())

    assert reply.value["overall"] == "PASS"


def shouting(text: str) -> list[str]:
    return ["it shouts"] if text.isupper() else []


def detailed(text: str) -> list[dict[str, Any]]:
    return [{"id": "x-1", "severity": "low", "finding": "f", "suggested_fix": "g", "line": 2}]


async def awaited(text: str) -> bool:
    return "Teh" not in text


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("print('checking'); {}['key']", "KeyError: 'key'"),
        ("print('[]'); raise SystemError", "SystemError"),
        ("def check(:", "SyntaxError: invalid syntax"),
    ],
)
async def test_a_check_that_crashes_is_broken(code: str, why: str, tmp_path: Path) -> None:
    """A missing module was a finding about the document, with the traceback as its quote."""
    file = tmp_path / "check.py"
    file.write_text(code)

    with pytest.raises(AgentBadOutput) as raised:
        await check(argv=[sys.executable, str(file)])

    assert "the check itself crashed" in str(raised.value)
    assert "exit code 1): " in str(raised.value)
    assert str(raised.value).endswith(why)


@pytest.mark.parametrize("missing", [["no_such_check.py"], ["-m", "no_such_check"]])
async def test_a_script_that_is_missing_is_a_broken_check(
    missing: list[str], tmp_path: Path
) -> None:
    spaced = tmp_path / "my programs" / "python3"
    spaced.parent.mkdir()
    spaced.symlink_to(sys.executable)

    for python in (sys.executable, str(spaced)):
        with pytest.raises(AgentBadOutput, match="the check itself crashed"):
            await check(argv=[python, *missing])


@pytest.mark.parametrize(
    "argv",
    [
        program("import sys; assert 'tea' in sys.stdin.read(), 'no tea'"),
        program("import ast, sys; ast.parse(sys.stdin.read())"),
        [sys.executable, "-m", "py_compile", "{file}"],
        [sys.executable, "{file}"],
        program("print('a.md:1: bad', flush=True); 1 / 0"),
        program("import sys; sys.exit('a Traceback is mentioned')"),
    ],
    ids=["assertion", "parser", "compiler", "executed", "finding", "prose"],
)
async def test_a_failure_that_is_about_the_text_is_a_finding(argv: list[str]) -> None:
    found = await check("x = (\n", argv=argv, suffix=".py")

    assert found["overall"] == "FAIL"


async def test_a_program_of_the_project_is_found_from_a_subfolder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its path in the settings started in the current folder."""
    for folder in (".signoff", "docs", "tools"):
        (tmp_path / folder).mkdir()
    program = tmp_path / "tools" / "check"
    program.write_text("#!/bin/sh\necho docs/a.md:1: found\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path / "docs")
    monkeypatch.delenv("SIGNOFF_HOME", raising=False)

    agent = CheckAgent(argv=["tools/check"])

    assert (await agent.health()).ready
    assert (await agent.ask(AgentRequest(TEXT), call_for())).value["overall"] == "FAIL"


@pytest.mark.parametrize("path", ["docs/a.md", "./docs/a.md", "a.md"])
async def test_a_line_of_the_reviewed_file_is_quoted(path: str) -> None:
    """Without a quote, the finding had no line in reports."""
    documents = [
        f"{path}:2: no word",
        json.dumps([{"file": path, "line": 2, "message": "no word"}]),
    ]
    for document in documents:
        agent = CheckAgent(argv=prints(document))
        request = AgentRequest("", options={"artifact": TEXT, "path": "docs/a.md"})

        (issue,) = (await agent.ask(request, call_for())).value["issues"]

        assert issue["evidence"] == "Teh second."


def broken(text: str) -> list[str]:
    raise RuntimeError("no dictionary")


def odd(text: str) -> int:
    return 7


@pytest.mark.parametrize(
    ("function", "findings"),
    [("shouting", []), ("detailed", ["f"]), ("awaited", [f"{HERE}:awaited returned False"])],
)
async def test_a_python_function_can_check(function: str, findings: list[str]) -> None:
    """A function is the shortest check."""
    found = await check(function=f"{HERE}:{function}")

    assert [issue["finding"] for issue in found["issues"]] == findings


async def test_a_function_can_return_all_fields_of_a_finding() -> None:
    """A check that knows the exact fix proposes it."""
    (issue,) = (await check(function=f"{HERE}:detailed"))["issues"]

    assert issue == {
        "id": "x-1",
        "rule_id": "check",
        "severity": "LOW",
        "location": "line 2",
        "line": 2,
        "finding": "f",
        "evidence": "Teh second.",
        "suggested_fix": "g",
        "confidence": 1.0,
    }


async def test_a_check_can_return_the_exact_edit() -> None:
    """The engine applies such an edit itself, at no cost."""
    edit = {"kind": "replace", "find": "Teh", "text": "The"}
    found = await check(argv=prints(json.dumps([{"finding": "misspelt", "edit": edit}])))

    assert found["issues"][0]["edit"] == edit


@pytest.mark.parametrize(
    ("function", "error"),
    [
        ("broken", AgentBadOutput),
        ("odd", AgentBadOutput),
        ("absent", AgentBadRequest),
        ("HERE", AgentBadRequest),
    ],
)
async def test_a_function_that_raises_is_not_a_pass(function: str, error: type[Exception]) -> None:
    """Ignoring the exception would approve the artifact."""
    with pytest.raises(error, match=f"{HERE}:{function}"):
        await check(function=f"{HERE}:{function}")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"argv": ["true"], "function": "a:b"},
        {"argv": "true"},
        {"argv": []},
        {"argv": ["true"], "findings": "tea leaves"},
        {"argv": ["true"], "severity": "meh"},
        # A string would be read as single letters, and pass nothing.
        {"argv": ["true"], "pass_env": "MINE"},
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any]) -> None:
    """Invalid settings are reported before the check runs."""
    with pytest.raises(ConfigError):
        CheckAgent(**options)


@pytest.mark.parametrize(
    ("options", "ready"),
    [
        ({"argv": [sys.executable]}, True),
        ({"argv": ["no-such-program"]}, False),
        ({"function": f"{HERE}:odd"}, True),
        ({"function": f"{HERE}:absent"}, False),
    ],
)
async def test_health_reports_a_missing_program(options: dict[str, Any], ready: bool) -> None:
    """`signoff doctor` reports a missing linter before a run fails."""
    health = await CheckAgent(**options).health()

    assert (health.ready, bool(health.remedy)) == (ready, not ready)


async def test_a_check_of_the_project_runs_in_a_copy_with_the_new_texts(tmp_path: Path) -> None:
    """A test runner needs the whole project, and must not leave anything in it."""
    project = tmp_path / "project"
    (project / ".signoff").mkdir(parents=True)
    (project / "kept.txt").write_text("kept")
    show = "print(open('kept.txt').read(), open('a/new.txt').read()); open('left', 'w'); exit(1)"
    agent = CheckAgent(argv=program(show), scope="project", findings="exit")
    request = AgentRequest("", options={"texts": {"a/new.txt": "new"}, "constraint": "tests"})

    reply = await agent.ask(request, call_for()._replace(folder=str(project)))

    (issue,) = reply.value["issues"]
    assert agent.capabilities.whole_project
    assert issue["evidence"] == "kept new"
    assert sorted(each.name for each in project.iterdir()) == [".signoff", "kept.txt"]


async def test_evidence_does_not_name_the_copy(tmp_path: Path) -> None:
    """The name of a copy is new in every round, so the same failure would look like another one."""
    show = "import os; print(f'{os.getcwd()}/a.py:1: wrong'); exit(1)"
    agent = CheckAgent(argv=program(show), scope="project", findings="exit")

    reply = await agent.ask(AgentRequest(""), call_for()._replace(folder=str(tmp_path)))

    assert reply.value["issues"][0]["evidence"] == "a.py:1: wrong"


@pytest.mark.parametrize("options", [{"function": "a:b"}, {"argv": ["lint", "{file}"]}])
def test_a_check_of_the_project_is_a_program_without_a_file(options: dict[str, Any]) -> None:
    """It is about all files at once."""
    with pytest.raises(ConfigError, match="whole project"):
        CheckAgent(scope="project", **options)


class CountedText(str):
    """A text that counts how often it is split into lines."""

    splits: int
    __slots__ = ("splits",)

    def __new__(cls, text: str) -> "CountedText":
        counted = super().__new__(cls, text)
        counted.splits = 0
        return counted

    def splitlines(self, keepends: bool = False) -> list[str]:
        self.splits += 1
        return super().splitlines(keepends)


def test_the_artifact_is_split_once_for_all_findings_that_quote_it() -> None:
    """A split for each finding in a long artifact would stop all other work for seconds."""
    text = CountedText(TEXT)
    source = Source("spelling", "LOW", text, frozenset({"-"}))

    build_critique([{"finding": "No.", "line": 2, "evidence": "Teh"}], source)
    before = text.splits
    quoted = build_critique(["-:1: Bad.", "-:2: Bad.", "-:3: Bad."], source)

    assert (before, text.splits) == (0, 1)
    assert [issue["evidence"] for issue in quoted["issues"]] == [*TEXT.splitlines(), ""]
