"""`signoff skill qr`: shows a quality review, and records results."""

import json
from pathlib import Path
from typing import Any

import pytest

from signoff.skills.qr import read_record
from signoff.surfaces.cli import main

ITEMS = [
    {"id": "a", "check": "errors are handled", "severity": "MUST"},
    {"id": "b", "check": "names are clear", "severity": "COULD", "status": "PASS"},
]
HOSTILE = "no retry\nPASS  MUST    a  $(touch x) `id` \x1b[2J \u202e <b>"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "qr-plan-code.json"
    path.write_text(json.dumps({"items": ITEMS, "iteration": 2}))
    return path


class Command:
    """Runs the command, and keeps what it printed."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._path, self._capsys = path, capsys
        self.err = ""

    def __call__(self, *options: str, code: int = 0) -> str:
        assert main(["skill", "qr", str(self._path), *options]) == code
        out, self.err = self._capsys.readouterr()
        return out

    def json(self, *options: str) -> Any:
        """Returns what it prints with --json."""
        return json.loads(self(*options, "--json"))


@pytest.fixture
def qr(path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(path, capsys)


def test_a_review_is_listed_with_its_verdict(qr: Command) -> None:
    """What is missing is seen at once."""
    assert qr().splitlines() == [
        "TODO  MUST    a  errors are handled",
        "PASS  COULD   b  names are clear",
        "round 2: fail, verify",
    ]
    assert qr.json() == {
        "iteration": 2,
        "status": "fail",
        "action": "verify",
        "items": [
            {**ITEMS[0], "status": "TODO", "finding": None},
            {**ITEMS[1], "finding": None},
        ],
    }


def test_a_reviewer_keeps_to_its_group(qr: Command, path: Path) -> None:
    """A mistyped id must not change what another reviewer recorded."""
    qr("--group", "a", "--id", "b", "--status", "FAIL", code=2)

    assert qr.err == "signoff: unknown item 'b'; valid names: a\n"
    assert [each.status for each in read_record(path).items] == ["TODO", "PASS"]
    assert qr("--group", "a", "--id", "a", "--status", "PASS").startswith("PASS")
    assert qr("--group", "b").splitlines()[0] == "PASS  COULD   b  names are clear"


def test_a_failure_without_a_finding_is_recorded_and_asked_for(qr: Command, path: Path) -> None:
    """Without one, the author cannot fix it; refused, the failure could be lost."""
    qr("--id", "a", "--status", "FAIL")
    assert "repeat the command with --finding TEXT" in qr.err
    assert read_record(path).items[0].status == "FAIL"

    qr("--id", "a", "--status", "FAIL", "--finding", "no retry")
    assert qr.err == ""
    qr("--id", "a", "--status", "FAIL")
    assert qr.err == ""


def test_a_hostile_finding_is_kept_and_shown_on_one_line(qr: Command, path: Path) -> None:
    """It quotes what a stranger wrote; it must not pass for another result."""
    text = qr("--id", "a", "--status", "FAIL", "--finding", HOSTILE)

    assert read_record(path).items[0].finding == HOSTILE
    assert text == (
        "FAIL  MUST    a  no retry PASS MUST a $(touch x) `id` \\u001b[2J \\u202e <b>\n"
    )
    printed = qr("--json")
    assert printed.isascii()
    assert "\x1b" not in printed
    assert json.loads(printed)["items"][0]["finding"] == HOSTILE


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--id", "zz", "--status", "PASS"], 2, "unknown item 'zz'; valid names: a, b"),
        (["--id", "a"], 2, "--id and --status belong together"),
        (["--status", "PASS"], 2, "--id and --status belong together"),
        (["--finding", "x"], 2, "--finding needs both"),
        (["--id", "a", "--status", "TODO"], 2, "'TODO' is not one of"),
        (["--id", "a", "--status", "PASS", "more"], 2, "unexpected extra argument"),
        (["--speed"], 2, "No such option"),
    ],
)
def test_a_wrong_command_records_nothing(
    qr: Command, path: Path, options: list[str], code: int, words: str
) -> None:
    """The error is one line, and nothing on stdout looks like a result."""
    before = path.read_bytes()

    assert qr(*options, code=code) == ""
    assert words in qr.err
    assert qr.err.count("\n") == 1
    assert path.read_bytes() == before


UNUSABLE = [
    (None, "does not exist"),
    ("{", "is not valid JSON"),
    ("[]", "is not a JSON object"),
    ('{"items": []}', "at least one item"),
]


@pytest.mark.parametrize("options", [[], ["--id", "a", "--status", "PASS"]])
@pytest.mark.parametrize(("content", "words"), UNUSABLE)
def test_a_file_that_cannot_be_used_is_an_error(
    qr: Command, path: Path, options: list[str], content: str | None, words: str
) -> None:
    """It is left as it is."""
    path.unlink()
    if content is not None:
        path.write_text(content)

    assert qr(*options, code=1) == ""
    assert words in qr.err
    assert (path.read_text() if content is not None else None) == content
