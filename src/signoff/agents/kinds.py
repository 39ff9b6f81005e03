"""The kinds of agent that come with signoff, in order of preference.

This is the only list of their names. What an agent can do is not decided by its name: each
kind declares its `Capabilities`. Other packages add kinds by entry points (`signoff.plugins`).
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

PROGRAMS: Mapping[str, str] = {
    "claude": "signoff.agents.claude:ClaudeAgent",
    "codex": "signoff.agents.codex:CodexAgent",
    "gemini": "signoff.agents.gemini:GeminiAgent",
}
"""Vendors' programs, which may be missing on a machine. They review when no agent is named."""

BUNDLED: Mapping[str, tuple[str, ...]] = {
    "claude": ("claude_agent_sdk", "_bundled", "claude"),
    "codex": ("codex_cli_bin", "bin", "codex"),
}
"""Packages that bring such a program: the package, and the program's path in it."""

MANUAL = "manual"
AUTO = "auto"
DEFAULT_AGENT = next(iter(PROGRAMS))
"""The agent of steps that do not name one."""

WITHOUT_SETTINGS: Mapping[str, str] = {
    **PROGRAMS,
    "anthropic": "signoff.agents.anthropic:AnthropicModel",
    "openai": "signoff.agents.openai:OpenAIModel",
    "ollama": "signoff.agents.ollama:OllamaModel",
    "local": "signoff.agents.local:LocalModel",
    MANUAL: "signoff.agents.manual:ManualAgent",
    AUTO: "signoff.agents.auto:AutoAgent",
}
"""Agents that exist without settings, named like their kind; `auto` tries them in order."""

BUILT_IN: Mapping[str, str] = {
    **WITHOUT_SETTINGS,
    "command": "signoff.agents.command:CommandAgent",
    "check": "signoff.agents.check:CheckAgent",
    "cassette": "signoff.agents.cassette:CassetteAgent",
    "scripted": "signoff.agents.file_script:FileScript",
}
"""Every kind, by its name for `kind:` in the settings."""


def bundled_program(bundled: Sequence[str]) -> str | None:
    """Finds a program inside an installed package without importing that package."""
    package, *parts = bundled or ("",)
    spec = find_spec(package) if package else None
    folders = (spec.submodule_search_locations or ()) if spec else ()
    programs = (shutil.which(str(Path(folder, *parts))) for folder in folders)
    return next(filter(None, programs), None)
