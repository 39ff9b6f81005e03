"""The kinds of agent that come with signoff, in order of preference.

This is the only list of their names. What an agent can do is not decided by its name: each
kind declares its `Capabilities`. Other packages add kinds by entry points (`signoff.plugins`).
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

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

USER_PROGRAMS = ("command", "check")
"""Kinds that start programs which the user chose. A definition may name such an agent only with
trust, and each call is a process."""

VENDOR_KEYS: Mapping[str, str] = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
"""The variables that hold the keys of vendors' own servers."""

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
    MANUAL: "signoff.agents.base:ManualAgent",
    AUTO: "signoff.agents.auto:AutoAgent",
}
"""Agents that exist without settings, named like their kind; `auto` tries them in order."""

BUILT_IN: Mapping[str, str] = {
    **WITHOUT_SETTINGS,
    "command": "signoff.agents.command:CommandAgent",
    "check": "signoff.agents.check:CheckAgent",
    "cassette": "signoff.agents.scripted:CassetteAgent",
    "scripted": "signoff.agents.scripted:FileScript",
}
"""Every kind, by its name for `kind:` in the settings."""


def missing_key(
    kind: str, options: Mapping[str, Any], environment: Mapping[str, str]
) -> str | None:
    """Returns the variable that should hold an agent's key and is not set; None if none is needed.

    Another server than the vendor's own gets a key only if `key_env` names its variable.
    """
    # A server of somebody else never gets the vendor's key, so it does not need it either.
    own = None if options.get("base_url") else VENDOR_KEYS.get(kind)
    variable = options.get("key_env") or own
    return str(variable) if variable and not environment.get(str(variable)) else None


def bundled_program(bundled: Sequence[str]) -> str | None:
    """Finds a program inside an installed package without importing that package."""
    # Importing a vendor's package would take longer than starting its program.
    package, *parts = bundled or ("",)
    spec = find_spec(package) if package else None
    folders = (spec.submodule_search_locations or ()) if spec else ()
    programs = (shutil.which(str(Path(folder, *parts))) for folder in folders)
    return next(filter(None, programs), None)
