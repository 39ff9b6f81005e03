"""Codex, run headless: `codex exec --json` with its events.

Writing is held to the workspace by codex's own sandbox. A rejected patch shows on standard
error only, and a server that cannot be reached is waited for without end, so both are
watched for while it runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from signoff.agents.error_patterns import complaint
from signoff.agents.headless import HeadlessAgent
from signoff.agents.program import inside, tell
from signoff.agents.reading import ProgramReply
from signoff.agents.structured import instruction
from signoff.core.effects import AgentRequest
from signoff.core.spend import Usage
from signoff.errors import AgentError, AgentTransient
from signoff.runtime.ports import Capabilities

_LOGIN = "run `codex login`, or set OPENAI_API_KEY"
_REJECTED = re.compile(r"(patch rejected: .+|reject command.+)")
_UNREACHABLE = re.compile(r"waiting for network|connection failed", re.IGNORECASE)


class CodexAgent(HeadlessAgent):
    """Answers with the `codex` program."""

    name = "codex"
    capabilities = Capabilities(
        edits_files=True,
        json_schema=True,
        streaming=True,
        prompt_caching=True,
        model_family="openai",
    )
    login = _LOGIN
    install = "npm install -g @openai/codex"
    extra = "codex"
    oldest = (0, 60)
    keys = ("CODEX_API_KEY", "OPENAI_API_KEY")
    settings = ("CODEX_HOME",)
    bundled: ClassVar[Callable[[], Path | None]] = staticmethod(
        inside("codex_cli_bin", "bin", "codex")
    )

    def arguments(self, request: AgentRequest, scratch: Path) -> list[str]:
        """Returns the arguments of one call; the schema goes through a file."""
        argv = ["exec", "--json", "--skip-git-repo-check"]
        if request.model:
            argv += ["--model", request.model]
        if request.schema is not None and strict(request.schema):
            place = scratch / "schema.json"
            place.write_text(json.dumps(request.schema), encoding="utf-8")
            argv += ["--output-schema", str(place)]
        argv += ["-s", "workspace-write" if request.edit else "read-only"]
        if request.edit:
            # Without these the sandbox lets it write to every temporary folder as well.
            argv += ["-c", "sandbox_workspace_write.exclude_slash_tmp=true"]
            argv += ["-c", "sandbox_workspace_write.exclude_tmpdir_env_var=true"]
        if self._base_url:
            argv += [
                "-c",
                'model_provider="signoff"',
                "-c",
                f"model_providers.signoff={self._provider()}",
            ]
        return [*argv, *self._args, "-"]

    def prompt(self, request: AgentRequest) -> str:
        """Returns the prompt, with the schema in it when the vendor would not take that."""
        prompt = super().prompt(request)
        if request.schema is None or strict(request.schema):
            return prompt
        return f"{prompt}\n\n{instruction(request.schema)}"

    def variables(self) -> dict[str, str]:
        """Has rejections logged, which is the only place where they show."""
        return {"RUST_LOG": "error"}

    async def logged_in(self, program: str, environment: Mapping[str, str]) -> bool | None:
        """Asks the program, unless a key or a server of one's own makes a login unnecessary."""
        if self._base_url or any(environment.get(key) for key in self.keys):
            return True
        code, words = await tell([program, "login", "status"], environment)
        return False if code != 0 and "not logged in" in words.lower() else None

    def reader(self) -> CodexReader:
        """Returns who understands its events."""
        return CodexReader(self._retries)

    def _provider(self) -> str:
        fields = {"name": "signoff", "base_url": self._base_url, "wire_api": "responses"}
        texts = [f"{name}={json.dumps(value)}" for name, value in fields.items()]
        if self._key is not None:
            texts.append(f"env_key={json.dumps(self.keys[0])}")
        tries = [
            f"{name}={self._retries}" for name in ("request_max_retries", "stream_max_retries")
        ]
        return "{" + ",".join(texts + tries) + "}"


class CodexReader:
    """Reads `thread.*`, `turn.*`, `item.*` and `error` events."""

    def __init__(self, retries: int) -> None:
        self._ours = False
        self._text = ""
        self._session: str | None = None
        self._usage: Usage | None = None
        self._ended = False
        self._failure = ""
        self._lost = 0
        self._retries = retries
        self._denied: list[str] = []

    def event(self, data: dict[str, Any]) -> str | None:
        """Takes one event and returns what the model said in it."""
        kind = str(data.get("type"))
        self._ours = self._ours or kind.startswith(("thread.", "turn.", "item."))
        match kind:
            case "thread.started":
                self._session = str(data.get("thread_id") or "") or None
            case "item.completed":
                return self._item(data.get("item"))
            case "turn.completed":
                self._ended = True
                self._usage = _usage(data.get("usage"))
            case "turn.failed":
                error = data.get("error")
                self._failure = _words(error.get("message") if isinstance(error, dict) else error)
            case "error":
                self._trouble(str(data.get("message") or ""))
        return None

    def complaint(self, line: str) -> None:
        """Hears of patches and commands that were rejected."""
        found = _REJECTED.search(line)
        if found:
            self._denied.append(found[1][:200])

    def said(self) -> ProgramReply | None:
        """Judges the turn: its last message counts, and only once the turn was completed."""
        if not self._ours:
            return None
        fault: AgentError | None = None
        if self._failure:
            fault = complaint("codex", self._failure, remedy=_LOGIN)
        return ProgramReply(
            text=self._text,
            finish="completed" if self._ended else None,
            usage=self._usage,
            session=self._session,
            complete=self._ended,
            denied=tuple(self._denied),
            fault=fault,
        )

    def _item(self, item: Any) -> str | None:
        """Takes a finished item; one of type error may be only a warning, so it is just shown."""
        if not isinstance(item, dict):
            return None
        match item.get("type"):
            case "agent_message":
                self._text = str(item.get("text") or "")
                return f"{self._text}\n"
            case "command_execution":
                return f"$ {item.get('command')}\n"
            case "error":
                return f"{item.get('message')}\n"
        return None

    def _trouble(self, message: str) -> None:
        if not _UNREACHABLE.search(message):
            return
        self._lost += 1
        if self._lost > self._retries:
            raise AgentTransient(f"codex cannot reach its server: {message:.200}")


def strict(schema: Any) -> bool:
    """Tells whether the vendor takes a schema: every object closed, every property required."""
    if isinstance(schema, list):
        return all(strict(each) for each in schema)
    if not isinstance(schema, Mapping):
        return True
    properties = schema.get("properties")
    if schema.get("type") == "object" or properties is not None:
        names = set(properties or {})
        closed = schema.get("additionalProperties") is False
        if not closed or names != set(schema.get("required", ())):
            return False
    return all(strict(each) for each in schema.values())


def _words(message: Any) -> str:
    """Returns what a failure says; some carry the server's whole JSON as their message."""
    text = str(message or "it did not say why")
    try:
        inner = json.loads(text)
    except ValueError:
        return text
    error = inner.get("error") if isinstance(inner, dict) else None
    if not isinstance(error, dict):
        return text
    return f"{error.get('type') or 'error'}: {error.get('message')}"


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    return Usage(usage.get("input_tokens"), usage.get("output_tokens"))
