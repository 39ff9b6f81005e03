"""Small programs that replace the vendors' own, created by tests."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from signoff.core.effects import AgentRequest, EffectId, Reply
from signoff.runtime.ports import Agent, Call

# The shell starts Python, because the path of an interpreter in a first line may have no space.
HEAD = f"""#!/bin/sh
'''exec' "{sys.executable}" -IS "$0" "$@"
' '''
import json, os, sys, time
prompt = sys.stdin.buffer.read().decode()
def say(**event): print(json.dumps(event), flush=True)
"""


def program(folder: Path, name: str, body: str) -> str:
    """Writes an executable script that has read its prompt before `body` runs."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"{HEAD}{body}", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@dataclass
class Watcher:
    """Records what a call displays and reports."""

    displayed: list[str] = field(default_factory=list)
    processes: list[dict[str, Any]] = field(default_factory=list)
    then: Callable[[str], None] = lambda _text: None

    @property
    def call(self) -> Call:
        def emit(text: str) -> None:
            self.displayed.append(text)
            self.then(text)

        return Call("run", EffectId("ask#1"), 1, emit, self.processes.append)


async def ask(
    agent: Agent, prompt: str = "Hi", *, watcher: Watcher | None = None, **request: Any
) -> Reply:
    """Asks an agent, in a call that nobody watches unless a test does."""
    return await agent.ask(AgentRequest(prompt, **request), (watcher or Watcher()).call)
