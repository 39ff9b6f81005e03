"""The GitHub action, the pre-commit hooks and the examples of docs/ci.md, as users copy them."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import click
import pytest
from ruamel.yaml import YAML

from signoff.surfaces.cli.entry import signoff
from tests.acceptance.doc_blocks import sections
from tests.acceptance.forked_program import ForkedProgram
from tests.acceptance.review_project import ReviewProject
from tests.acceptance.workflow_runner import OURS, Inputs, WorkflowRun, link_program, machine
from tests.agent_harness import TextReply
from tests.stubs.anthropic import AnthropicServer

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


def test_what_a_review_prints_gives_the_runner_no_commands() -> None:
    """A change under review could otherwise mask words, or write annotations of its own."""
    before, review, after = scripts()[1].partition('"$signoff" review')

    assert review
    assert 'echo "::stop-commands::$stop"' in before
    assert 'echo "::$stop::"' in after


ZEROS = "0" * 40


class Provider:
    """A stub of the model provider, in a thread of its own; it finds what it is told to."""

    def __init__(self) -> None:
        self.server = AnthropicServer()
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever)
        self._thread.start()
        self.finds()
        self._wait(self.server.start())

    def finds(self, *severities: str, evidence: str = "It always works.") -> None:
        """Makes every critic report this passage, once for each severity."""
        issues = [
            {"evidence": evidence, "finding": f"Too sure ({each}).", "severity": each}
            for each in severities
        ]
        critique = {"overall": "FAIL" if issues else "PASS", "issues": issues}
        self._wait(self.server.set_behaviors(TextReply(json.dumps(critique))))

    def close(self) -> None:
        self._wait(self.server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


class Pipeline:
    """A repository with a topic branch, and the printed workflow that reviews it."""

    def __init__(self, project: ReviewProject, folder: Path, program: str) -> None:
        self.project, self.folder, self.program = project, folder, program
        self.provider = Provider()
        self.uploaded: list[str] = []
        self._count = 0
        url = self.provider.server.url
        settings = f"agents: {{anthropic: {{base_url: '{url}', key_env: ANTHROPIC_API_KEY}}}}"
        project.write(".signoff/config.yaml", settings)
        project.commit("where the provider is")
        project.git("checkout", "-q", "-b", "topic")

    def run(
        self,
        inputs: Inputs | None = None,
        *,
        event: dict[str, Any] | None = None,
        branch: str = "topic",
    ) -> WorkflowRun:
        """Runs the job as the runner does, with these inputs besides the printed ones."""
        self._count += 1
        folder = self.folder / str(self._count)
        (workflow,) = (text for name, text in workflow_files() if name.startswith(".github"))
        job = YAML(typ="safe").load(workflow)["jobs"]["review"]
        (ours,) = (step for step in job["steps"] if step["uses"].startswith(OURS))
        ours["with"] |= {"preset": "", **(inputs or {})}
        pull_request = {
            "base": {"sha": self.project.git("rev-parse", "main").strip()},
            "title": "Say more",
        }
        event = {"repository": {"default_branch": "main"}, "pull_request": pull_request} | (
            event or {}
        )
        runner = WorkflowRun(
            folder / "work",
            folder / "temp",
            {
                "github": {"event": event, "run_id": self._count, "run_attempt": 1},
                "secrets": {"ANTHROPIC_API_KEY": "key-of-the-stub"},
            },
            machine(folder),
            {
                "actions/checkout": lambda given: self._check_out(folder, branch, given),
                "github/codeql-action/upload-sarif": lambda given: self._upload(
                    given["sarif_file"]
                ),
                "actions/upload-artifact": lambda given: self._upload(given["path"]),
            },
            {"Install signoff": lambda: link_program(folder / "temp", self.program)}
            if self.program
            else {},
        )
        return runner.run(job)

    def _check_out(self, folder: Path, branch: str, given: Inputs) -> None:
        assert given["fetch-depth"] == "0"
        origin = str(self.project.folder)
        self.project.git("clone", "-q", "--branch", branch, origin, str(folder / "work"))

    def _upload(self, path: str) -> None:
        self.uploaded.append(Path(path).read_text())


@pytest.fixture
def pipeline(
    review_project: ReviewProject,
    tmp_path_factory: pytest.TempPathFactory,
    forked_program: ForkedProgram,
) -> Iterator[Pipeline]:
    made = Pipeline(review_project, tmp_path_factory.mktemp("runner"), forked_program.signoff)
    yield made
    made.provider.close()


def test_the_printed_workflow_reviews_a_pull_request(pipeline: Pipeline) -> None:
    """It is copied as it is, and nobody tries it before it is in use."""
    pipeline.project.write("docs/c.md", "It always works.\n")
    pipeline.project.commit("more")
    pipeline.provider.finds("HIGH")

    run = pipeline.run()

    assert run.failed, run.printed
    assert run.outputs("review")["status"] == "17"
    assert "::error file=docs/c.md,line=1" in run.printed
    assert "docs/c.md" in run.summary
    sarif, report = pipeline.uploaded
    (result,) = json.loads(sarif)["runs"][0]["results"]
    assert result["message"]["text"].startswith("Too sure (HIGH).")
    assert "<html" in report
    heard = pipeline.provider.server.heard[-1]
    assert "key-of-the-stub" in str(heard.headers)
    asked = pipeline.provider.server.received_requests()
    assert {each.model for each in asked} == {"claude-sonnet-4-5"}
    assert "Say more" in asked[0].prompt


def test_only_a_complete_review_without_what_fails_the_job_is_green(
    pipeline: Pipeline, subtests: pytest.Subtests
) -> None:
    """`advisory` is about findings; a file that nobody read is no advice."""
    project = pipeline.project
    project.write("docs/c.md", "It always works.\n")
    project.commit("more")
    rows: list[tuple[list[str], dict[str, str], str, bool]] = [
        (["HIGH"], {"advisory": "true"}, "17", False),
        (["MEDIUM"], {"fail-on": "medium"}, "17", True),
        (["HIGH"], {"agent": ""}, "", True),
        (["HIGH"], {"advisory": "true", "model": ""}, "2", True),
    ]
    for severities, inputs, status, failed in rows:
        with subtests.test(severities=severities, inputs=inputs):
            pipeline.provider.finds(*severities)

            run = pipeline.run(inputs)

            assert (run.outputs("review")["status"], run.failed) == (status, failed), run.printed

    project.write("docs/large.md", "Long. " * 50_000)
    project.commit("large")
    pipeline.provider.finds()

    run = pipeline.run({"advisory": "true"})

    assert (run.outputs("review")["status"], run.failed) == ("18", True), run.printed


def test_a_first_push_reviews_the_branch_or_says_why_not(pipeline: Pipeline) -> None:
    """The commit before it has a name of zeros, and git knows none like it."""
    pipeline.project.write("docs/c.md", "It always works.\n")
    pipeline.project.commit("more")
    pipeline.provider.finds("HIGH")
    push = {"pull_request": None, "before": ZEROS}

    of_branch = pipeline.run(event=push)
    of_default = pipeline.run(event=push, branch="main")
    typed = pipeline.project.review("--diff", ZEROS)

    assert of_branch.outputs("review")["status"] == "17", of_branch.printed
    assert "::error file=docs/c.md,line=1" in of_branch.printed
    assert of_default.failed
    assert "::error::nothing was reviewed" in of_default.printed
    assert typed.code == 2
    assert "name the branch that it started from" in typed.err


def test_the_action_passes_if_there_is_nothing_to_review(pipeline: Pipeline) -> None:
    """A pull request that only updates a lock file has no run, so that nothing can be exported."""
    pipeline.project.write("package-lock.json", "{}\n")
    pipeline.project.commit("lock")

    run = pipeline.run()

    assert not run.failed
    assert "nothing to review; left out: 1 lock file" in run.printed
    assert run.outputs("review") == {"status": "0", "run": "review-1-1", "sarif": "", "report": ""}
    assert pipeline.uploaded == []


def test_the_action_runs_nothing_that_a_change_plants(pipeline: Pipeline) -> None:
    """Python looks for modules in the current folder first, which is the change under review."""
    project = pipeline.project
    for name in ("json", "secrets", "venv"):
        project.write(f"{name}.py", "print('planted')\n")
    project.write(".signoff/config.yaml", "database: planted.db\n")
    project.write("docs/c.md", "It always works.\n")
    project.commit("more")
    pipeline.provider.finds("HIGH")

    run = pipeline.run()

    assert run.outputs("review")["status"] == "17", run.printed
    assert run.outputs("review")["sarif"], run.printed
    assert "planted" not in run.printed
    assert not (pipeline.folder / "1/work/.signoff/planted.db").exists()


@pytest.mark.slow
def test_the_printed_workflow_installs_signoff_by_itself(pipeline: Pipeline) -> None:
    """Nothing else tries the step that installs it: the action is a checkout, not a package."""
    pipeline.project.write("docs/c.md", "It always works.\n")
    pipeline.project.commit("more")
    pipeline.provider.finds("HIGH")
    pipeline.program = ""

    run = pipeline.run()

    assert run.outputs("review")["status"] == "17", run.printed
