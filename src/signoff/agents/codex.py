"""Codex, run headless: `codex exec --json` with its events.

Codex's own sandbox limits writing to the workspace. A rejected patch appears on standard
error only, and codex waits forever for a server that it cannot reach, so both are watched
while it runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signoff.agents.answer import as_dict, as_text, cached_count, is_strict, with_schema
from signoff.agents.failures import failure_error, unwrapped_message
from signoff.agents.headless import HeadlessAgent, OutputReader, probe
from signoff.agents.kinds import BUNDLED
from signoff.core.effects import AgentRequest
from signoff.core.errors import AgentTransient
from signoff.core.spend import Usage
from signoff.runtime.ports import Capabilities

_LOGIN = "run `codex login`, or set OPENAI_API_KEY"
_REJECTED = re.compile(r"(patch rejected: .+|reject command.+)")
_UNREACHABLE = re.compile(r"waiting for network|connection failed", re.IGNORECASE)


class CodexReader(OutputReader):
    """Reads `thread.*`, `turn.*`, `item.*` and `error` events."""

    _lost_connections = 0

    def read_event(self, data: dict[str, Any]) -> str | None:
        """Reads one event and returns the model's text in it; only a completed turn counts."""
        match data.get("type"):
            case "thread.started":
                self.update(session=as_text(data.get("thread_id")) or None)
            case "item.completed":
                return self._read_item(as_dict(data.get("item")))
            # Messages before this event may be plans or half an answer, so nothing else completes
            # the reply.
            case "turn.completed":
                counts = as_dict(data.get("usage"))
                usage = Usage(
                    counts.get("input_tokens"),
                    counts.get("output_tokens"),
                    tokens_cached=cached_count(counts.get("cached_input_tokens")),
                    tokens_reasoning=cached_count(counts.get("reasoning_output_tokens")),
                )
                self.update(complete=True, finish="completed", usage=usage if counts else None)
            case "turn.failed":
                error = data.get("error")
                message = error.get("message") if isinstance(error, dict) else error
                reason = unwrapped_message(str(message or "no reason given"))
                self.update(fault=failure_error("codex", reason, remedy=_LOGIN))
            case "error":
                self._read_error(str(data.get("message") or ""))
        return None

    def read_stderr(self, line: str) -> None:
        """Collects patches and commands that were rejected."""
        match = _REJECTED.search(line)
        if match:
            self.deny(match[1])

    def _read_item(self, item: dict[str, Any]) -> str | None:
        """Reads a finished item; one of type error may be a mere warning, so it is only shown."""
        match item.get("type"):
            case "agent_message":
                text = str(item.get("text") or "")
                self.update(text=text)
                return f"{text}\n"
            case "command_execution":
                return f"$ {item.get('command')}\n"
            case "error":
                return f"{item.get('message')}\n"
        return None

    def _read_error(self, message: str) -> None:
        if not _UNREACHABLE.search(message):
            return
        self._lost_connections += 1
        if self._lost_connections > self.retries:
            raise AgentTransient(f"codex cannot reach its server: {message:.200}")


@dataclass(kw_only=True, eq=False, repr=False)
class CodexAgent(HeadlessAgent):
    """Answers with the `codex` program."""

    name = "codex"
    reader = CodexReader
    capabilities = Capabilities(
        edits_files=True,
        json_schema=True,
        prompt_caching=True,
        provider="openai",
    )
    login_hint = _LOGIN
    install_hint = "npm install -g @openai/codex"
    extra = "codex"
    minimum_version = (0, 60)
    key_variables = ("CODEX_API_KEY", "OPENAI_API_KEY")
    setting_variables = ("CODEX_HOME",)
    bundled = BUNDLED["codex"]

    def arguments(self, request: AgentRequest, scratch: Path) -> list[str]:
        """Returns the arguments of one call; the schema is passed in a file."""
        argv = ["exec", "--json", "--skip-git-repo-check"]
        if request.model:
            argv += ["--model", request.model]
        if request.schema is not None and is_strict(request.schema):
            file = scratch / "schema.json"
            file.write_text(json.dumps(request.schema), encoding="utf-8")
            argv += ["--output-schema", str(file)]
        argv += ["-s", "workspace-write" if request.edit else "read-only"]
        if request.edit:
            # Without these the sandbox also allows writing to every temporary folder.
            argv += ["-c", "sandbox_workspace_write.exclude_slash_tmp=true"]
            argv += ["-c", "sandbox_workspace_write.exclude_tmpdir_env_var=true"]
        if self.base_url:
            provider = f"model_providers.signoff={self._provider()}"
            argv += ["-c", 'model_provider="signoff"', "-c", provider]
        # The dash makes it read the prompt from standard input: every user of the machine can read
        # its arguments.
        return [*argv, *self.args, "-"]

    def input_text(self, request: AgentRequest) -> str:
        """Returns the prompt, with the schema when the vendor would refuse it as an option."""
        schema = None if is_strict(request.schema) else request.schema
        return with_schema(super().input_text(request), schema)

    def variables(self) -> dict[str, str]:
        """Enables the log of rejections, the only place where they appear."""
        return {"RUST_LOG": "error"}

    async def is_logged_in(self, program: str, environment: Mapping[str, str]) -> bool | None:
        """Asks the program, unless a key or another server makes a login unnecessary."""
        if self.base_url or any(environment.get(key) for key in self.key_variables):
            return True
        code, output = await probe([program, "login", "status"], environment)
        # Any other failure of this command says nothing about the login.
        return False if code != 0 and "not logged in" in output.lower() else None

    def _provider(self) -> str:
        """Returns the inline TOML table that describes the configured server."""
        fields = {"name": "signoff", "base_url": self.base_url, "wire_api": "responses"}
        if self.key_env is not None:
            fields["env_key"] = self.key_variables[0]
        limits = ("request_max_retries", "stream_max_retries")
        retries = dict.fromkeys(limits, self.vendor_retries)
        items = [f"{name}={json.dumps(value)}" for name, value in {**fields, **retries}.items()]
        return "{" + ",".join(items) + "}"
