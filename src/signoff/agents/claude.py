"""Claude Code, run headless: `claude -p` with its stream of JSON.

Only the tools that a request needs are offered: none for a plain answer, reading within a
workspace, writing there when it may edit. So a denial always means that work is missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from signoff.agents.answer import (
    as_dict,
    as_list,
    as_text,
    sum_of_counts,
    token_count,
    with_schema,
)
from signoff.agents.failures import failure_error
from signoff.agents.headless import HeadlessAgent, OutputReader, probe
from signoff.agents.kinds import BUNDLED
from signoff.core.effects import AgentRequest
from signoff.core.errors import AgentBadOutput, AgentError, ConfigError
from signoff.core.spend import Usage, amount_of
from signoff.documents.control_characters import replace_lone_surrogates
from signoff.runtime.ports import Capabilities

MAX_SCHEMA_BYTES = 100_000
"""Systems refuse longer arguments; a longer schema goes into the prompt instead."""

_READ_TOOLS = ("Read", "Grep", "Glob")
_EDIT_TOOLS = ("Edit", "Write", "NotebookEdit")
_OPTIONAL_TOOLS = frozenset({*_READ_TOOLS, "LS", "WebFetch", "WebSearch", "ToolSearch"})
"""A denial of these may cost the answer some facts, but no requested work is missing."""

_READ_COUNTS = ("cacheReadInputTokens", "cache_read_input_tokens")
_WRITE_COUNTS = ("cacheCreationInputTokens", "cache_creation_input_tokens")
_INPUT_COUNTS = ("inputTokens", "input_tokens", *_READ_COUNTS, *_WRITE_COUNTS)
_OUTPUT_COUNTS = ("outputTokens", "output_tokens")
"""The names of token counts, per model and in total."""

_NOT_OFFERED = re.compile(r"No such tool available: (\w+)")

_LOGIN = "run `claude` and then /login, or set ANTHROPIC_API_KEY"


class ClaudeReader(OutputReader):
    """Reads `stream_event`, `user`, `rate_limit_event` and `result` events."""

    _until: datetime | None = None

    def read_event(self, data: dict[str, Any]) -> str | None:
        """Reads one event and returns the model's text in it."""
        match data.get("type"):
            case "result":
                self._read_result(data)
            case "stream_event":
                return self._read_piece(as_dict(data.get("event")))
            case "user":
                self._read_tool_result(json.dumps(data.get("message")))
            case "rate_limit_event":
                resets_at = as_dict(data.get("rate_limit_info")).get("resetsAt")
                if isinstance(resets_at, int | float):
                    self._until = datetime.fromtimestamp(resets_at, UTC)
        return None

    def _read_piece(self, event: Mapping[str, Any]) -> str | None:
        """Returns the piece of a message in an event of the model's own stream.

        A message that begins is an empty piece: whoever waits for the answer to begin need not
        wait for its text, which comes last if the model thinks first or fills in a form.
        """
        match event.get("type"):
            case "message_start":
                return ""
            case "content_block_delta":
                return as_text(as_dict(event.get("delta")).get("text")) or None
            case "message_stop":
                return "\n"
        return None

    def _read_result(self, result: dict[str, Any]) -> None:
        """Reads the reply; the subtype alone is no proof, it may report a false success."""
        value, text = result.get("structured_output"), as_text(result.get("result"))
        stop_reason = as_text(result.get("stop_reason"))
        # Denials count even in a result that calls itself a success: the work that was denied is
        # missing.
        for denial in as_list(result.get("permission_denials")):
            self._read_denial(as_dict(denial))
        self.update(
            complete=True,
            text=json.dumps(value) if value is not None else text,
            finish=stop_reason or as_text(result.get("subtype")),
            usage=_usage(result),
            session=as_text(result.get("session_id")),
            cut_off=stop_reason == "max_tokens",
            declined=text or "refused" if stop_reason == "refusal" else "",
            fault=self._fault(result),
        )

    def _read_denial(self, denial: dict[str, Any]) -> None:
        tool, fields = denial.get("tool_name"), as_dict(denial.get("tool_input"))
        targets = (fields.get(name) for name in ("file_path", "notebook_path", "command"))
        if tool not in _OPTIONAL_TOOLS:
            self.deny(f"{tool} {next(filter(None, targets), '')}".strip())

    def _read_tool_result(self, result: str) -> None:
        """Finds uses of tools that were not offered, which claude does not report as denials."""
        for tool in _NOT_OFFERED.findall(result):
            if tool not in _OPTIONAL_TOOLS:
                self.deny(f"{tool} (not offered)")

    def _fault(self, result: dict[str, Any]) -> AgentError | None:
        subtype = as_text(result.get("subtype"))
        text = as_text(result.get("result")) or "; ".join(map(str, as_list(result.get("errors"))))
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


@dataclass(kw_only=True, eq=False, repr=False)
class ClaudeAgent(HeadlessAgent):
    """Answers with the `claude` program."""

    name = "claude"
    reader = ClaudeReader
    capabilities = Capabilities(
        edits_files=True,
        json_schema=True,
        system_prompt=True,
        streaming=True,
        prompt_caching=True,
        reports_price=True,
        provider="anthropic",
    )
    login_hint = _LOGIN
    install_hint = "npm install -g @anthropic-ai/claude-code"
    extra = "claude"
    minimum_version = (2, 1)
    key_variables = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
    setting_variables = ("ANTHROPIC_BASE_URL", "CLAUDE_CONFIG_DIR")
    address_variable = "ANTHROPIC_BASE_URL"
    bundled = BUNDLED["claude"]

    setting_sources: str = "user"
    """The settings files that claude reads. A project's own are not read by default: an earlier
    edit of that project could have written permissions into them."""
    allow: Sequence[str] = ()
    """Additional permissions, as rules such as `Bash(pytest *)`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for rule in self.allow:
            if not re.fullmatch(r"\w+\(.+\)", rule):
                raise ConfigError(
                    f"claude: the rule {rule!r} in allow is unlimited; limit it, as in "
                    "Bash(pytest *)"
                )

    def arguments(self, request: AgentRequest, scratch: Path) -> list[str]:
        """Returns the arguments of one call; long texts are passed in files."""
        # Without partial messages nothing is known of an answer before it is complete.
        argv = ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]
        if request.model:
            argv += ["--model", request.model]
        if request.system:
            file = scratch / "system.txt"
            file.write_text(replace_lone_surrogates(request.system), encoding="utf-8")
            argv += ["--append-system-prompt-file", str(file)]
        if _fits_argument(request.schema):
            argv += ["--json-schema", json.dumps(request.schema)]
        tools = [
            *(_READ_TOOLS if request.workspace else ()),
            *(_EDIT_TOOLS if request.edit else ()),
            *(rule.partition("(")[0] for rule in self.allow),
        ]
        argv += ["--tools", ",".join(dict.fromkeys(tools))]
        for rule in self.allow:
            argv += ["--allowedTools", rule]
        if request.edit:
            argv += ["--permission-mode", "acceptEdits"]
        if request.workspace is None:
            # Sessions are stored per folder, and this folder is deleted after the call.
            argv += ["--no-session-persistence"]
        # Servers in the user's own configuration would bring tools that no rule of ours knows.
        argv += ["--setting-sources", self.setting_sources, "--strict-mcp-config"]
        return [*argv, *self.args]

    def input_text(self, request: AgentRequest) -> str:
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
            "CLAUDE_CODE_MAX_RETRIES": str(self.vendor_retries),
            "API_TIMEOUT_MS": str(int(self.timeout * 1000)),
        }

    async def is_logged_in(self, program: str, environment: Mapping[str, str]) -> bool | None:
        """Asks the program, which checks its own settings."""
        _, output = await probe([program, "auth", "status"], environment)
        try:
            status = json.loads(output)
        except ValueError:
            return None
        logged_in = as_dict(status).get("loggedIn")
        return logged_in if isinstance(logged_in, bool) else None


def _fits_argument(schema: Mapping[str, Any] | None) -> bool:
    return schema is not None and len(json.dumps(schema).encode()) <= MAX_SCHEMA_BYTES


def _usage(result: Mapping[str, Any]) -> Usage | None:
    cost = result.get("total_cost_usd")
    usd = amount_of(cost)
    models = {name: as_dict(each) for name, each in as_dict(result.get("modelUsage")).items()}
    counts = [*models.values()] or [as_dict(result.get("usage"))]
    if not any(counts):
        return Usage(usd=usd) if usd is not None else None
    # Small models do side work in the same call; the most expensive one is the main model.
    prices = {name: amount_of(each.get("costUSD")) or 0 for name, each in models.items()}
    main = max(prices, key=lambda name: prices[name], default=None)
    return Usage(
        _sum_counts(counts, _INPUT_COUNTS),
        _sum_counts(counts, _OUTPUT_COUNTS),
        usd,
        main,
        tokens_cached=_sum_counts(counts, _READ_COUNTS),
        tokens_cache_write=_sum_counts(counts, _WRITE_COUNTS),
        model_calls=token_count(result.get("num_turns")),
    )


def _sum_counts(counts: Sequence[Mapping[str, Any]], names: Sequence[str]) -> int | None:
    return sum_of_counts(each.get(name) for each in counts for name in names)
