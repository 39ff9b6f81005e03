import pytest

from signoff.profiles import WorkflowProfile

METHODS = {
    *(f"generate_{name}_prompt" for name in ("planning", "generation", "review", "revision")),
    *(f"process_{name}_response" for name in ("planning", "generation", "review", "revision")),
    "get_metadata",
    "get_standards_config",
}


def test_a_profile_implements_these_methods() -> None:
    """A profile of the specification must work here, and one without a method must not."""
    assert WorkflowProfile.__abstractmethods__ == METHODS
    with pytest.raises(TypeError, match="abstract"):
        WorkflowProfile()  # type: ignore[abstract]  # the mistake


def test_prompts_are_not_created_again_unless_the_profile_can() -> None:
    """Most prompts would come out the same."""
    assert WorkflowProfile.can_regenerate_prompts is False
