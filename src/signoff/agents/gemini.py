"""Gemini CLI, run headless: its stream of JSON, the prompt on standard input.

It retries refusals for minutes and reports that on standard error only, so standard error
is watched and the program is stopped early. Errors arrive as a result event, as JSON on
standard error, or as an exit code that is the HTTP status modulo 256.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from signoff.agents.answer import as_dict, as_text, sum_of_counts, with_schema
from signoff.agents.failures import failure_error, unwrapped_message
from signoff.agents.headless import HeadlessAgent, OutputReader
from signoff.core.effects import AgentRequest
from signoff.core.errors import AgentBadOutput, AgentBadRequest, AgentError
from signoff.core.spend import Usage
from signoff.runtime.ports import Capabilities

DEFAULT_MODEL = "gemini-2.5-pro"
"""Always passed: without a model the program makes an additional call to choose one."""

MAX_STREAMED_PROMPT_BYTES = 50_000
"""The stream repeats the prompt, and with a megabyte of prompt the program was seen to exit
before the rest was written. A longer prompt gets its answer in one document without the echo."""

_LOGIN = "run `gemini` and sign in, or set GEMINI_API_KEY"
_RETRYING = re.compile(r"Attempt (\d{1,9}) failed(?: with status (\d{3}))?.*?Retrying(.*)")
_ADVICE = re.compile(r"\s*(?:Possible quota limitations|Please wait and try again later)[\s\S]*")
_TOOL_FAILED = re.compile(r"Error executing tool (\w+): (.*)")
_WRITE_TOOLS = frozenset({"write_file", "replace", "edit", "run_shell_command"})
_DENIED = re.compile(
    r"not in workspace|denied|not allowed|^tool .* not found|policy|rejected|confirmation",
    re.IGNORECASE,
)


class GeminiReader(OutputReader):
    """Reads `init`, `message`, `tool_use`, `tool_result` and `result`, or one whole document."""

    def __init__(self, retries: int = 0) -> None:
        super().__init__(retries)
        self._pieces: list[str] = []
        self._tools: dict[str, str] = {}

    def read_event(self, data: dict[str, Any]) -> str | None:
        """Reads one event and returns the model's text in it."""
        match data.get("type"):
            case "init" if "session_id" in data:
                self.update(session=str(data["session_id"]))
            case "message" if data.get("role") == "assistant":
                self._pieces.append(str(data.get("content") or ""))
                return self._pieces[-1]
            case "tool_use":
                self._pieces.clear()  # text before a tool call is not the answer
                self._tools[str(data.get("tool_id"))] = str(data.get("tool_name"))
            case "tool_result" if data.get("status") == "error":
                tool = self._tools.get(str(data.get("tool_id")), "")
                self._read_tool_failure(tool, str(data.get("output") or ""))
            case "result" if data.keys() & {"status", "stats", "error"}:
                self._read_end(data)
            case None if data.keys() & {"response", "error"} and _is_result_document(data):
                self._pieces = [as_text(data.get("response"))]
                self.update(session=as_text(data.get("session_id")) or None)
                self._read_end(data)
                return self._pieces[0] or None
        return None

    def read_stderr(self, line: str) -> None:
        """Stops a program that keeps retrying, and collects tools that failed."""
        failure = _TOOL_FAILED.search(line)
        if failure:
            self._read_tool_failure(failure[1], failure[2])
        retry = _RETRYING.search(line)
        if retry and int(retry[1]) > self.retries:
            status = int(retry[2]) if retry[2] else 503
            raise failure_error("gemini", retry[3].strip(". "), remedy=_LOGIN, status=status)

    def _read_end(self, end: dict[str, Any]) -> None:
        self.update(
            text="".join(self._pieces),
            finish=as_text(end.get("status")) or None,
            usage=_usage(end.get("stats")),
            complete=True,
            fault=_fault(end),
        )

    def _read_tool_failure(self, tool: str, reason: str) -> None:
        if tool in _WRITE_TOOLS and _DENIED.search(reason):
            self.deny(f"{tool}: {reason}")


@dataclass(kw_only=True, eq=False, repr=False)
class GeminiAgent(HeadlessAgent):
    """Answers with the `gemini` program."""

    name = "gemini"
    reader = GeminiReader
    capabilities = Capabilities(
        edits_files=True,
        streaming=True,
        prompt_caching=True,
        provider="gcp.gemini",
    )
    login_hint = _LOGIN
    install_hint = "npm install -g @google/gemini-cli"
    minimum_version = (0, 50)
    key_variables = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    setting_variables = (
        "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_CLOUD_LOCATION",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_GENAI_USE_VERTEXAI",
    )
    address_variable = "GOOGLE_GEMINI_BASE_URL"
    status_by_exit_code: ClassVar[Mapping[int, int]] = {
        **{status % 256: status for status in (400, 401, 403, 404, 429, 500, 502, 503, 504)},
        41: 401,
        42: 400,
    }

    trust_workspace: bool = False
    """Whether a workspace may bring its own settings."""

    def arguments(self, request: AgentRequest, scratch: Path) -> list[str]:
        """Returns the arguments of one call."""
        folder = Path(request.workspace or scratch).expanduser()
        if not self.trust_workspace and (folder / ".gemini").exists():
            # These settings can start programs, and an earlier edit may have written them.
            raise AgentBadRequest(
                f"{request.workspace} has its own gemini settings (.gemini); to allow them, set "
                "trust_workspace: true in the settings"
            )
        streamed = (
            len(self.input_text(request).encode("utf-8", "replace")) <= MAX_STREAMED_PROMPT_BYTES
        )
        argv = ["--output-format", "stream-json" if streamed else "json"]
        # Trust in the folder is decided above; the program's own question would wait for a
        # keyboard.
        argv += ["--model", request.model or DEFAULT_MODEL, "--skip-trust"]
        if request.edit:
            argv += ["--approval-mode", "auto_edit"]
        return [*argv, *self.args]

    def input_text(self, request: AgentRequest) -> str:
        """Returns the prompt with the schema, since the program has no option for it."""
        return with_schema(super().input_text(request), request.schema)

    def variables(self) -> dict[str, str]:
        """Keeps the program from starting itself a second time.

        It does so to get more memory for long sessions, which one call does not need. That takes
        half of its start, and its first process would ignore the request to end.
        """
        return {"GEMINI_CLI_NO_RELAUNCH": "true"}

    async def is_logged_in(
        self,
        program: str,  # noqa: ARG002  # it has no such command
        environment: Mapping[str, str],
    ) -> bool | None:
        """Checks for a key or a stored login."""
        has_key = any(environment.get(key) for key in self.key_variables)
        return has_key or _has_stored_login(environment.get("HOME", "~"))


def _has_stored_login(home: str) -> bool:
    folder = Path(home).expanduser() / ".gemini"
    return any((folder / name).exists() for name in ("oauth_creds.json", "settings.json"))


def _is_result_document(data: Mapping[str, Any]) -> bool:
    """Returns whether this is a result document, not an answer that happens to be JSON."""
    own = {"session_id", "response", "stats", "error", "auth_method", "user_email", "warnings"}
    return not data.keys() - own and isinstance(data.get("response"), str | None)


def _fault(end: Mapping[str, Any]) -> AgentError | None:
    error = end.get("error")
    if end.get("status") != "error" and not error:
        return None
    details = error if isinstance(error, dict) else {"message": error}
    code = details.get("code")
    if code == 53:
        return AgentBadOutput("gemini stopped at its limit of turns")
    status = GeminiAgent.status_by_exit_code.get(code, code) if isinstance(code, int) else None
    message = str(details.get("message") or "no reason given")
    if _ADVICE.search(message):
        # Gemini prints the same advice for a busy server and for a used-up quota. It mentions
        # quotas and logins, so it would be matched as either of them.
        status, message = 429, _ADVICE.sub("", message)
    if status is not None and not 400 <= status < 600:
        status = None
    return failure_error("gemini", unwrapped_message(message), remedy=_LOGIN, status=status)


def _usage(stats: Any) -> Usage | None:
    models = as_dict(as_dict(stats).get("models"))
    tokens_in = sum_of_counts(_counts(models, "prompt", "input_tokens"))
    if not tokens_in:
        # Every prompt has tokens, so a count of 0 means that the cost is unknown.
        return None
    answer = _counts(models, "candidates", "output_tokens")
    thoughts = _counts(models, "thoughts", "thoughts_tokens")
    # A part of the prompt; both forms call it the same.
    cached = _counts(models, "cached", "cached")
    model = next(iter(models))
    return Usage(
        tokens_in,
        sum_of_counts([*answer, *thoughts]),
        model=model,
        tokens_cached=sum_of_counts(cached) if cached else None,
        tokens_reasoning=sum_of_counts(thoughts) if thoughts else None,
    )


def _counts(models: Mapping[str, Any], in_document: str, in_stream: str) -> list[Any]:
    """Returns a count of each model; documents and streams report it under different names."""
    counts = [
        as_dict(model.get("tokens")).get(in_document, model.get(in_stream))
        for model in map(as_dict, models.values())
    ]
    return [count for count in counts if count is not None]
