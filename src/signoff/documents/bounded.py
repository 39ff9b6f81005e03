"""Evaluates conditions and schemas of replies under a time limit that always holds.

A condition can run for years, and so can a schema's regular expression of twenty characters on a
reply that a model wrote. Neither can be interrupted in this process, so both are evaluated in a
child process that the kernel kills when it exceeds its limit of CPU time or memory.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from signoff.documents import bounded_child
from signoff.documents.bounded_child import SchemaError

SECONDS = 1.0
"""CPU time allowed for one evaluation."""

WALL_SECONDS = 30.0
"""Wall-clock time allowed on top of the CPU time, because the machine may be busy."""

_ENVIRONMENT = ("LD_LIBRARY_PATH", "PATH", "SYSTEMROOT")
"""The only variables passed to the child, so that expressions cannot read secrets from it."""


class OutOfBounds(Exception):  # noqa: N818  # named for what happened
    """An evaluation took too long or too much memory."""


class EvaluationFailed(Exception):  # noqa: N818  # named for what happened
    """An evaluation raised an error; `kind` is the name of its class."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def variables_of(expression: str) -> list[str]:
    """Returns the variable names that a CEL expression uses."""
    return list(_CHILD.call("variables", expression, _cel_folders()))


def evaluate(expression: str, values: dict[str, Any], *, linear: bool) -> Any:
    """Returns the value of a CEL expression.

    `linear` promises that the time only grows with the length of the expression and its
    values. Such an expression is evaluated in this process, which is a hundred times faster.
    """
    folders = _cel_folders()
    if not linear:
        return _CHILD.call("evaluate", expression, folders, values)
    try:
        return bounded_child.program(expression, folders).execute(values)
    except Exception as error:
        raise EvaluationFailed(type(error).__name__, str(error)) from error


def schema_errors(value: Any, schema: dict[str, Any]) -> list[SchemaError]:
    """Returns the violations of a JSON Schema, each as a path and a message."""
    # Only regular expressions can take long. All other schemas are checked in this process,
    # because the child would first have to load the library.
    if "pattern" not in json.dumps(schema):
        return bounded_child.schema_errors(value, schema)
    import_path = tuple(sys.path)
    return list(_CHILD.call("schema_errors", value, schema, import_path, seconds=2 * SECONDS))


class _Child:
    """The child process: started on first use, and again after it was killed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def call(self, operation: str, *arguments: Any, seconds: float = SECONDS) -> Any:
        """Performs an operation; raises `OutOfBounds` or `EvaluationFailed`."""
        request = pickle.dumps((operation, arguments, seconds))
        with self._lock:
            process = self._process
            if process is None or process.poll() is not None:
                process = self._process = _start()
                # Not twice, although a child that was killed is started again.
                atexit.unregister(self.close)
                atexit.register(self.close)
            watchdog = threading.Timer(seconds + WALL_SECONDS, process.kill)
            watchdog.daemon = True
            watchdog.start()
            try:
                error, value = _exchange(process, request)
            except (EOFError, OSError, pickle.UnpicklingError):
                self._process = None
                raise OutOfBounds(_kill_reason(_kill(process), seconds)) from None
            except BaseException:
                # The reply to this request may still arrive. If the child lived on, the next
                # request would read it as its own.
                self._process = None
                _kill(process)
                raise
            finally:
                watchdog.cancel()
        if error is not None:
            raise EvaluationFailed(*error)
        return value

    def close(self) -> None:
        """Ends the child process if this process has started it."""
        process, self._process = self._process, None
        if process is not None:
            _kill(process)


def _start() -> subprocess.Popen[bytes]:
    child = Path(__file__).with_name("bounded_child.py")
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(child)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
    )


@lru_cache(maxsize=1)
def _cel_folders() -> tuple[str, ...]:
    cel = find_spec("cel")
    return tuple(cel.submodule_search_locations or ()) if cel is not None else ()


def _exchange(process: subprocess.Popen[bytes], request: bytes) -> Any:
    if process.stdin is None or process.stdout is None:
        raise EOFError
    process.stdin.write(request)
    process.stdin.flush()
    return pickle.load(process.stdout)  # noqa: S301  # from our own child


def _kill(process: subprocess.Popen[bytes]) -> int:
    """Ends the child if it is still alive, and returns its exit code."""
    with suppress(OSError), process:  # closes the pipes and waits
        process.kill()
    return process.wait()


def _kill_reason(exit_code: int, seconds: float) -> str:
    if exit_code in (-signal.SIGKILL, -getattr(signal, "SIGPROF", signal.SIGKILL)):
        return f"evaluation takes longer than {seconds:g} seconds"
    return "evaluation takes too much memory"


_CHILD = _Child()
