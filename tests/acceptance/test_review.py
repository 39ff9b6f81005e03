"""`signoff review`: files, folders, standard input and changes, with scripted critics."""

from __future__ import annotations

import io
import json
import sys

import pytest

from tests.acceptance.review_project import ReviewProject, finds, issue


def test_findings_are_printed_with_their_place_and_quote(review_project: ReviewProject) -> None:
    review_project.script(finds(issue("docs/a.md"), issue("docs/b.md", severity="LOW")))

    result = review_project.review("docs")

    assert result.code == 17
    lines = result.out.splitlines()
    assert lines[0].startswith("docs/a.md:3: HIGH tone/sure: Too sure. [")
    assert lines[1] == "    > It always works."
    assert lines[2].startswith("docs/b.md:1: LOW tone/sure: Too sure. [")
    assert lines[4] == "2 findings in 2 files, 1 blocking"
    assert "reviewing 2 files; 1 call planned" in result.err


def test_a_run_of_a_review_is_an_ordinary_run(review_project: ReviewProject) -> None:
    review_project.script(finds(issue("docs/a.md")))

    result = review_project.review("docs", "--json")

    (finding,) = result.json["review"]["open"]
    assert (finding["path"], finding["line"], finding["severity"]) == ("docs/a.md", 3, "HIGH")
    assert (result.code, result.json["exit_code"]) == (17, 17)
    assert review_project.call("resume", "one").code == 17
    assert review_project.call("show", "one").out.count("final/status.md") == 1
    shown = review_project.call("show", "one", "--json").json
    assert [each["path"] for each in shown["findings"]] == ["docs/a.md"]


def test_standard_input_is_reviewed(
    review_project: ReviewProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    review_project.script(finds(issue("stdin")))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Yes.\nIt always works.\n")))

    result = review_project.review("-")

    assert result.out.startswith("stdin:2: HIGH tone/sure")


def test_only_changed_lines_count_in_a_review_of_changes(review_project: ReviewProject) -> None:
    review_project.git("checkout", "-q", "-b", "topic")
    text = "The server uses port 80.\n\nIt always works.\n\nIt never fails.\n"
    review_project.write("docs/a.md", text)
    review_project.commit("Promise more")
    review_project.script(
        finds(issue("docs/a.md"), issue("docs/a.md", "+It never fails."), contains="Promise more")
    )

    changed = review_project.review("--diff", "main")
    every = review_project.review("--diff", "main", "--all-lines", "--name", "two")

    assert [line.split(":")[:2] for line in changed.out.splitlines()[:1]] == [["docs/a.md", "5"]]
    assert "1 finding in 1 file, 1 blocking" in changed.out
    assert "2 findings in 1 file, 2 blocking" in every.out


def test_a_critic_that_names_another_file_is_asked_again(review_project: ReviewProject) -> None:
    """Otherwise a finding about a file that nobody reviewed would block."""
    wrong = finds(issue("docs/b.md"), times=1)
    review_project.script(wrong, finds(issue("docs/a.md"), contains="not part of this review"))

    result = review_project.review("docs/a.md")

    assert result.out.startswith("docs/a.md:3: HIGH")
    assert "2 calls" in review_project.call("show", "one").out


def test_a_constraint_applies_to_its_own_paths(review_project: ReviewProject) -> None:
    review_project.write(
        ".signoff/constraints/code.yaml", "summary: Simple code.\npaths: ['*.py']\n"
    )
    review_project.write("src/main.py", "print(1)\n")

    plan = review_project.review("docs", "src", "--dry-run", "--json").json

    constraints = [ask["constraint"] for ask in plan["plan"][0]["asks"]]
    assert constraints == ["code", "tone"]
    assert plan["files"] == ["docs/a.md", "docs/b.md", "src/main.py"]


def test_many_calls_need_a_yes_or_a_limit(review_project: ReviewProject) -> None:
    for number in range(60):
        review_project.write(f"many/{number}.md", f"{number} {'words ' * 4_500}\n")

    refused = review_project.review("many")
    planned = review_project.review("many", "--dry-run")

    assert refused.code == 2
    assert "makes up to 60 calls, more than 50" in refused.err
    assert review_project.call("runs").out.strip() == "no runs"
    assert "60 files; 60 calls planned. Nothing was started." in planned.out
    assert review_project.review("many", "--yes").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name files or folders"),
        (("nowhere",), "there is no file or folder 'nowhere'"),
        (("../x.md",), "outside of the project"),
        (("locks",), "there is nothing to review; left out (lock file): locks"),
        (("docs", "-"), "either standard input or files"),
        (("docs", "--preset", "poems"), "unknown preset 'poems'"),
        (("docs", "--agent", "cluade"), "signoff: unknown agent 'cluade'; valid names: claude, "),
        (("--diff", "nowhere"), "git has no commit 'nowhere'"),
        (("--diff", "HEAD", "nowhere"), "there is no file or folder 'nowhere'"),
        ((".signoff/runs", "docs/a.md", "--constraint", ""), "is empty"),
        (
            ("docs", "--constraint", "a: x", "--constraint", "a: y"),
            "two constraints are called 'a'",
        ),
    ],
)
def test_a_wrong_command_starts_nothing(
    review_project: ReviewProject, arguments: tuple[str, ...], message: str
) -> None:
    (review_project.folder / ".signoff/runs").mkdir(exist_ok=True)
    review_project.write("locks/uv.lock", "x\n")

    result = review_project.review(*arguments)

    assert result.code == 2
    assert message in result.err


def test_a_change_without_files_to_review_succeeds(review_project: ReviewProject) -> None:
    """Otherwise each pull request that only updates a lock file or deletes files would fail."""
    review_project.git("checkout", "-q", "-b", "topic")
    nothing = review_project.review("--diff", "main")
    review_project.write("package-lock.json", "{}\n")
    review_project.commit("lock")
    lock = review_project.review("--diff", "main")
    review_project.git("rm", "-q", "docs/b.md")
    review_project.commit("delete")
    deleted = review_project.review("--diff", "main", "docs/b.md")
    programs = review_project.review("--diff", "main", "--json")

    assert nothing.out == "nothing to review: no file has changed\n"
    assert lock.out == (
        "nothing to review; left out: 1 lock file\nleft out (lock file): package-lock.json\n"
    )
    assert deleted.out == "nothing to review: 1 file deleted\n"
    left_out = [{"path": "package-lock.json", "reason": "lock file"}]
    coverage = {"complete": True, "not_read": [], "left_out": left_out}
    assert programs.json["review"] == {"open": [], "files": [], "coverage": coverage}
    assert {each.code for each in (nothing, lock, deleted, programs)} == {0}
    assert review_project.call("runs").out.strip() == "no runs"


TESTS = """
  tests: {kind: check, argv: [sh, check.sh], scope: project, findings: exit}
"""


def use_the_projects_tests(project: ReviewProject, program: str) -> None:
    """Adds a constraint that the tests of the project check, as the preset `code` does."""
    project.write(".signoff/config.yaml", project.read(".signoff/config.yaml") + TESTS)
    project.write(".signoff/constraints/mine/passing.yaml", "summary: Passes.\nagents: [tests]\n")
    project.write(".signoff/constraints/mine/short.yaml", "summary: Short.\n")
    project.write("check.sh", program)


def test_the_projects_tests_run_once_about_all_files_whoever_reviews_the_rest(
    review_project: ReviewProject,
) -> None:
    """One run for each file would cost minutes, and a model cannot tell whether tests pass."""
    use_the_projects_tests(review_project, "cat docs/a.md docs/b.md\nexit 1\n")

    plan = review_project.review(
        "docs", "--preset", "mine", "--agent", "claude", "--dry-run", "--json"
    ).json
    result = review_project.review("docs", "--preset", "mine", "--agent", "claude", "--json")

    asks = [(ask["constraint"], ask["agent"]) for ask in plan["plan"][0]["asks"]]
    (finding,) = result.json["findings"]
    assert asks == [("passing", "tests"), ("short", "claude")]
    assert result.code == 17
    assert (finding["constraint"], finding.get("path")) == ("passing", None)
    listed = review_project.call("findings", "one").out
    assert listed.startswith("(project): HIGH passing")
    assert "It always works." in listed
    text = review_project.review(
        "docs", "--preset", "mine", "--agent", "claude", "--name", "two"
    ).out
    assert text.startswith("HIGH passing: ")
    (result,) = review_project.call("export", "sarif", "one").json["runs"][0]["results"]
    assert "locations" not in result
    assert review_project.call("export", "github", "one").out.startswith(
        "::error title=HIGH passing"
    )


def test_sets_of_constraints_are_used_one_at_a_time(review_project: ReviewProject) -> None:
    """The constraints of several presets contradict each other, and cost a call each."""
    for name in ("docs", "code"):
        review_project.write(f".signoff/constraints/{name}/own.yaml", "summary: Own rule.\n")

    def constraints(*more: str) -> list[str]:
        plan = review_project.review("docs", *more, "--dry-run", "--json").json
        return [ask["constraint"] for ask in plan["plan"][0]["asks"]]

    own, preset = constraints(), constraints("--preset", "docs")
    (review_project.folder / ".signoff/constraints/tone.yaml").unlink()
    unclear = review_project.review("docs")
    (review_project.folder / ".signoff/constraints/code/own.yaml").unlink()

    assert (own, preset) == (["tone"], ["own"])
    assert unclear.code == 2
    assert "several sets of constraints; name one as the preset: code, docs" in unclear.err
    assert constraints() == ["own"]


def test_the_least_severity_that_blocks_can_be_chosen(
    review_project: ReviewProject, subtests: pytest.Subtests
) -> None:
    """A project that starts with reviews wants to fail for little, and others for everything."""
    rows = [("MEDIUM", None, 0), ("MEDIUM", "medium", 17), ("LOW", "medium", 0), ("LOW", "low", 17)]
    rows += [("HIGH", "critical", 0), ("CRITICAL", "critical", 17)]
    for number, (severity, fail_on, code) in enumerate(rows):
        with subtests.test(severity=severity, fail_on=fail_on):
            review_project.script(finds(issue("docs/b.md", severity=severity)))
            options = ("--fail-on", fail_on) if fail_on else ()

            result = review_project.review("docs/b.md", *options, "--name", f"run-{number}")

            assert result.code == code, result.out
            assert ("1 blocking" in result.out) == (code == 17)


def test_what_signoff_wrote_is_not_reviewed(review_project: ReviewProject) -> None:
    """A report in the project would be the subject of the next review of changes."""
    review_project.review("docs", "--events", "events.jsonl")
    review_project.call("export", "otel", "one", "-o", "trace.jsonl")
    review_project.call("report", "one", "-o", "report.html")
    review_project.call("report", "one")
    review_project.call("report", "one", "-o", "report.md")
    review_project.call("export", "sarif", "one", "-o", "found.sarif")
    review_project.call("export", "json", "one", "-o", "found.json")
    review_project.write("docs/c.md", "New.\n")

    plan = review_project.review("--diff", "HEAD", "--dry-run", "--json").json

    assert plan["files"] == ["docs/c.md"]
    left_out = [each["path"] for each in plan["coverage"]["left_out"]]
    assert left_out == [
        *("events.jsonl", "found.json", "found.sarif", "report.html", "report.md", "trace.jsonl")
    ]
    assert (review_project.folder / ".signoff/runs/one/signoff-report.html").is_file()


def test_json_log_records_are_alone_on_standard_error(review_project: ReviewProject) -> None:
    """A program reads every line of it."""
    settings = review_project.read(".signoff/config.yaml")
    review_project.write(".signoff/config.yaml", f"{settings}log_format: json\nlog_level: info\n")
    review_project.script(finds(issue("docs/b.md"), contains="docs/b.md"))

    result = review_project.signoff("review", "docs", "--name", "one")

    first, *records = result.stderr.splitlines()
    assert first.startswith("reviewing 2 files")
    assert records
    assert all(json.loads(line) for line in records)


CHECK = """\
import sys

for number, line in enumerate(sys.stdin.read().split("\\n"), start=1):
    if "always" in line:
        print(f"docs/a.md:{number}: says always")
"""


@pytest.fixture
def checked(review_project: ReviewProject) -> ReviewProject:
    """A project whose constraint a script of the project checks."""
    argv = f"[{sys.executable}, tools/check.py]"
    review_project.write(
        ".signoff/config.yaml", f"version: 1\nagents: {{words: {{kind: check, argv: {argv}}}}}\n"
    )
    review_project.write("tools/check.py", CHECK)
    return review_project


def test_the_line_that_a_check_prints_is_the_place_of_its_finding(checked: ReviewProject) -> None:
    """An editor or a pull request showed the finding without a line."""
    result = checked.review("docs/a.md", "--agent", "words")

    assert result.out.startswith("docs/a.md:3: HIGH tone: says always [")
    (finding,) = checked.call("findings", "one", "--json").json
    assert (finding["path"], finding["line"]) == ("docs/a.md", 3)
    sarif = checked.call("export", "sarif", "one").json
    (location,) = sarif["runs"][0]["results"][0]["locations"]
    assert location["physicalLocation"]["region"]["startLine"] == 3


def test_files_of_the_settings_are_found_from_a_subfolder(
    review_project: ReviewProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    review_project.script(finds(issue("docs/a.md")))
    monkeypatch.chdir(review_project.folder / "docs")

    result = review_project.review("a.md", "--patch", "x.patch", "--fix", "--dry-run")
    assert (result.code, "script.json" in result.err) == (0, False)
    result = review_project.review("a.md")

    assert (result.code, result.out.splitlines()[0][:11]) == (17, "docs/a.md:3")
    assert "script.json" not in result.err


def test_the_logs_hold_findings_and_verdicts_as_the_terminal_shows_them(
    review_project: ReviewProject,
) -> None:
    """Who reads the log of a run in CI has seen no terminal."""
    review_project.script(finds(issue("docs/a.md")))

    terminal = review_project.review("docs").err
    log = review_project.call("logs", "one").out
    file = review_project.read(".signoff/runs/one/live.log")

    for line in ("HIGH tone/sure docs/a.md:3: Too sure.", "policy: 1 finding open, 1 blocking"):
        assert [text.count(f"  {line}\n") for text in (terminal, log, file)] == [1, 1, 1], line


def test_a_critic_that_passes_files_is_logged_with_them(review_project: ReviewProject) -> None:
    """`passed by ruff` fourteen times tells nothing."""
    settings = review_project.read(".signoff/config.yaml")
    lint = "  lint: {kind: check, argv: ['true'], findings: lines}\n"
    review_project.write(".signoff/config.yaml", settings + lint)
    review_project.write(".signoff/constraints/tone.yaml", "summary: Calm.\nagents: [lint]\n")

    terminal = review_project.review("docs").err
    file = review_project.read(".signoff/runs/one/live.log")

    for text in (terminal, file):
        assert "  tone docs/a.md: passed by lint\n" in text
        assert "  tone docs/b.md: passed by lint\n" in text
        assert "tone: passed by lint" not in text


def test_the_log_and_show_explain_what_a_check_found_in_files(
    review_project: ReviewProject,
) -> None:
    """A check names its temporary file, and a finding that does not count says why."""
    program = "import json, sys\nname, text = sys.argv[1], open(sys.argv[1]).read()\n"
    program += "rows = [n for n, each in enumerate(text.split('\\n'), 1) if 'always' in each]\n"
    program += "found = [{'filename': name, 'location': {'row': n}} for n in rows]\n"
    program += "print(json.dumps([{**each, 'message': 'No.'} for each in found]))\n"
    review_project.write("check.py", program)
    settings = review_project.read(".signoff/config.yaml")
    settings += f"  words: {{kind: check, argv: ['{sys.executable}', check.py, '{{file}}']}}\n"
    review_project.write(".signoff/config.yaml", settings)
    rule = "summary: No promises.\nagents: [words]\npaths: ['docs/*']\n"
    review_project.write(".signoff/constraints/tone.yaml", rule)
    review_project.commit("rules")
    review_project.write("docs/b.md", "It always works.\n\nIt always did.\n")

    result = review_project.review("--diff", "HEAD")
    shown = review_project.call("show", "one").out

    assert result.code == 17
    assert "1 finding in 1 file, 1 blocking\n" in result.out
    assert "docs/b.md:1: No. (does not count: not on a changed line)\n" in result.err
    assert "docs/b.md:3: No.\n" in result.err
    assert "docs/b.md:3: HIGH " in shown
    assert "/artifact" not in shown
