from datetime import UTC, datetime

import pytest

from signoff.core import errors
from signoff.core.errors import AgentError, AgentQuota, CommandFailed, SignoffError
from signoff.core.spend import Usage
from signoff.runtime.effect_errors import FREE, error_from_json, error_to_json, usage_of

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, (AgentError, CommandFailed))
]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_is_raised_again_as_what_it_was(kind: type[SignoffError]) -> None:
    """A handler that catches one kind must catch it after a restart too."""
    again = error_from_json(error_to_json(kind("what went wrong")))

    assert type(again) is kind
    assert str(again) == "what went wrong"


def test_the_end_of_a_quota_is_remembered() -> None:
    """The run is parked until then."""
    until = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)

    again = error_from_json(error_to_json(AgentQuota("later", until=until)))

    assert isinstance(again, AgentQuota)
    assert again.until == until


@pytest.mark.parametrize("kind", ["NoSuchError", "SignoffError", "Exception", "datetime", "", None])
def test_an_unknown_kind_is_an_agent_error_all_the_same(kind: str | None) -> None:
    """A newer or damaged journal must not raise whatever it names."""
    again = error_from_json({"type": kind, "message": "odd"})

    assert type(again) is AgentError
    assert str(again) == "odd"


def test_what_a_failure_cost_is_unknown_unless_it_says() -> None:
    """Unknown is never nothing."""
    expensive = AgentError("cut off")
    expensive.usage = Usage(usd=2.0)  # type: ignore[attr-defined]  # how agents say what a failure cost

    assert usage_of(AgentError("cut off")) is None
    assert usage_of(expensive) == Usage(usd=2.0)


@pytest.mark.parametrize("kind", [errors.AgentQuota, errors.AgentAuth, errors.AgentBadRequest])
def test_what_was_refused_before_any_work_cost_nothing(kind: type[SignoffError]) -> None:
    """A call that fails because there is no login costs nothing."""
    assert usage_of(kind("no")) == FREE
    assert FREE.usd == 0.0
