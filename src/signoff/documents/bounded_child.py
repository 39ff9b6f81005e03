"""The child process behind `bounded`: evaluates one request after the other.

It runs as a script without the site packages, so it starts in milliseconds. The kernel kills
it when a request exceeds its limits. A watchdog thread in here could not do that, because the
libraries that do the work hold the interpreter lock.
"""

import pickle
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

MEMORY_BYTES = 1 << 30
"""Address space of the whole process; an ordinary expression needs a fraction of it."""


SchemaError = tuple[list[str | int], str]
"""The path of an invalid value, and what is wrong with it."""


def main() -> None:
    """Answers requests from standard input until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        try:
            operation, arguments, seconds = pickle.load(sys.stdin.buffer)  # noqa: S301  # from the parent
        except EOFError:
            return
        _limit(seconds)
        try:
            reply = pickle.dumps((None, OPERATIONS[operation](*arguments)))
        except Exception as error:  # noqa: BLE001  # the parent reports any error
            reply = pickle.dumps(((type(error).__name__, str(error)), None))
        _limit(0)
        sys.stdout.buffer.write(reply)
        sys.stdout.buffer.flush()


def _limit(seconds: float) -> None:
    """Makes the kernel kill this process after that much CPU time; 0 removes the limit."""
    # CPU time instead of wall-clock time, so that no ordinary expression fails on a busy machine.
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


@lru_cache(maxsize=1)
def _cel(folders: tuple[str, ...]) -> Any:
    # Only the extension module is loaded: importing the package would also import its command
    # line and take ten times longer.
    spec = PathFinder.find_spec("cel", list(folders))
    if spec is None or spec.loader is None:
        raise ImportError("the common-expression-language package is missing")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@lru_cache(maxsize=512)
def program(text: str, folders: tuple[str, ...]) -> Any:
    """Returns a compiled CEL expression; `folders` contain the extension module."""
    return _cel(folders).compile(text)


def schema_errors(
    value: Any, schema: dict[str, Any], path: tuple[str, ...] = ()
) -> list[SchemaError]:
    """Returns the violations of a schema; `path` is the import path for libraries."""
    sys.path.extend(folder for folder in path if folder not in sys.path)
    from jsonschema import Draft202012Validator

    errors = Draft202012Validator(schema).iter_errors(value)
    found = [(list(error.absolute_path), error.message) for error in errors]
    # The text of an error would be a simpler order, but it contains the value and the schema.
    return sorted(found, key=lambda each: (each[1], list(map(str, each[0]))))


OPERATIONS: dict[str, Callable[..., Any]] = {
    "variables": lambda text, folders: list(program(text, folders).variables()),
    "evaluate": lambda text, folders, values: program(text, folders).execute(values),
    "schema_errors": schema_errors,
}

if __name__ == "__main__":
    main()
