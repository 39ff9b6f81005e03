"""The notation of pairs: its scheme, settings and command, loaded without the rest."""

from __future__ import annotations

from signoff.notation import Command, Notation, SettingsSection

NOTATION = Notation(
    name="pair",
    label="pair",
    scheme="pair",
    resolve="signoff.pair.workflow:build",
    suffixes=(),
    settings=SettingsSection(
        "pair",
        "signoff.pair.config:PairSection",
        "writer-reviewer pairs: writer, reviewers, checks, verdict, strict, max_turns, "
        "model_name, temperature, max_tokens, base_url, request_timeout",
        harmless=(
            *("writer", "reviewers", "checks", "verdict", "strict", "max_turns"),
            *("model_name", "temperature", "max_tokens", "request_timeout"),
        ),
    ),
    report="signoff.pair.workflow:report",
    asks="signoff.pair.workflow:asks",
    commands={
        "pair": Command(
            "signoff.surfaces.notations.pair:pair",
            "Write a short text until its reviewers pass it; a shortcut for run.",
            "Run",
        )
    },
)
