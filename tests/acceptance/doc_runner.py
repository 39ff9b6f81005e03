"""Somebody who does what a page says, in an empty folder, with nobody's settings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.acceptance.doc_blocks import Block, missing, typed
from tests.patience import PATIENCE_SECONDS

_MARK = "--8<--"
_KEPT = ("LANG", "LC_ALL", "TMPDIR", "PYTHONPATH")


class Reader:
    """Tries one block after the other."""

    def __init__(self, place: Path) -> None:
        self.folder = place / "project"
        self.folder.mkdir()
        self._environment = {
            **{name: value for name, value in os.environ.items() if name in _KEPT},
            "HOME": str(place),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}",
            "PYTHONUNBUFFERED": "1",  # both streams in the order a terminal shows them
        }

    def tries(self, block: Block) -> str:
        """Does what a block says; returns what went wrong, empty when nothing did."""
        if block.file:
            self._write(block.file, block.text)
        if block.not_run:
            return ""
        match block.language:
            case "python":
                return self._python(block)
            case "sh":
                return _judged(*self._run(["bash", "-euo", "pipefail", "-c", block.text]), [])
            case "console":
                return self._session(block.text)
        return ""

    def _python(self, block: Block) -> str:
        name = block.file or f"block_{block.line}.py"
        self._write(name, block.text)
        code, output = self._run([sys.executable, name])
        return _judged(code, output, block.prints.splitlines())

    def _session(self, text: str) -> str:
        """Types a session's commands into one shell, and looks for what should be seen."""
        exchanges = list(typed(text))
        # A line between commands tells their outputs apart; `$?` is handed on past it.
        script = [
            f"{command}\n__code=$?; echo '{_MARK}'; (exit $__code)" for command, _ in exchanges
        ]
        _, output = self._run(["bash", "-c", "\n".join(script)])
        outputs = output.split(f"{_MARK}\n")
        if len(outputs) != len(exchanges) + 1:
            return f"the session ended early:\n{output}"
        for (command, seen), said in zip(exchanges, outputs, strict=False):
            line = missing(seen, said)
            if line is not None:
                return f"{line!r} is not seen after `{command}`, which says:\n{said}"
        return ""

    def _write(self, name: str, text: str) -> None:
        place = self.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")

    def _run(self, argv: list[str]) -> tuple[int, str]:
        """Runs a program with nobody at its keyboard; what it started is ended with it."""
        with subprocess.Popen(
            argv,
            cwd=self.folder,
            env=self._environment,
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


def _judged(code: int, output: str, seen: list[str]) -> str:
    if code != 0:
        return f"ended with {code}:\n{output}"
    line = missing(seen, output)
    return "" if line is None else f"{line!r} is not printed; this is:\n{output}"
