"""Claude Code, run headless: `claude -p` with its stream of JSON.

Only the tools that a request needs are offered: none for a plain answer, reading within a
workspace, writing there when it may edit. So a denial always means that work is missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from signoff.agents.answer import replace_lone_surrogates
from signoff.agents.error_patterns import failure_error
from signoff.agents.headless import HeadlessAgent
from signoff.agents.output_reader import OutputReader, ProgramReply
from signoff.agents.program import bundled_program, probe
from signoff.agents.structured import with_schema
from signoff.core.effects import AgentRequest
from signoff.core.spend import Usage
from signoff.errors import AgentBadOutput, AgentError, ConfigError
from signoff.runtime.ports import Capabilities

MAX_SCHEMA_BYTES = 100_000
"""Systems refuse longer arguments; a longer schema goes into the prompt instead."""

_READ_TOOLS = ("Read", "Grep", "Glob")
_EDIT_TOOLS = ("Edit", "Write", "NotebookEdit")
_OPTIONAL_TOOLS = frozenset({*_READ_TOOLS, "LS", "WebFetch", "WebSearch", "ToolSearch"})
"""A denial of these may cost the answer some facts, but no requested work is missing."""

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
    login_hint = _LOGIN
    install_hint = "npm install -g @anthropic-ai/claude-code"
    extra = "claude"
    minimum_version = (2, 1)
    key_variables = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
    setting_variables = ("ANTHROPIC_BASE_URL", "CLAUDE_CONFIG_DIR")
    address_variable = "ANTHROPIC_BASE_URL"
    bundled: ClassVar[Callable[[], Path | None]] = staticmethod(
        bundled_program("claude_agent_sdk", "_bundled", "claude")
    )

    def __init__(
        self, *, setting_sources: str = "user", allow: Sequence[str] = (), **common: Any
    ) -> None:
        """Takes the common options, the settings files to read and additional permissions.

        A project's own settings are not read by default: an earlier edit of that project
        could have written permissions into them. `allow` holds rules such as
        `Bash(pytest *)`.
        """
        super().__init__(**common)
        self._sources = setting_sources
        self._allow = tuple(allow)
        for rule in () if isinstance(allow, str) else allow:
            if not re.fullmatch(r"\w+\(.+\)", rule):
                raise ConfigError(
                    f"claude: the rule {rule!r} in allow is unlimited; limit it, as in "
                    "Bash(pytest *)"
                )

    def arguments(self, request: AgentRequest, scratch: Path) -> list[str]:
        """Returns the arguments of one call; long texts are passed in files."""
        argv = ["-p", "--output-format", "stream-json", "--verbose"]
        if request.model:
            argv += ["--model", request.model]
        if request.system:
            file = scratch / "system.txt"
            file.write_text(replace_lone_surrogates(request.system), encoding="utf-8")
            argv += ["--append-system-prompt-file", str(file)]
        if _fits_argument(request.schema):
            argv += ["--json-schema", json.dumps(request.schema)]
        tools = (
            (*_READ_TOOLS, *_EDIT_TOOLS)
            if request.edit
            else _READ_TOOLS
            if request.workspace
            else ()
        )
        allowed = dict.fromkeys(rule.partition("(")[0] for rule in self._allow)
        argv += ["--tools", ",".join([*tools, *(tool for tool in allowed if tool not in tools)])]
        for rule in self._allow:
            argv += ["--allowedTools", rule]
        if request.edit:
            argv += ["--permission-mode", "acceptEdits"]
        if request.workspace is None:
            # Sessions are stored per folder, and this folder is deleted after the call.
            argv += ["--no-session-persistence"]
        return [*argv, "--setting-sources", self._sources, "--strict-mcp-config", *self._args]

    def prompt(self, request: AgentRequest) -> str:
        """Returns the prompt, with the schema when it is too long for an argument."""
        schema = None if _fits_argument(request.schema) else request.schema
        return with_schema(request.prompt, schema)

    def variables(self) -> dict[str, str]:
        """Switches off background traffic and limits the program's own retries."""
        return {
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": str(self._vendor_retries),
            "API_TIMEOUT_MS": str(int(self._timeout * 1000)),
        }

    async def is_logged_in(self, program: str, environment: Mapping[str, str]) -> bool | None:
        """Asks the program, which checks its own settings."""
        _, output = await probe([program, "auth", "status"], environment)
        try:
            status = json.loads(output)
        except ValueError:
            return None
        logged_in = status.get("loggedIn") if isinstance(status, dict) else None
        return logged_in if isinstance(logged_in, bool) else None

    def reader(self) -> ClaudeReader:
        """Returns a reader for its events."""
        return ClaudeReader()


class ClaudeReader(OutputReader):
    """Reads `system`, `assistant`, `rate_limit_event` and `result` events."""

    def __init__(self) -> None:
        self._is_claude = False
        self._result: dict[str, Any] | None = None
        self._until: datetime | None = None
        self._not_offered: list[str] = []

    def read_event(self, data: dict[str, Any]) -> str | None:
        """Reads one event and returns the model's text in it."""
        match data.get("type"):
            case "result" if data.keys() & {"result", "subtype", "is_error"}:
                self._result = data
            case None if "result" in data and data.keys() & {"is_error", "session_id"}:
                self._result = data
            case "assistant" if isinstance(data.get("message"), dict):
                self._is_claude = True
                return _message_text(data["message"])
            case "user":
                self._read_tool_result(json.dumps(data.get("message")))
            case "system" if "session_id" in data or "subtype" in data:
                self._is_claude = True
            case "rate_limit_event":
                self._read_limit(data.get("rate_limit_info"))
        return None

    def reply(self) -> ProgramReply | None:
        """Returns the reply; the subtype alone is no proof, it may report a false success."""
        result = self._result
        if result is None:
            return ProgramReply(complete=False) if self._is_claude else None
        value, text = result.get("structured_output"), result.get("result")
        return ProgramReply(
            text=json.dumps(value) if value is not None else text if isinstance(text, str) else "",
            finish=_text(result.get("stop_reason")) or _text(result.get("subtype")),
            usage=_usage(result),
            session=_text(result.get("session_id")),
            cut_off=result.get("stop_reason") == "max_tokens",
            declined=_text(text) or "refused" if result.get("stop_reason") == "refusal" else "",
            denied=(*_denied(result), *self._not_offered),
            fault=self._fault(result),
        )

    def _read_tool_result(self, result: str) -> None:
        """Finds uses of tools that were not offered, which claude does not report as denials."""
        tools = [tool for tool in _NOT_OFFERED.findall(result) if tool not in _OPTIONAL_TOOLS]
        self._not_offered += [f"{tool} (not offered)" for tool in tools]

    def _read_limit(self, info: Any) -> None:
        if isinstance(info, dict) and isinstance(info.get("resetsAt"), int | float):
            self._until = datetime.fromtimestamp(info["resetsAt"], UTC)

    def _fault(self, result: dict[str, Any]) -> AgentError | None:
        subtype = str(result.get("subtype") or "")
        text = _text(result.get("result")) or "; ".join(map(str, result.get("errors") or ()))
        if subtype.startswith("error_max"):
            limit = subtype.removeprefix("error_max_").replace("_", " ")
            return AgentBadOutput(f"claude stopped at its limit of {limit}: {text:.200}")
        status = result.get("api_error_status")
        if not result.get("is_error") and status is None and not subtype.startswith("error"):
            return None
        number = status if isinstance(status, int) else None
        return failure_error(
            "claude", text or subtype, remedy=_LOGIN, status=number, until=self._until
        )


def _fits_argument(schema: Mapping[str, Any] | None) -> bool:
    return schema is not None and len(json.dumps(schema).encode()) <= MAX_SCHEMA_BYTES


def _message_text(message: Mapping[str, Any]) -> str | None:
    blocks = message.get("content")
    if not isinstance(blocks, list):
        return None
    texts = [str(b.get("text", "")) for b in blocks if isinstance(b, dict) and b.get("text")]
    return "\n".join(texts) + "\n" if texts else None


def _denied(result: Mapping[str, Any]) -> tuple[str, ...]:
    listed = result.get("permission_denials")
    denials = (
        [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    )
    return tuple(
        _describe_denial(each) for each in denials if each.get("tool_name") not in _OPTIONAL_TOOLS
    )


def _describe_denial(denial: Mapping[str, Any]) -> str:
    tool_input = denial.get("tool_input")
    fields = tool_input if isinstance(tool_input, dict) else {}
    target = fields.get("file_path") or fields.get("notebook_path") or fields.get("command") or ""
    return f"{denial.get('tool_name')} {target}".strip()[:200]


def _usage(result: Mapping[str, Any]) -> Usage | None:
    cost = result.get("total_cost_usd")
    usd = float(cost) if isinstance(cost, int | float) else None
    by_model = result.get("modelUsage")
    if isinstance(by_model, dict):
        models = {name: each for name, each in by_model.items() if isinstance(each, dict)}
        if models:
            # Small models do side work in the same call; the most expensive one is the main model.
            main = max(models, key=lambda name: models[name].get("costUSD") or 0)
            inputs = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
            tokens_in = sum(_sum_counts(each, *inputs) for each in models.values())
            tokens_out = sum(_sum_counts(each, "outputTokens") for each in models.values())
            return Usage(tokens_in, tokens_out, usd, main)
    usage = result.get("usage")
    if not isinstance(usage, dict):
        return Usage(usd=usd) if usd is not None else None
    inputs = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return Usage(_sum_counts(usage, *inputs), usage.get("output_tokens"), usd)


def _sum_counts(counts: Mapping[str, Any], *names: str) -> int:
    return sum(int(counts.get(name) or 0) for name in names)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
