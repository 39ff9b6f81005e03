"""The GitHub action, the pre-commit hooks and the examples of docs/ci.md, as users copy them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from ruamel.yaml import YAML

from signoff.cli.entry import signoff
from tests.acceptance.doc_blocks import sections
from tests.acceptance.review_project import ReviewProject

ROOT = Path(__file__).parents[2]
COMMIT = "0" * 40
ZIZMOR = Path(sys.executable).with_name("zizmor")


def workflow_files() -> Iterator[tuple[str, str]]:
    """Yields the name and the text of every YAML file in docs/ci.md."""
    for section in sections(ROOT / "docs/ci.md"):
        for block in section.blocks:
            if block.language == "yaml":
                yield block.file, block.text.replace("@COMMIT", f"@{COMMIT}")


def scripts() -> list[str]:
    """Returns the shell scripts of the action."""
    action = YAML(typ="safe").load((ROOT / "action.yml").read_text())
    return [step["run"] for step in action["runs"]["steps"]]


def test_zizmor_finds_nothing_in_the_action_and_the_workflow(tmp_path: Path) -> None:
    """A pipeline runs with secrets, and a title of a pull request must not become a command."""
    for name, text in workflow_files():
        if name.startswith(".github"):
            (tmp_path / name).parent.mkdir(parents=True)
            (tmp_path / name).write_text(text)
    (tmp_path / "action.yml").write_text((ROOT / "action.yml").read_text())

    checked = [str(ZIZMOR), "--offline", "--no-progress", str(tmp_path)]
    done = subprocess.run(checked, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout
    assert "action.yml" in done.stderr
    assert "review.yaml" in done.stderr


def test_scripts_of_the_action_get_values_through_the_environment_only() -> None:
    """An expression inside a script is replaced before the shell reads it."""
    assert len(scripts()) == 2
    assert all("${{" not in script for script in scripts())


@pytest.mark.parametrize("shell", ["bash"])
def test_scripts_of_the_action_are_valid(shell: str) -> None:
    """They run on machines that no test here has."""
    for script in scripts():
        done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_every_option_in_the_action_the_hooks_and_the_page_exists() -> None:
    """A renamed option would break pipelines that no one watches."""
    hooks = YAML(typ="safe").load((ROOT / ".pre-commit-hooks.yaml").read_text())
    lines = [each["entry"] for each in hooks]
    page = "\n".join(text for _, text in workflow_files()).replace("\\\n", " ")
    lines += re.findall(r"signoff (?:review|export|report)\b[^\n|]*", page)
    script = scripts()[1].replace('"$signoff" ', "signoff ")
    lines += re.findall(r"signoff (?:export|report)\b[^\n;]*", script)
    lines += ["signoff review " + " ".join(re.findall(r"--[a-z-]+", script))]

    assert len(lines) >= 8
    for line in lines:
        name = line.split()[1]
        command = signoff.get_command(click.Context(signoff), name)
        assert command is not None, line
        known = {option for param in command.params for option in param.opts}
        assert set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", line)) <= known, line


def test_hooks_that_call_models_run_only_when_asked_for() -> None:
    """A commit must not cost money by surprise."""
    hooks = {
        each["id"]: each
        for each in YAML(typ="safe").load((ROOT / ".pre-commit-hooks.yaml").read_text())
    }

    assert hooks["signoff-review"]["stages"] == ["manual"]
    assert hooks["signoff-review"]["require_serial"]
    assert hooks["signoff-validate"]["pass_filenames"] is False


def test_what_a_review_prints_gives_the_runner_no_commands() -> None:
    """A change under review could otherwise mask words, or write annotations of its own."""
    before, review, after = scripts()[1].partition('"$signoff" review')

    assert review
    assert 'echo "::stop-commands::$stop"' in before
    assert 'echo "::$stop::"' in after


def test_the_action_passes_if_there_is_nothing_to_review(
    review_project: ReviewProject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A pull request that only updates a lock file has no run, so that nothing can be exported."""
    review_project.git("checkout", "-q", "-b", "topic")
    review_project.write("package-lock.json", "{}\n")
    review_project.commit("lock")
    runner = tmp_path_factory.mktemp("runner")
    programs = runner / "signoff/bin"
    programs.mkdir(parents=True)
    (programs / "signoff").symlink_to(Path(sys.executable).with_name("signoff"))
    names = ("PRESET", "AGENT", "INTENT")
    values = {"BASE": "main", "BUDGET": "2", "CALLS": "9", "RUN": "one", "CI": "true"}
    files = {"RUNNER_TEMP": runner, "GITHUB_OUTPUT": runner / "out"}
    files["GITHUB_STEP_SUMMARY"] = runner / "summary"
    environment = {**os.environ, **dict.fromkeys(names, ""), **values, **_texts(files)}

    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", scripts()[1]],
        cwd=review_project.folder,
        env=environment,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing to review: 1 lock file left out" in done.stdout
    assert (runner / "out").read_text() == "status=0\nrun=one\n"


def _texts(paths: dict[str, Path]) -> dict[str, str]:
    return {name: str(path) for name, path in paths.items()}
