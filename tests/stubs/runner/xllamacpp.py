"""Replaces the library that runs local models; its weights are a script in JSON.

A script is a list of behaviors, one for each question; the last one is repeated from then on.
Questions are logged next to it, so that a test can see what reached the model.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

Chunk = dict[str, Any]


class CommonParams:
    def __init__(self) -> None:
        self.model = SimpleNamespace(path="")
        self.cpuparams = SimpleNamespace(n_threads=-1)
        self.cpuparams_batch = SimpleNamespace(n_threads=-1)
        self.n_ctx = 0


class Server:
    def __init__(self, params: CommonParams) -> None:
        self._params = params
        self._script = Path(params.model.path)
        print("a library may print what it likes", flush=True)
        if self._script.read_text().startswith("no weights"):
            os.write(2, b"a note\n0.01 E reader: not a model file\n0.02 E srv: exiting\n")
            raise RuntimeError("Failed to init server, please check the input params.")

    def handle_chat_completions(self, body: dict[str, Any], take: Callable[[Chunk], Any]) -> None:
        log = self._script.with_suffix(".log")
        asked = log.read_text().count('"asked"') if log.exists() else 0
        surroundings = {"pid": os.getpid(), "variables": dict(os.environ)}
        write(log, {"asked": body, "context": self._params.n_ctx, **surroundings})
        script = json.loads(self._script.read_text())
        self._behave(script[min(asked, len(script) - 1)], take)
        write(log, {"done": os.getpid()})

    def _behave(self, way: dict[str, Any], take: Callable[[Chunk], Any]) -> None:
        if "raises" in way:
            raise ValueError(way["raises"])
        if "error" in way:
            take({"error": way["error"]})
            return
        take(chunk({"role": "assistant", "content": None}))
        half = len(way["text"]) // 2
        for piece in (way["text"][:half], way["text"][half:]):
            if piece:
                take(chunk({"content": piece}))
        if "hangs" in way:
            time.sleep(900)
        if "dies" in way:
            os.kill(os.getpid(), way["dies"])
        take(chunk({}, way.get("finish", "stop")))
        if way.get("usage"):
            tokens_in, tokens_out = way["usage"]
            take(
                {
                    "choices": [],
                    "usage": {"prompt_tokens": tokens_in, "completion_tokens": tokens_out},
                }
            )


def chunk(delta: dict[str, Any], finish: str | None = None) -> Chunk:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def write(log: Path, entry: dict[str, Any]) -> None:
    with log.open("a") as file:
        file.write(json.dumps(entry) + "\n")
