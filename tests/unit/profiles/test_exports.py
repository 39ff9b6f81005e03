import subprocess
import sys

import pytest

from signoff import profiles

NAMES = [
    "AIApprovalProvider",
    "AIProvider",
    "AIProviderFactory",
    "AIProviderResult",
    "Action",
    "ApprovalDecision",
    "ApprovalProvider",
    "ApprovalProviderFactory",
    "ApprovalResult",
    "Artifact",
    "FsAbility",
    "PhaseTransition",
    "ProcessingResult",
    "ProfileFactory",
    "ReviewMeta",
    "SessionEvent",
    "SessionEventType",
    "SessionEvents",
    "StandardsProvider",
    "StandardsProviderFactory",
    "TemplateProfile",
    "TransitionResult",
    "TransitionTable",
    "WorkflowPhase",
    "WorkflowProfile",
    "WorkflowStage",
    "WorkflowState",
    "WorkflowStatus",
    "WriteOp",
    "WritePlan",
    "find_code_files",
    "format_code_files",
    "parse_review_meta",
    "render_template",
]


def test_the_public_names_are_these() -> None:
    """Removing a name breaks an import of a profile."""
    assert profiles.__all__ == NAMES
    assert all(getattr(profiles, name) is not None for name in NAMES)
    assert dir(profiles) == NAMES


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A typo must fail as in any other module."""
    with pytest.raises(AttributeError, match="no attribute 'Profile'"):
        _ = profiles.Profile


def test_factories_and_transitions_load_without_models() -> None:
    """Commands that only look at a session should not wait for pydantic and YAML."""
    program = (
        "import sys, signoff.profiles as p; "
        "p.TransitionTable, p.ProfileFactory.keys(), p.WorkflowProfile, p.parse_review_meta, "
        "p.render_template; import signoff.profiles.context_schema; "
        "print([name for name in ('pydantic', 'ruamel.yaml', 'click') if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"
