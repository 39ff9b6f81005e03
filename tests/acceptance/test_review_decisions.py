"""Decisions that last: dismissals, comments and baselines."""

from __future__ import annotations

import json
import re

import pytest

from tests.acceptance.review_project import ReviewProject, finds, issue


@pytest.fixture
def found(review_project: ReviewProject) -> ReviewProject:
    """A project in which critics always report the same finding."""
    review_project.script(finds(issue("docs/b.md"), contains="FILE docs/b.md"))
    assert review_project.review("docs").code == 17
    return review_project


def finding_id(project: ReviewProject) -> str:
    (finding,) = project.call("show", "one", "--json").json["findings"]
    return str(finding["id"])


def again(project: ReviewProject, name: str) -> tuple[int, list[tuple[str, str]]]:
    """Returns the exit code of another review, and status and reason of each finding."""
    code = project.review("docs", "--name", name).code
    findings = project.call("show", name, "--json").json["findings"]
    return code, [(each["status"], each.get("reason", "")) for each in findings]


def test_a_dismissed_finding_does_not_come_back(found: ReviewProject) -> None:
    result = found.call("dismiss", finding_id(found)[:6], "--why", "A slogan: it's fine.")

    assert result.code == 0
    assert "commit" in result.out
    assert again(found, "two") == (0, [("dismissed", "A slogan: it's fine.")])
    assert "no open findings in 2 files, 1 dismissed" in found.review("docs", "--name", "three").out
    prompt = "\n".join(found.sent_prompts("two"))
    assert "A slogan: it's fine." in prompt, "critics are told"


def test_a_dismissal_ends_when_its_passage_changes(found: ReviewProject) -> None:
    found.call("dismiss", finding_id(found), "--why", "A slogan.")
    found.write("docs/b.md", "It mostly works.\n")
    found.script(finds(issue("docs/b.md", "It mostly works.")))

    assert again(found, "two")[0] == 17


def test_a_dismissal_ends_on_its_day(found: ReviewProject) -> None:
    found.call("dismiss", finding_id(found), "--why", "Later.", "--until", "2999-12-31")
    path = ".signoff/decisions.yaml"
    found.write(path, found.read(path).replace("2999-12-31", "2020-01-01"))

    assert again(found, "two")[0] == 17


def test_a_worse_report_of_a_dismissed_finding_counts(found: ReviewProject) -> None:
    found.call("dismiss", finding_id(found), "--why", "A slogan.")
    found.script(finds(issue("docs/b.md", severity="CRITICAL"), contains="FILE docs/b.md"))

    assert again(found, "two")[0] == 17


def test_a_dismissal_follows_a_renamed_file(found: ReviewProject) -> None:
    found.call("dismiss", finding_id(found), "--why", "A slogan.")
    found.commit("decide")
    found.git("checkout", "-q", "-b", "topic")
    found.git("mv", "docs/b.md", "docs/c.md")
    found.script(finds(issue("docs/c.md")))

    result = found.review("--diff", "main", "--all-lines", "--name", "two")

    assert result.code == 0


def test_a_baseline_accepts_what_exists_and_only_that(found: ReviewProject) -> None:
    assert found.review("docs", "--baseline", "--name", "two").code == 0

    assert again(found, "three") == (0, [("dismissed", "baseline")])
    found.write("docs/new.md", "It never fails.\n")
    found.script(finds(issue("docs/b.md"), issue("docs/new.md", "It never fails.")))
    assert again(found, "four")[0] == 17


@pytest.mark.parametrize("name", ["tone", "sure", "tone/sure"])
def test_a_comment_in_the_file_dismisses(found: ReviewProject, name: str) -> None:
    found.write("docs/b.md", f"<!-- signoff: ignore {name} a slogan -->\nIt always works.\n")

    assert again(found, "two") == (0, [("dismissed", "ignored in the file: a slogan")])


@pytest.mark.parametrize(
    "text",
    [
        "<!-- signoff: ignore other a slogan -->\nIt always works.\n",
        "<!-- signoff: ignore tone too far away -->\n\n\nIt always works.\n",
    ],
)
def test_a_comment_about_something_else_does_not(found: ReviewProject, text: str) -> None:
    found.write("docs/b.md", text)

    assert again(found, "two")[0] == 17


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ffff", "--why", "x"), "unknown finding 'ffff'"),
        (("", "--in", "docs/", "--why", "x"), "--in GLOB needs --all-like"),
        (("", "--why", " "), "write the reason"),
        (("", "--why", "x", "--until", "tomorrow"), "is not a date"),
        (("", "--why", "x", "--until", "2020-01-01"), "--until 2020-01-01 has passed"),
    ],
)
def test_a_wrong_dismissal_is_refused(
    found: ReviewProject, arguments: tuple[str, ...], message: str
) -> None:
    name, *rest = arguments
    result = found.call("dismiss", name or finding_id(found), *rest)

    assert result.code == 2
    assert message in result.err
    assert not (found.folder / ".signoff/decisions.yaml").exists()


def test_a_damaged_decision_file_is_reported_before_anything_is_paid(found: ReviewProject) -> None:
    found.write(".signoff/decisions.yaml", "version: 1\ndecisions: [{finding: x}, 3]\n")

    result = found.review("docs", "--name", "two")

    assert result.code == 2
    assert "decisions[0] is not valid" in result.err
    assert "decisions[1] is not valid" in result.err


def test_a_finding_that_is_dismissed_again_has_the_new_reason(found: ReviewProject) -> None:
    """A second entry would leave readers with two reasons, of which one counts."""
    found.call("dismiss", finding_id(found), "--why", "First.")
    path = ".signoff/decisions.yaml"
    found.write(path, found.read(path) + "  # my note\n")

    found.call("dismiss", finding_id(found), "--why", "Second.", "--until", "2999-12-31")
    found.call("dismiss", finding_id(found), "--why", "Third.")

    text = found.read(path)
    assert text.count("- finding:") == text.count("# my note") == 1
    assert again(found, "two") == (0, [("dismissed", "Third.")])


EQUAL = "def f():\n    x = 1\n\ndef g():\n    x = 1\n\ndef h():\n    x = 1\n"


def equal_lines(project: ReviewProject, text: str, *, lines: bool = True) -> None:
    """Writes a file and lets its critic report every `x = 1`."""
    project.write("docs/code.py", text)
    numbers = [n for n, line in enumerate(text.split("\n"), start=1) if line.strip() == "x = 1"]
    reports = [
        issue("docs/code.py", "x = 1", **({"location": f"line {number}"} if lines else {}))
        for number in numbers
    ]
    project.script(finds(*reports) if reports else {"step": "review", "json": {"overall": "PASS"}})


def placed(project: ReviewProject, name: str) -> list[tuple[int, str]]:
    """Reviews the file; returns line and status of each finding."""
    project.review("docs/code.py", "--name", name)
    found = project.call("show", name, "--json").json["findings"]
    return sorted((each["line"], each["status"]) for each in found)


def dismiss_line(project: ReviewProject, run: str, line: int) -> None:
    found = project.call("show", run, "--json").json["findings"]
    (id_,) = [each["id"] for each in found if each["line"] == line]
    assert project.call("dismiss", id_, "--run", run, "--why", "Fine here.").code == 0


@pytest.mark.parametrize("lines", [True, False])
def test_equal_lines_are_findings_of_their_own(review_project: ReviewProject, lines: bool) -> None:
    """To dismiss one and silence all would hide problems that nobody has looked at."""
    equal_lines(review_project, EQUAL, lines=lines)
    assert placed(review_project, "one") == [(2, "new"), (5, "new"), (8, "new")]

    dismiss_line(review_project, "one", 5)

    assert placed(review_project, "two") == [(2, "new"), (5, "dismissed"), (8, "new")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            f"import a\nimport b\n\n{EQUAL}", {5: "new", 8: "dismissed", 11: "new"}, id="moved"
        ),
        pytest.param(
            EQUAL.replace("def g", "def k"), {2: "new", 5: "dismissed", 8: "new"}, id="surroundings"
        ),
        pytest.param(
            EQUAL.replace("def g():\n    x = 1\n\n", ""), {2: "new", 5: "new"}, id="deleted"
        ),
        pytest.param(
            EQUAL.replace("def g():\n    x = 1", "def g():\n    x = 2"),
            {2: "new", 8: "new"},
            id="edited",
        ),
        pytest.param(
            EQUAL.replace("def g():\n    x = 1", "def g():\n    x = 1\n    x = 1"),
            {2: "new", 5: "dismissed", 6: "new", 9: "new"},
            id="doubled",
        ),
        pytest.param(
            f"{EQUAL}\ndef k():\n    x = 1\n",
            {2: "new", 5: "dismissed", 8: "new", 11: "new"},
            id="a new one",
        ),
    ],
)
def test_a_decision_is_about_one_of_equal_lines(
    review_project: ReviewProject, text: str, expected: dict[int, str]
) -> None:
    equal_lines(review_project, EQUAL)
    placed(review_project, "one")
    dismiss_line(review_project, "one", 5)

    equal_lines(review_project, text)

    assert dict(placed(review_project, "two")) == expected


def test_a_baseline_and_sarif_have_equal_lines_apart(review_project: ReviewProject) -> None:
    equal_lines(review_project, EQUAL)
    review_project.review("docs/code.py", "--baseline", "--name", "one")

    equal_lines(review_project, f"{EQUAL}\ndef k():\n    x = 1\n")

    assert dict(placed(review_project, "two")) == {
        **dict.fromkeys((2, 5, 8), "dismissed"),
        11: "new",
    }
    log = review_project.call("export", "sarif", "two").json
    results = log["runs"][0]["results"]
    assert len({str(each["partialFingerprints"]) for each in results}) == 4
    regions = [each["locations"][0]["physicalLocation"]["region"] for each in results]
    lines = [
        region["startLine"]
        for region, each in zip(regions, results, strict=True)
        if not each.get("suppressions")
    ]
    assert lines == [11]


@pytest.mark.parametrize("lines", [True, False])
def test_a_comment_dismisses_the_line_that_it_is_at(
    review_project: ReviewProject, lines: bool
) -> None:
    text = EQUAL.replace("def g():\n", "def g():\n    # signoff: ignore sure on purpose\n")
    equal_lines(review_project, text, lines=lines)

    assert dict(placed(review_project, "one")) == {2: "new", 6: "dismissed", 9: "new"}


def test_a_line_that_is_reported_twice_is_one_finding(review_project: ReviewProject) -> None:
    review_project.write("docs/code.py", EQUAL)
    twice = [issue("docs/code.py", "x = 1", location="line 5") for _ in range(2)]
    review_project.script(finds(*twice))

    assert placed(review_project, "one") == [(5, "new")]


LISTS = (
    ("findings", "one"),
    ("show", "one"),
    ("export", "html", "one"),
    ("export", "markdown", "one"),
)
"""Commands that list findings for people."""


def test_every_list_has_equal_findings_as_one_entry(review_project: ReviewProject) -> None:
    """Nobody finds the other problem among three hundred equal ones."""
    equal_lines(review_project, EQUAL)
    review_project.review("docs/code.py")

    findings, show, report, comment = (review_project.call(*words).out for words in LISTS)
    guide = (review_project.folder / ".signoff/runs/one/final/status.md").read_text()

    for text in (findings, comment, guide):
        assert text.count("Too sure") == 1
        assert "3 times, also line 5 " in text
    assert show.count("3 times: Too sure.") == 1
    assert show.count("HIGH tone/sure: Too sure.") == 1, show
    assert report.count("<article") == 1
    assert "3 times; the others" in report
    ids = [each["id"] for each in review_project.call("findings", "one", "--json").json]
    assert len(ids) == 3, "data keeps them single"
    assert all(f'id="f-{each}"' in report for each in ids), "links to each work"


def test_blocking_findings_come_first_then_file_and_line(review_project: ReviewProject) -> None:
    review_project.script(
        finds(
            issue("docs/a.md", "port 80", severity="LOW"),
            issue("docs/b.md", severity="CRITICAL"),
            issue("docs/a.md", severity="HIGH"),
        )
    )
    expected = ["docs/a.md:3", "docs/b.md:1", "docs/a.md:1"]

    review = review_project.review("docs/a.md", "docs/b.md")

    texts = {" ".join(words): review_project.call(*words).out for words in LISTS}
    for name, text in {**texts, "review": review.out}.items():
        found = re.findall(r"docs/[ab]\.md:\d", text)
        assert list(dict.fromkeys(found)) == expected, name
    data = {
        "review": review_project.review("docs/a.md", "docs/b.md", "--json", "--name", "two").json[
            "review"
        ]["open"],
        "findings": review_project.call("findings", "one", "--json").json,
        "show": review_project.call("show", "one", "--json").json["findings"],
    }
    for name, findings in data.items():
        assert [f"{each['path']}:{each['line']}" for each in findings] == expected, name


def test_a_finding_is_found_in_any_run_of_the_project(found: ReviewProject) -> None:
    """Nobody remembers which of forty runs has reported it."""
    old = finding_id(found)
    found.script()
    found.review("docs/a.md", "--name", "two")

    listed = found.call("findings", old[:6])
    explained = found.call("policy", "explain", old)
    result = found.call("dismiss", old, "--why", "A slogan.")

    assert result.code == listed.code == explained.code == 0
    assert f"dismissed {old} of run one" in result.out
    assert listed.out.splitlines()[0] == "run one"
    assert f"  {old}  open since round 1" in listed.out
    assert found.call("findings", old, "--json").json[0]["run"] == "one"
    assert re.search(r"run +one", explained.out)
    unknown = found.call("findings", "ffff")
    assert (unknown.code, "unknown run 'ffff'" in unknown.err) == (2, True)


def test_five_thousand_equal_lines_are_one_entry_and_fit_into_a_baseline(
    review_project: ReviewProject,
) -> None:
    """A generated file that nobody left out must not make reviews unusable."""
    lint = "grep -n 'x = 1' | sed 's/:.*/: error: unused/; s/^/-:/'"
    review_project.write(
        ".signoff/config.yaml",
        "version: 1\nagents:\n  lint: {kind: check, findings: lines, "
        f"argv: [sh, -c, {json.dumps(lint)}]}}\n",
    )
    review_project.write(".signoff/constraints/tone.yaml", "summary: No x.\nagents: [lint]\n")
    text = "".join(f"def f{n}():\n    x = 1\n\n" for n in range(5000))
    review_project.write("docs/code.py", text)

    first = review_project.review("docs/code.py")
    accepted = review_project.review("docs/code.py", "--baseline", "--name", "two")
    review_project.write("docs/code.py", f"import a\n{text}def g():\n    x = 1\n")
    again = review_project.review("docs/code.py", "--name", "three")

    assert first.code == again.code == 17
    assert len(first.out.splitlines()) < 12
    assert len(first.err.splitlines()) < 20, "the live lines are grouped as well"
    assert "5,000 times, also line 5 [" in first.out
    assert accepted.code == 0, accepted.err
    assert review_project.read(".signoff/decisions.yaml").count('"finding"') == 5000
    assert "docs/code.py:15003: HIGH tone" in again.out
    assert "1 finding in 1 file, 1 blocking, 5,000 dismissed" in again.out


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), {2: "dismissed", 5: "dismissed", 8: "dismissed", 11: "dismissed"}),
        (("--in", "docs/*.py"), {2: "dismissed", 5: "dismissed", 8: "dismissed", 11: "dismissed"}),
        (("--in", "src/"), {2: "new", 5: "new", 8: "new", 11: "new"}),
    ],
)
def test_everything_like_a_finding_can_be_dismissed(
    review_project: ReviewProject, options: tuple[str, ...], expected: dict[int, str]
) -> None:
    equal_lines(review_project, EQUAL)
    placed(review_project, "one")
    found = review_project.call("show", "one", "--json").json["findings"]
    arguments = ("dismiss", found[0]["id"], "--all-like", *options, "--why", "A style.")
    assert review_project.call(*arguments).code == 0

    equal_lines(review_project, f"{EQUAL}\ndef k():\n    x = 1\n")

    assert dict(placed(review_project, "two")) == expected
    covered = sum(status == "dismissed" for status in expected.values())
    shown = review_project.review("docs/code.py", "--name", "three").out
    assert f"is dismissed: {covered} findings (A style.)" in shown
