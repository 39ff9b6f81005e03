"""The process a local model lives in: reads questions as lines of JSON, writes what it says.

It is a process of its own because native code that works on a long prompt cannot be
interrupted, and because its faults must not take a run down with them. It ends when whoever
started it does: its standard input ends then.

The first line says what to load. Every answer is `{"chunk": ...}` lines in the form of
streamed chat completions, closed by `{"end": true}` or `{"raised": ..., "while": ...}`.
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
    """Serves questions until standard input ends."""
    out = _own_output()
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    try:
        server = _load(json.loads(lines.get()))
    except Exception as error:  # noqa: BLE001  # native code raises what it likes; it is reported
        _say(out, {"raised": str(error), "while": "loading"})
        return
    while True:
        _answer(server, json.loads(lines.get()), out)


def _own_output() -> TextIO:
    """Keeps standard output for ourselves: what the library prints there goes to the errors."""
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return own


def _read(lines: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        lines.put(line)
    # Whoever asked is gone; the model may be in the middle of native code and is not waited for.
    os._exit(0)


def _load(wanted: dict[str, Any]) -> Any:
    xllamacpp = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = wanted["path"]
    params.n_ctx = wanted["context"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = wanted["threads"]
    params.n_parallel = 1
    # What was asked before must not change an answer, not even by a rounding.
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.warmup = False
    params.offline = True
    params.ui = False
    params.verbosity = 1
    # The library always serves somewhere too; a socket nobody can reach is the closest to nowhere.
    params.hostnames = [str(Path(wanted["place"]) / "s.sock")]
    params.n_threads_http = 1
    server = xllamacpp.Server(params)
    shutil.rmtree(wanted["place"], ignore_errors=True)
    return server


def _answer(server: Any, question: dict[str, Any], out: TextIO) -> None:
    try:
        server.handle_chat_completions(question, lambda chunk: _say(out, {"chunk": chunk}))
    except Exception as error:  # noqa: BLE001  # native code raises what it likes; it is reported
        _say(out, {"raised": str(error), "while": "answering"})
        return
    _say(out, {"end": True})


def _say(out: TextIO, message: dict[str, Any]) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
