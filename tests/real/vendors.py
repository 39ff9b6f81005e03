"""The vendors' real programs, and how each is pointed at a stub of its API."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signoff.agents.claude import ClaudeAgent
from signoff.agents.codex import CodexAgent
from signoff.agents.gemini import GeminiAgent
from signoff.agents.headless import HeadlessAgent
from tests.patience import PATIENCE_SECONDS
from tests.stubs.vendors import gemini, messages, responses
from tests.stubs.vendors.server import Fail, Say, Turn, UseTool, VendorStub

PROGRAMS = Path(__file__).parents[2] / ".agents-env"
"""Where `make agents` puts them; they are too large for the environment of the tests."""

KEY_NAME = "STUB_KEY"
KEY = "stub-key-0123456789"

Write = Callable[[Path, str], UseTool]


@dataclass(frozen=True)
class Vendor:
    """One program and its API."""

    name: str
    kind: type[HeadlessAgent]
    stub: Callable[[Turn], VendorStub]
    places: str
    """Where the program is, as a pattern below the folder of programs."""
    model: str
    write: Write
    """Has the model write a file."""
    structured: Callable[[Any], Turn]
    """Has the model give a structured answer."""
    refusal: Callable[[int, str], Fail]
    api: str = ""
    """What follows the server's address."""

    @property
    def program(self) -> Path | None:
        """Returns the installed program, if it is there."""
        return next(iter(sorted(PROGRAMS.glob(self.places))), None)

    def agent(self, url: str, home: Path, **options: Any) -> HeadlessAgent:
        """Returns an agent whose program talks to a stub and keeps its things in `home`."""
        return self.kind(
            path=str(self.program),
            model=self.model,
            base_url=url + self.api,
            key_env=KEY_NAME,
            env={"HOME": str(home)},
            **{"timeout": PATIENCE_SECONDS, "vendor_retries": 0, **options},
        )


def _patch(place: Path, text: str) -> UseTool:
    lines = "".join(f"+{line}\n" for line in text.splitlines())
    patch = f"*** Begin Patch\n*** Add File: {place}\n{lines}*** End Patch\n"
    return UseTool("apply_patch", {"input": patch})


CLAUDE = Vendor(
    name="claude",
    kind=ClaudeAgent,
    stub=messages.MessagesStub,
    places="lib/python*/site-packages/claude_agent_sdk/_bundled/claude",
    model="claude-sonnet-4-5",
    write=lambda place, text: UseTool("Write", {"file_path": str(place), "content": text}),
    structured=lambda value: UseTool("StructuredOutput", value),
    refusal=lambda status, words: Fail(status, messages.failure("stub_error", words)),
)
CODEX = Vendor(
    name="codex",
    kind=CodexAgent,
    stub=responses.ResponsesStub,
    places="lib/python*/site-packages/codex_cli_bin/bin/codex",
    model="gpt-5.5",
    write=_patch,
    structured=lambda value: Say(json.dumps(value)),
    refusal=lambda status, words: Fail(status, responses.failure("stub_error", words)),
    api="/v1",
)
GEMINI = Vendor(
    name="gemini",
    kind=GeminiAgent,
    stub=gemini.GeminiStub,
    places="gemini/node_modules/.bin/gemini",
    model="gemini-2.5-flash",
    write=lambda place, text: UseTool("write_file", {"file_path": str(place), "content": text}),
    structured=lambda value: Say(json.dumps(value)),
    refusal=lambda status, words: Fail(status, gemini.failure(status, "STUB", words)),
)
VENDORS = (CLAUDE, CODEX, GEMINI)
