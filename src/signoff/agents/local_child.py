"""The program of a local model: reads one request as JSON and writes the answer as lines of JSON.

The answer consists of `{"chunk": ...}` lines in the format of streamed chat completions. The last
line is `{"raised": ..., "while": ...}` if the library raised an error.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

PARENT_SECONDS = 0.5
"""How often it looks whether its parent is still there."""


def main() -> None:
    """Answers the request on standard input."""
    out = _claim_stdout()
    options = json.load(sys.stdin)
    threading.Thread(target=_end_with, args=(options["parent"],), daemon=True).start()
    doing = "loading"
    try:
        server = _load(options)
        doing = "answering"
        server.handle_chat_completions(options["body"], lambda chunk: _write(out, {"chunk": chunk}))
    except Exception as error:  # noqa: BLE001  # native code may raise anything; it is reported
        _write(out, {"raised": str(error), "while": doing})
    # The answer is complete: what native code does at the end of a process must not spoil it.
    os._exit(0)


def _claim_stdout() -> TextIO:
    """Returns standard output, and redirects what the library prints there to standard error."""
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return own


def _end_with(parent: int) -> None:
    """Ends this process when its parent is gone: a killed run must not leave the model behind."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    # Native code may still be running and cannot be waited for.
    os._exit(0)


def _load(options: dict[str, Any]) -> Any:
    xllamacpp = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = options["path"]
    params.n_ctx = options["context"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options["threads"]
    params.n_parallel = 1
    # Earlier requests must not change an answer, not even by a rounding error.
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.warmup = False
    params.offline = True
    params.ui = False
    params.verbosity = 1
    # The library always opens a server as well; this socket is deleted right after.
    params.hostnames = [str(Path(options["folder"]) / "s.sock")]
    params.n_threads_http = 1
    server = xllamacpp.Server(params)
    shutil.rmtree(options["folder"], ignore_errors=True)
    return server


def _write(out: TextIO, message: dict[str, Any]) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
