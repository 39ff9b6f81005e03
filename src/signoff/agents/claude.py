"""Claude Code, run headless: `claude -p` with its stream of JSON.

Only the tools a request needs are offered: none for a plain answer, reading within a
workspace, writing there when it may edit. So a denial always means something.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from signoff.agents.answer import whole_characters
from signoff.agents.error_patterns import complaint
from signoff.agents.headless import HeadlessAgent
from signoff.agents.program import inside, tell
from signoff.agents.reading import ProgramReply
from signoff.core.effects import AgentRequest
from signoff.core.spend import Usage
from signoff.errors import AgentBadOutput, AgentError, ConfigError
from signoff.runtime.ports import Capabilities

LONGEST_SCHEMA = 100_000
"""Systems refuse longer arguments; a longer schema goes into the prompt instead."""

_LOOKING = ("Read", "Grep", "Glob")
_EDITING = ("Edit", "Write", "NotebookEdit")
_HARMLESS = frozenset({*_LOOKING, "LS", "WebFetch", "WebSearch", "ToolSearch"})
"""Denied, these cost the answer some facts, but nothing that was asked for is missing."""

_NOT_OFFERED = re.compile(r"No such tool available: (\w+)")

_LOGIN = "run `claude` and then /login, or set ANTHROPIC_API_KEY"


class ClaudeAgent(HeadlessAgent):
    """Answers with the `claude` program."""

    name = "claude"
    capabilities = Capabilities(
        edits_files=True,
        json_schema=True,
        system_prompt=True,
        streaming=True,
        prompt_caching=True,
        reports_price=True,
        model_family="anthropic",
        own_models_only=True,
    )
    login = _LOGIN
    install = "npm install -g @anthropic-ai/claude-code"
    extra = "claude"
    oldest = (2, 1)
    keys = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
    settings = ("ANTHROPIC_BASE_URL", "CLAUDE_CONFIG_DIR")
    address = "ANTHROPIC_BASE_URL"
    bundled: ClassVar[Callable[[], Path | None]] = staticmethod(
        inside("claude_agent_sdk", "_bundled", "claude")
    )

    def __init__(
        self, *, setting_sources: str = "user", allow: Sequence[str] = (), **common: Any
    ) -> None:
        """Takes, beside the common options, which settings files it reads and what else it may do.

        A project's own settings are not read unless asked for: they could grant a run
        permissions that an earlier edit of that project wrote there. `allow` holds rules
        such as `Bash(pytest *)`.
        """
        super().__init__(**common)
        self._sources = setting_sources
        self._allow = tuple(allow)
        for rule in () if isinstance(allow, str) else allow:
            if not re.fullmatch(r"\w+\(.+\)", rule):
                raise ConfigError(
                    f"claude: allow has {rule!r}, which would hold everywhere; say for what, as in "
                    "Bash(pytest *)"
                )

    def arguments(self, request: AgentRequest, scratch: Path) -> list[str]:
        """Returns the arguments of one call; texts that may be long go through files."""
        argv = ["-p", "--output-format", "stream-json", "--verbose"]
        if request.model:
            argv += ["--model", request.model]
        if request.system:
            place = scratch / "system.txt"
            place.write_text(whole_characters(request.system), encoding="utf-8")
            argv += ["--append-system-prompt-file", str(place)]
        if _on_command_line(request.schema):
            argv += ["--json-schema", json.dumps(request.schema)]
        tools = (*_LOOKING, *_EDITING) if request.edit else _LOOKING if request.workspace else ()
        more = dict.fromkeys(rule.partition("(")[0] for rule in self._allow)
        argv += ["--tools", ",".join([*tools, *(tool for tool in more if tool not in tools)])]
        for rule in self._allow:
            argv += ["--allowedTools", rule]
        if request.edit:
            argv += ["--permission-mode", "acceptEdits"]
        if request.workspace is None:
            # It keeps a record per folder, and this folder is gone in a moment.
            argv += ["--no-session-persistence"]
        return [*argv, "--setting-sources", self._sources, "--strict-mcp-config", *self._args]

    def prompt(self, request: AgentRequest) -> str:
        """Returns the prompt, with the schema when it is too long for an argument."""
        from signoff.agents.structured import instruction

        if request.schema is None or _on_command_line(request.schema):
            return request.prompt
        return f"{request.prompt}\n\n{instruction(request.schema)}"

    def variables(self) -> dict[str, str]:
        """Keeps the program quiet and its own patience short."""
        return {
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": str(self._retries),
            "API_TIMEOUT_MS": str(int(self._timeout * 1000)),
        }

    async def logged_in(self, program: str, environment: Mapping[str, str]) -> bool | None:
        """Asks the program, which looks into its own settings."""
        _, words = await tell([program, "auth", "status"], environment)
        try:
            status = json.loads(words)
        except ValueError:
            return None
        found = status.get("loggedIn") if isinstance(status, dict) else None
        return found if isinstance(found, bool) else None

    def reader(self) -> ClaudeReader:
        """Returns who understands its events."""
        return ClaudeReader()


class ClaudeReader:
    """Reads `system`, `assistant`, `rate_limit_event` and `result` events."""

    def __init__(self) -> None:
        self._ours = False
        self._result: dict[str, Any] | None = None
        self._until: datetime | None = None
        self._missed: list[str] = []

    def event(self, data: dict[str, Any]) -> str | None:
        """Takes one event and returns what the model said in it."""
        match data.get("type"):
            case "result" if data.keys() & {"result", "subtype", "is_error"}:
                self._result = data
            case None if "result" in data and data.keys() & {"is_error", "session_id"}:
                self._result = data
            case "assistant" if isinstance(data.get("message"), dict):
                self._ours = True
                return _spoken(data["message"])
            case "user":
                self._untold(json.dumps(data.get("message")))
            case "system" if "session_id" in data or "subtype" in data:
                self._ours = True
            case "rate_limit_event":
                self._limit(data.get("rate_limit_info"))
        return None

    def complaint(self, line: str) -> None:
        """Standard error says nothing the result does not say better."""

    def said(self) -> ProgramReply | None:
        """Judges the result, whose subtype may say success where there was none."""
        result = self._result
        if result is None:
            return ProgramReply(complete=False) if self._ours else None
        value, text = result.get("structured_output"), result.get("result")
        return ProgramReply(
            text=json.dumps(value) if value is not None else text if isinstance(text, str) else "",
            finish=_text(result.get("stop_reason")) or _text(result.get("subtype")),
            usage=_usage(result),
            session=_text(result.get("session_id")),
            cut_off=result.get("stop_reason") == "max_tokens",
            declined=_text(text) or "refused" if result.get("stop_reason") == "refusal" else "",
            denied=(*_denied(result), *self._missed),
            fault=self._fault(result),
        )

    def _untold(self, outcome: str) -> None:
        """Hears of tools it used without being offered them, which is not called a denial."""
        missed = _NOT_OFFERED.findall(outcome)
        self._missed += [f"{tool} (not offered)" for tool in missed if tool not in _HARMLESS]

    def _limit(self, info: Any) -> None:
        if isinstance(info, dict) and isinstance(info.get("resetsAt"), int | float):
            self._until = datetime.fromtimestamp(info["resetsAt"], UTC)

    def _fault(self, result: dict[str, Any]) -> AgentError | None:
        subtype = str(result.get("subtype") or "")
        words = _text(result.get("result")) or "; ".join(map(str, result.get("errors") or ()))
        if subtype.startswith("error_max"):
            limit = subtype.removeprefix("error_max_").replace("_", " ")
            return AgentBadOutput(f"claude stopped at its limit of {limit}: {words:.200}")
        status = result.get("api_error_status")
        if not result.get("is_error") and status is None and not subtype.startswith("error"):
            return None
        number = status if isinstance(status, int) else None
        words = words or subtype
        return complaint("claude", words, remedy=_LOGIN, status=number, until=self._until)


def _on_command_line(schema: Mapping[str, Any] | None) -> bool:
    return schema is not None and len(json.dumps(schema).encode()) <= LONGEST_SCHEMA


def _spoken(message: Mapping[str, Any]) -> str | None:
    blocks = message.get("content")
    if not isinstance(blocks, list):
        return None
    texts = [str(b.get("text", "")) for b in blocks if isinstance(b, dict) and b.get("text")]
    return "\n".join(texts) + "\n" if texts else None


def _denied(result: Mapping[str, Any]) -> tuple[str, ...]:
    found = result.get("permission_denials")
    denials = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    return tuple(_denial(each) for each in denials if each.get("tool_name") not in _HARMLESS)


def _denial(each: Mapping[str, Any]) -> str:
    given = each.get("tool_input")
    known = given if isinstance(given, dict) else {}
    target = known.get("file_path") or known.get("notebook_path") or known.get("command") or ""
    return f"{each.get('tool_name')} {target}".strip()[:200]


def _usage(result: Mapping[str, Any]) -> Usage | None:
    cost = result.get("total_cost_usd")
    usd = float(cost) if isinstance(cost, int | float) else None
    models = result.get("modelUsage")
    counted = (
        [(name, each) for name, each in (models or {}).items() if isinstance(each, dict)]
        if isinstance(models, dict)
        else []
    )
    if counted:
        main = max(counted, key=lambda pair: pair[1].get("costUSD") or 0)[0]
        read = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
        return Usage(
            sum(int(each.get(name) or 0) for _, each in counted for name in read),
            sum(int(each.get("outputTokens") or 0) for _, each in counted),
            usd,
            main,
        )
    usage = result.get("usage")
    if not isinstance(usage, dict):
        return Usage(usd=usd) if usd is not None else None
    read = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return Usage(sum(int(usage.get(name) or 0) for name in read), usage.get("output_tokens"), usd)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
