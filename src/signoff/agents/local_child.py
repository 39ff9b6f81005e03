"""The process of a local model: reads requests as lines of JSON and writes its answers.

It is a separate process because native code that works on a long prompt cannot be
interrupted, and because a crash of it must not end a run. It ends together with its parent,
which closes its standard input.

The first line has the load options. An answer consists of `{"chunk": ...}` lines in the
format of streamed chat completions, ended by `{"end": true}` or by
`{"raised": ..., "while": ...}`.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO


def main() -> None:
    """Handles requests until standard input ends."""
    out = _claim_stdout()
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    try:
        server = _load(json.loads(lines.get()))
    except Exception as error:  # noqa: BLE001  # native code may raise anything; it is reported
        _write(out, {"raised": str(error), "while": "loading"})
        return
    while True:
        _answer(server, json.loads(lines.get()), out)


def _claim_stdout() -> TextIO:
    """Returns standard output, and redirects what the library prints there to standard error."""
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return own


def _read(lines: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        lines.put(line)
    # The parent is gone; native code may still be running and cannot be waited for.
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


def _answer(server: Any, request: dict[str, Any], out: TextIO) -> None:
    try:
        server.handle_chat_completions(request, lambda chunk: _write(out, {"chunk": chunk}))
    except Exception as error:  # noqa: BLE001  # native code may raise anything; it is reported
        _write(out, {"raised": str(error), "while": "answering"})
        return
    _write(out, {"end": True})


def _write(out: TextIO, message: dict[str, Any]) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
