"""The kinds of agent that come with signoff, in the order of preference.

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
"""Programs of vendors, which may be missing on a machine. They review where none is named."""

MANUAL = "manual"
AUTO = "auto"
DEFAULT_AGENT = next(iter(PROGRAMS))
"""The agent of steps that name none."""

WITHOUT_SETTINGS: Mapping[str, str] = {
    **PROGRAMS,
    "anthropic": "signoff.agents.anthropic:AnthropicModel",
    "openai": "signoff.agents.openai:OpenAIModel",
    "ollama": "signoff.agents.ollama:OllamaModel",
    "local": "signoff.agents.local:LocalModel",
    MANUAL: "signoff.agents.manual:ManualAgent",
    AUTO: "signoff.agents.auto:AutoAgent",
}
"""Kinds that are agents of that name without any settings; `auto` tries them in this order."""

BUILT_IN: Mapping[str, str] = {
    **WITHOUT_SETTINGS,
    "command": "signoff.agents.command:CommandAgent",
    "check": "signoff.agents.check:CheckAgent",
    "cassette": "signoff.agents.cassette:CassetteAgent",
    "scripted": "signoff.agents.file_script:FileScript",
}
"""Every kind, by the name that `kind:` uses in the settings."""
