from collections.abc import Callable
from typing import Any

import pytest

from signoff.profiles import WorkflowPhase
from signoff.profiles.session import (
    ProfileError,
    create_prompt,
    process_response,
    standards_config,
)
from tests.unit.profiles.session_fixture import ProbeProfile


def misbehaving(behavior: Callable[..., Any]) -> ProbeProfile:
    """Returns a profile whose methods all do the same."""
    methods = [name for name in dir(ProbeProfile) if name.startswith(("generate_", "process_"))]
    body = dict.fromkeys([*methods, "get_standards_config"], lambda _self, arg: behavior(arg))
    return type("Misbehaving", (ProbeProfile,), body)()  # type: ignore[no-any-return]


def test_a_profile_cannot_change_the_context() -> None:
    """The next stage gets the context that the session was started with."""
    context = {"a": 1}

    create_prompt(misbehaving(lambda own: own.clear() or "x"), WorkflowPhase.PLAN, context)
    standards_config(misbehaving(lambda own: own.clear() or {}), context)

    assert context == {"a": 1}


@pytest.mark.parametrize("value", [None, 7, b"bytes", "", " \n"])
def test_a_prompt_must_be_a_text(value: Any) -> None:
    """A provider would be paid for an empty prompt."""
    profile = misbehaving(lambda _context: value)

    with pytest.raises(ProfileError, match=r"Misbehaving\.generate_review_prompt must return"):
        create_prompt(profile, WorkflowPhase.REVIEW, {})


@pytest.mark.parametrize("value", [None, "text", {"status": "success"}])
def test_a_response_is_processed_to_a_result(value: Any) -> None:
    """What is no result says nothing about the files."""
    profile = misbehaving(lambda _content: value)

    with pytest.raises(ProfileError, match=r"Misbehaving\.process_planning_response must return"):
        process_response(profile, WorkflowPhase.PLAN, "text")


def _raise(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize(
    "error", [ValueError("no table"), RecursionError("too deep"), SystemExit(3)], ids=repr
)
def test_whatever_a_profile_raises_names_the_profile_and_the_method(error: BaseException) -> None:
    """The author has to find the place; the program must not exit."""
    profile = misbehaving(lambda _arg: _raise(error))

    with pytest.raises(ProfileError, match=r"Misbehaving\.generate_planning_prompt failed: ") as e:
        create_prompt(profile, WorkflowPhase.PLAN, {})

    assert type(error).__name__ in str(e.value)


def test_an_interrupt_is_not_an_error_of_the_profile() -> None:
    """Ctrl-C ends the program, whatever it is doing."""
    with pytest.raises(KeyboardInterrupt):
        create_prompt(misbehaving(lambda _arg: _raise(KeyboardInterrupt())), WorkflowPhase.PLAN, {})
