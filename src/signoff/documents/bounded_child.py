"""The child process behind `bounded`: evaluates one request after the other.

It is started as a script, without the site packages, so it starts in milliseconds. The
kernel ends it when a request uses more time or memory than it may: the libraries that
do the work hold the interpreter lock, so no thread in here could.
"""

import os
import pickle
import re
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from itertools import islice
from typing import Any

MEMORY_BYTES = 1 << 30
"""Address space of the whole process; an honest expression needs a small part of it."""


SchemaError = tuple[list[str | int], str]
"""Where a value does not fit its schema, and why."""


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
        except Exception as error:  # noqa: BLE001  # the parent words whatever went wrong
            reply = pickle.dumps(((type(error).__name__, str(error)), None))
        _limit(0)
        sys.stdout.buffer.write(reply)
        sys.stdout.buffer.flush()


def _limit(seconds: float) -> None:
    """Lets the kernel end this process after that much processor time; 0 takes the limit away."""
    # Processor time, so a busy machine does not make an honest expression fail.
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


@lru_cache(maxsize=1)
def _cel(folders: tuple[str, ...]) -> Any:
    # The package itself imports a command line with all it needs, which takes ten times longer.
    spec = PathFinder.find_spec("cel", list(folders))
    if spec is None or spec.loader is None:
        raise ImportError("the common-expression-language package is missing")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@lru_cache(maxsize=512)
def program(text: str, folders: tuple[str, ...]) -> Any:
    """Returns a compiled CEL expression; `folders` hold the compiled part of the library."""
    return _cel(folders).compile(text)


def _variables(text: str, folders: tuple[str, ...]) -> list[str]:
    return list(program(text, folders).variables())


def _evaluate(text: str, folders: tuple[str, ...], values: dict[str, Any]) -> Any:
    return program(text, folders).execute(values)


def _search(pattern: str, text: str) -> bool:
    return re.search(pattern, text) is not None


def _glob(folder: str, pattern: str, most: int) -> list[str]:
    from pathlib import Path

    return [os.fspath(path) for path in islice(Path(folder).glob(pattern), most)]


def schema_errors(
    value: Any, schema: dict[str, Any], path: tuple[str, ...] = ()
) -> list[SchemaError]:
    """Returns what keeps a value from fitting a schema; `path` is where libraries are found."""
    sys.path.extend(folder for folder in path if folder not in sys.path)
    from jsonschema import Draft202012Validator

    found = sorted(Draft202012Validator(schema).iter_errors(value), key=str)
    return [(list(error.absolute_path), error.message) for error in found]


OPERATIONS: dict[str, Callable[..., Any]] = {
    "variables": _variables,
    "evaluate": _evaluate,
    "search": _search,
    "glob": _glob,
    "schema_errors": schema_errors,
}

if __name__ == "__main__":
    main()
