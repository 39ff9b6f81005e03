"""Runs the blocks of a documentation page as a new user would, in an empty folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.acceptance.doc_blocks import Block, missing, typed
from tests.acceptance.forked_program import RUN_FILE
from tests.contract.local_harness import RUNNER
from tests.nested_pytest import ONLY_SIGNOFF
from tests.patience import PATIENCE_SECONDS
from tests.run_stores import store_variables

SLOGAN = "The best coffee in town, for everyone who likes a good cup."
"""What the stand-in for the small model writes: the checks of the README object to it."""
_SEPARATOR = "--8<--"
_INHERITED = ("LANG", "LC_ALL", "TMPDIR", "PYTHONPATH")


class DocRunner:
    """Runs one block after the other."""

    def __init__(self, home: Path, program: Path | None = None) -> None:
        """`program` is the folder of other programs than the installed ones."""
        self.folder = home / "project"
        self.folder.mkdir()
        found = [str(program)] if program is not None else []
        self._python_program = sys.executable if program is None else str(program / RUN_FILE)
        self.environment = {
            **{name: value for name, value in os.environ.items() if name in _INHERITED},
            **store_variables(),
            "HOME": str(home),
            "SIGNOFF_TRUST": "1",
            "PATH": os.pathsep.join([*found, str(Path(sys.executable).parent), os.defpath]),
            "PYTEST_ADDOPTS": " ".join(ONLY_SIGNOFF),
            "PYTHONUNBUFFERED": "1",  # both streams in the order a terminal shows them
        }

    def install_model(self) -> None:
        """Gives the agent `local` a stand-in for its library, and an answer for weights."""
        home = Path(self.environment["HOME"])
        self.environment["PYTHONPATH"] = str(RUNNER)
        weights, settings = home / "model.gguf", home / ".config" / "signoff" / "config.yaml"
        weights.write_text(json.dumps([{"text": SLOGAN}]))
        settings.parent.mkdir(parents=True)
        settings.write_text(f"agents: {{local: {{kind: local, model: {weights}}}}}\n")

    def run(self, block: Block) -> str:
        """Writes or runs a block; returns the problem, or an empty string."""
        if block.file:
            self._write(block.file, block.text)
        if block.not_run:
            return ""
        match block.language:
            case "python":
                return self._python(block)
            case "sh":
                return _problem(*self._execute(["bash", "-euo", "pipefail", "-c", block.text]), [])
            case "console":
                return self._session(block.text)
        return ""

    def close(self) -> None:
        """Ends the worker that a block has started in the background, if any."""
        if not (self.folder / ".signoff" / "worker.log").exists():
            return
        _, output = self._execute(["signoff", "workers", "--json"])
        for worker in json.loads(output):
            with suppress(ProcessLookupError):
                os.kill(worker["pid"], signal.SIGKILL)

    def _python(self, block: Block) -> str:
        name = block.file or f"block_{block.line}.py"
        self._write(name, block.text)
        code, output = self._execute([self._python_program, name])
        return _problem(code, output, block.prints.splitlines())

    def _session(self, text: str) -> str:
        """Runs the commands of a session in one shell, and checks the output of each."""
        exchanges = list(typed(text))
        # A separator line divides the outputs; `$?` is restored after it.
        script = [
            f"{command}\n__code=$?; echo '{_SEPARATOR}'; (exit $__code)" for command, _ in exchanges
        ]
        _, output = self._execute(["bash", "-c", "\n".join(script)])
        outputs = output.split(f"{_SEPARATOR}\n")
        if len(outputs) != len(exchanges) + 1:
            return f"the session ended early:\n{output}"
        for (command, expected), actual in zip(exchanges, outputs, strict=False):
            line = missing(expected, actual)
            if line is not None:
                return f"{line!r} is not in the output of `{command}`:\n{actual}"
        return ""

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def _execute(self, argv: list[str]) -> tuple[int, str]:
        """Runs a program without a terminal, and kills what it leaves running."""
        with subprocess.Popen(
            argv,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        ) as program:
            try:
                output, _ = program.communicate(timeout=PATIENCE_SECONDS)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(program.pid, signal.SIGKILL)
        return program.returncode, output


def _problem(code: int, output: str, expected: list[str]) -> str:
    if code != 0:
        return f"ended with {code}:\n{output}"
    line = missing(expected, output)
    return "" if line is None else f"{line!r} is not in the output:\n{output}"
