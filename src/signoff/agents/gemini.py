"""Gemini CLI, run headless: its stream of JSON, the prompt on standard input.

It retries refusals for minutes and says so on standard error only, so that is watched and
ended early. Errors come as a result event, as JSON on standard error, or as an exit code
that is the HTTP status modulo 256.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from signoff.agents.error_patterns import complaint
from signoff.agents.headless import HeadlessAgent
from signoff.agents.reading import ProgramReply
from signoff.agents.structured import instruction
from signoff.core.effects import AgentRequest
from signoff.core.spend import Usage
from signoff.errors import AgentBadOutput, AgentBadRequest, AgentError
from signoff.runtime.ports import Capabilities

DEFAULT_MODEL = "gemini-2.5-pro"
"""Always named: without a name the program makes a call of its own to choose one."""

LONGEST_ECHO = 50_000
"""Bytes. Its stream repeats the prompt, and with one of a megabyte it was seen to leave before
the rest was out; a longer prompt gets its answer in one piece, without the echo."""

_LOGIN = "run `gemini` and sign in, or set GEMINI_API_KEY"
_TRYING_AGAIN = re.compile(r"Attempt (\d{1,9}) failed(?: with status (\d{3}))?.*?Retrying(.*)")
_ADVICE = re.compile(r"\s*(?:Possible quota limitations|Please wait and try again later)[\s\S]*")
_TOOL_FAILED = re.compile(r"Error executing tool (\w+): (.*)")
_WRITING = frozenset({"write_file", "replace", "edit", "run_shell_command"})
_DENIED = re.compile(
    r"not in workspace|denied|not allowed|^tool .* not found|policy|rejected|confirmation",
    re.IGNORECASE,
)


class GeminiAgent(HeadlessAgent):
    """Answers with the `gemini` program."""

    name = "gemini"
    capabilities = Capabilities(
        edits_files=True,
        streaming=True,
        prompt_caching=True,
        model_family="google",
        own_models_only=True,
    )
    login = _LOGIN
    install = "npm install -g @google/gemini-cli"
    oldest = (0, 50)
    keys = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    settings = (
        "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_CLOUD_LOCATION",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_GENAI_USE_VERTEXAI",
    )
    address = "GOOGLE_GEMINI_BASE_URL"
    statuses: ClassVar[Mapping[int, int]] = {
        **{status % 256: status for status in (400, 401, 403, 404, 429, 500, 502, 503, 504)},
        41: 401,
        42: 400,
    }

    def __init__(self, *, trust_workspace: bool = False, **common: Any) -> None:
        """Takes, beside the common options, whether a workspace may bring settings of its own."""
        super().__init__(**common)
        self._trust = trust_workspace

    def arguments(self, request: AgentRequest, scratch: Path) -> list[str]:
        """Returns the arguments of one call; it edits only where it is allowed to."""
        place = Path(request.workspace or scratch).expanduser()
        if not self._trust and (place / ".gemini").exists():
            # They name programs to start, and an earlier edit may have written them.
            raise AgentBadRequest(
                f"{request.workspace} has gemini settings of its own (.gemini); "
                "trust_workspace: true in the settings lets gemini follow them"
            )
        streamed = len(self.prompt(request).encode("utf-8", "replace")) <= LONGEST_ECHO
        argv = ["--output-format", "stream-json" if streamed else "json"]
        argv += ["--model", request.model or DEFAULT_MODEL]
        argv += ["--skip-trust"]
        if request.edit:
            argv += ["--approval-mode", "auto_edit"]
        return [*argv, *self._args]

    def prompt(self, request: AgentRequest) -> str:
        """Returns the prompt; the program knows no schemas, so they are asked for in words."""
        prompt = super().prompt(request)
        if request.schema is None:
            return prompt
        return f"{prompt}\n\n{instruction(request.schema)}"

    async def logged_in(
        self,
        program: str,  # noqa: ARG002  # has no command that tells
        environment: Mapping[str, str],
    ) -> bool | None:
        """Looks for a key or a stored sign-in."""
        return any(environment.get(key) for key in self.keys) or _signed_in(environment)

    def reader(self) -> GeminiReader:
        """Returns who understands its events."""
        return GeminiReader(self._retries)


class GeminiReader:
    """Reads `init`, `message`, `tool_use`, `tool_result` and `result`, or one whole document."""

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self._ours = False
        self._pieces: list[str] = []
        self._session: str | None = None
        self._tools: dict[str, str] = {}
        self._denied: list[str] = []
        self._end: dict[str, Any] | None = None

    def event(self, data: dict[str, Any]) -> str | None:
        """Takes one event and returns what the model said in it."""
        match data.get("type"):
            case "init" if "session_id" in data:
                self._ours = True
                self._session = str(data["session_id"])
            case "message" if "role" in data:
                return self._message(data)
            case "tool_use":
                self._pieces.clear()  # what it said before it went to work is not its answer
                self._tools[str(data.get("tool_id"))] = str(data.get("tool_name"))
            case "tool_result":
                self._outcome(data)
            case "result" if data.keys() & {"status", "stats", "error"}:
                self._end = data
            case None if data.keys() & {"response", "error"} and _whole(data):
                return self._document(data)
        return None

    def complaint(self, line: str) -> None:
        """Ends a program that tries again and again, and hears of tools that failed."""
        failed = _TOOL_FAILED.search(line)
        if failed:
            self._failed(failed[1], failed[2])
        found = _TRYING_AGAIN.search(line)
        if found and int(found[1]) > self._retries:
            status = int(found[2]) if found[2] else 503
            raise complaint("gemini", found[3].strip(". "), remedy=_LOGIN, status=status)

    def said(self) -> ProgramReply | None:
        """Judges the end it reported."""
        if not self._ours and self._end is None:
            return None
        end = self._end or {}
        return ProgramReply(
            text="".join(self._pieces),
            finish=str(end.get("status") or "") or None,
            usage=_usage(end.get("stats")),
            session=self._session,
            complete=self._end is not None,
            denied=tuple(self._denied),
            fault=_fault(end),
        )

    def _message(self, data: dict[str, Any]) -> str | None:
        self._ours = True
        if data["role"] != "assistant":
            return None
        piece = str(data.get("content") or "")
        self._pieces.append(piece)
        return piece

    def _outcome(self, data: dict[str, Any]) -> None:
        if data.get("status") == "error":
            tool = self._tools.get(str(data.get("tool_id")), "")
            self._failed(tool, str(data.get("output") or ""))

    def _failed(self, tool: str, why: str) -> None:
        denial = f"{tool}: {why}"[:200]
        if tool in _WRITING and _DENIED.search(why) and denial not in self._denied:
            self._denied.append(denial)

    def _document(self, data: dict[str, Any]) -> str | None:
        self._ours = True
        self._session = str(data.get("session_id") or "") or None
        self._end = data
        text = data.get("response")
        self._pieces = [text] if isinstance(text, str) else []
        return text if isinstance(text, str) else None


def _signed_in(environment: Mapping[str, str]) -> bool:
    home = Path(environment.get("HOME", "~")).expanduser() / ".gemini"
    return (home / "oauth_creds.json").exists() or (home / "settings.json").exists()


def _whole(data: Mapping[str, Any]) -> bool:
    """Tells a result document from an answer that happens to be JSON."""
    own = {"session_id", "response", "stats", "error", "auth_method", "user_email", "warnings"}
    return not data.keys() - own and isinstance(data.get("response"), str | None)


def _fault(end: Mapping[str, Any]) -> AgentError | None:
    error = end.get("error")
    if end.get("status") != "error" and not error:
        return None
    known = error if isinstance(error, dict) else {"message": error}
    if known.get("code") == 53:
        return AgentBadOutput("gemini stopped at its limit of turns")
    code = known.get("code")
    status = GeminiAgent.statuses.get(code, code) if isinstance(code, int) else None
    words = str(known.get("message") or "it did not say why")
    if _ADVICE.search(words):
        # A busy server and a used-up quota get the same advice, which names quotas and logins.
        status, words = 429, _ADVICE.sub("", words)
    plain = status if status is not None and 400 <= status < 600 else None
    return complaint("gemini", _inner(words), remedy=_LOGIN, status=plain)


def _inner(words: str) -> str:
    """Returns the server's own message where a whole refusal was passed on."""
    start, end = words.find("{"), words.rfind("}")
    try:
        error = json.loads(words[start : end + 1])["error"]
        return f"{error['message']} (status {error['code']})"
    except (ValueError, KeyError, TypeError):
        return words


def _usage(stats: Any) -> Usage | None:
    models = stats.get("models") if isinstance(stats, dict) else None
    if not isinstance(models, dict):
        return None
    counted = [(name, each) for name, each in models.items() if isinstance(each, dict)]
    if not counted:
        return None
    read = sum(_count(each, "prompt", "input_tokens") for _, each in counted)
    written = sum(_count(each, "candidates", "output_tokens") for _, each in counted)
    thought = sum(_count(each, "thoughts", "thoughts_tokens") for _, each in counted)
    if not read:
        # Every prompt has tokens: none counted means nobody did, and that is not nothing.
        return None
    return Usage(read, written + thought, model=counted[0][0])


def _count(model: Mapping[str, Any], whole: str, streamed: str) -> int:
    """Reads a count from either form: a document's tokens, or a stream's totals."""
    tokens = model.get("tokens")
    found = tokens.get(whole) if isinstance(tokens, dict) else model.get(streamed)
    return found if isinstance(found, int) else 0
