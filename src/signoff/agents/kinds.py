"""The kinds of agent that come with signoff, in order of preference.

This is the only list of their names. What an agent can do is not decided by its name: each
kind declares its `Capabilities`. Other packages add kinds by entry points (`signoff.plugins`).
"""

from __future__ import annotations

from collections.abc import Mapping

PROGRAMS: Mapping[str, str] = {
    "claude": "signoff.agents.claude:ClaudeAgent",
    "codex": "signoff.agents.codex:CodexAgent",
    "gemini": "signoff.agents.gemini:GeminiAgent",
}
"""Vendors' programs, which may be missing on a machine. They review when no agent is named."""

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
