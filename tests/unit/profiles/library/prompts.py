"""What holds for the prompts of every shipped profile."""

import re
from collections.abc import Mapping
from typing import Any

from signoff.profiles import WorkflowProfile
from signoff.profiles.profile import ENGINE_VARIABLES, fill_engine_variables

_TAG = re.compile(r"\{\{([^{}\n]*)\}\}")
_CONDITIONS = {f"#if {name}" for name in ENGINE_VARIABLES} | {"/if"}

MATERIAL = {name: f"<the {name} of the engine>" for name in ENGINE_VARIABLES}

USED = {
    "planning": {"STANDARDS", "FEEDBACK"},
    "generation": {"STANDARDS", "PLAN", "FEEDBACK"},
    "review": {"STANDARDS", "PLAN", "CODE", "FEEDBACK"},
    "revision": {"STANDARDS", "PLAN", "CODE", "REVIEW", "FEEDBACK"},
}
"""What a model needs in each phase."""


def drafts(profile: WorkflowProfile, context: Mapping[str, Any]) -> dict[str, str]:
    """Returns the prompts by phase, as the profile creates them."""
    return {phase: getattr(profile, f"generate_{phase}_prompt")(context) for phase in USED}


def complete(profile: WorkflowProfile, context: Mapping[str, Any], **values: str) -> dict[str, str]:
    """Returns the prompts by phase, as a model gets them."""
    material = {**MATERIAL, **values}
    return {
        phase: fill_engine_variables(draft, material)
        for phase, draft in drafts(profile, context).items()
    }


def check_prompts(profile: WorkflowProfile, context: Mapping[str, Any]) -> None:
    """Asserts that the prompts can be used with nothing but a chat window."""
    for phase, draft in drafts(profile, context).items():
        left = set(_TAG.findall(draft)) - _CONDITIONS
        assert left == USED[phase], phase
    for phase, prompt in complete(profile, context).items():
        assert not _TAG.search(prompt), phase
        assert all(MATERIAL[name] in prompt for name in USED[phase]), phase
        assert "## Answer format" in prompt, phase
        assert "\n\n\n" not in prompt, phase
        assert prompt.endswith("\n"), phase
        assert ("@@@REVIEW_META" in prompt) == (phase == "review"), phase
        assert ("### revision-issues.md" in prompt) == (phase == "revision"), phase
        assert ("### path/to/file.ext" in prompt) == (phase in ("generation", "revision")), phase
    for phase, prompt in complete(profile, context, STANDARDS="", FEEDBACK="").items():
        assert "## Standards" not in prompt, phase
        assert "## Feedback" not in prompt, phase
        assert "\n\n\n" not in prompt, phase
