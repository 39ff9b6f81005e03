"""The replies in `examples/profiles` are what the prompts ask for, and their code works."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from signoff.agents.answer_file import read_entries
from signoff.profiles import ProcessingResult, ProfileFactory, WorkflowStatus
from signoff.profiles.code_files import find_code_files
from signoff.profiles.responses import check_writes
from signoff.profiles.review_meta import ReviewVerdict, check_review_meta
from tests.nested_pytest import ONLY_SIGNOFF

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "profiles"
STUBS = Path(__file__).with_name("java_stubs.md")

NOTES = "revision-issues.md"


class Replies:
    """The replies of one example, in the order of a session."""

    def __init__(self, name: str) -> None:
        self.profile = ProfileFactory.create(name)
        rules = [dict(entry.data) for entry in read_entries(EXAMPLES / name / "script.yaml")]
        self.plan, self.generated, self.review, self.revised, self.second_review = (
            str(rule["text"]) for rule in rules
        )
        self.steps = [str(rule["step"]) for rule in rules]

    @property
    def first_code(self) -> dict[str, str]:
        return files(self.profile.process_generation_response(self.generated))

    @property
    def notes(self) -> str:
        return files(self.profile.process_revision_response(self.revised))[NOTES]

    @property
    def final_code(self) -> dict[str, str]:
        """The code after the revision, which replaces only what it changes."""
        changed = files(self.profile.process_revision_response(self.revised))
        code = {**self.first_code, **changed}
        del code[NOTES]
        return code


def files(result: ProcessingResult) -> dict[str, str]:
    assert result.status is WorkflowStatus.SUCCESS, result.error_message
    assert result.write_plan is not None
    return check_writes(result.write_plan.writes)


def write(code: dict[str, str], folder: Path) -> list[Path]:
    paths = [folder / name for name in code]
    for path, text in zip(paths, code.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return paths


@pytest.mark.parametrize("name", ["jpa-mt", "python-module"])
def test_the_replies_make_a_session_with_one_revision(name: str) -> None:
    """The examples show what good answers look like, and run whole sessions without a model."""
    replies = Replies(name)

    first, second = check_review_meta(replies.review), check_review_meta(replies.second_review)

    assert replies.steps == [
        *("plan.response", "generate.response", "review.response"),
        *("revise.response", "review.response"),
    ]
    assert replies.profile.process_planning_response(replies.plan).status == "success"
    assert (first.verdict, second.verdict) == (ReviewVerdict.FAIL, ReviewVerdict.PASS)
    assert replies.review.count("\n### Issue ") + 1 == first.issues_total
    assert replies.review.count("(critical)") == first.issues_critical
    decided = [line.split("|")[1].strip() for line in replies.notes.splitlines()[4:]]
    assert decided == [str(number + 1) for number in range(first.issues_total)]


@pytest.mark.parametrize("name", ["jpa-mt", "python-module"])
def test_the_code_has_the_files_that_the_plan_or_the_task_names(name: str) -> None:
    """A session writes what was approved."""
    replies = Replies(name)

    task = "`slugs.py` `test_slugs.py`" if name == "python-module" else replies.plan
    assert all(f"`{path}`" in task for path in replies.first_code)
    assert list(replies.final_code) == list(replies.first_code)
    assert replies.final_code != replies.first_code


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the compiled stubs."""
    if shutil.which("javac") is None:
        pytest.skip("needs a JDK: javac is not installed")
    folder = tmp_path_factory.mktemp("stubs")
    done = javac(write(find_code_files(STUBS.read_text("utf-8")), folder / "source"), folder)
    assert done.returncode == 0, done.stderr
    return folder


def javac(sources: list[Path], classes: Path) -> subprocess.CompletedProcess[str]:
    # A compiler that ends so soon gains nothing from optimizing itself.
    quick = ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"]
    checks = ["-Xlint:all", "-Werror", "-proc:none"]
    options = [*quick, *checks, "-encoding", "UTF-8", "--release", "17"]
    command = ["javac", *options, "-cp", str(classes), "-d", str(classes), *map(str, sources)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.slow
def test_the_java_code_compiles_before_and_after_the_revision(stubs: Path, tmp_path: Path) -> None:
    """An example that does not compile would teach nothing."""
    replies = Replies("jpa-mt")

    for number, code in enumerate((replies.first_code, replies.final_code)):
        done = javac(write(code, tmp_path / str(number)), stubs)
        assert done.returncode == 0, done.stderr


def run_tests(folder: Path) -> subprocess.CompletedProcess[str]:
    options = ["-p", "no:cacheprovider", "-p", "no:asyncio", *ONLY_SIGNOFF]
    command = [sys.executable, "-m", "pytest", "-q", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.slow
def test_the_python_module_is_imported_and_passes_its_own_tests(tmp_path: Path) -> None:
    """The result of a session is a module that can be used."""
    code = Replies("python-module").final_code
    write(code, tmp_path)

    imported = subprocess.run(
        [sys.executable, "-c", "from slugs import *; print(slugify('It works!'), unique_slug)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    tested = run_tests(tmp_path)

    assert imported.stdout.startswith("it-works <function unique_slug"), imported.stderr
    assert tested.returncode == 0, tested.stdout
    assert " passed" in tested.stdout


@pytest.mark.slow
def test_the_tests_of_the_revision_find_the_first_bug(tmp_path: Path) -> None:
    """The review asked for tests that would have found it."""
    replies = Replies("python-module")
    write({**replies.final_code, "slugs.py": replies.first_code["slugs.py"]}, tmp_path)

    done = run_tests(tmp_path)

    assert done.returncode == 1, done.stdout
    assert "FAILED test_slugs.py::test_a_numbered_slug_is_not_longer_than_allowed" in done.stdout
