import logging
from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.runtime.ports import Notice
from signoff.runtime.services import Backoff
from tests.unit.runtime.engine_fixture import EngineFixture, one_step


class Broken:
    def notice(self, notice: Notice) -> None:
        raise RuntimeError("a bug in a dashboard")


async def test_an_observer_that_fails_does_not_touch_the_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A broken webhook must not cost a day's work; the next observer gets the notice as well."""
    notices: list[Notice] = []

    class Fine:
        def notice(self, notice: Notice) -> None:
            notices.append(notice)

    def work(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        ctx.progress("half way")
        return Outcome.OK, {}

    bench = EngineFixture(observers=[Broken(), Fine()])
    caplog.set_level(logging.WARNING, "signoff")

    result = await bench.start(one_step(work))
    await bench.close()

    assert result.ok
    assert len(notices) == 3
    assert "observer Broken failed" in caplog.text


def test_pauses_double_up_to_the_longest() -> None:
    """An outage of an hour must not cause a thousand calls."""
    backoff = Backoff(first=1.0, longest=10.0)

    pauses = [backoff.pause(attempt, 0.5) for attempt in range(1, 7)]

    assert pauses == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_pauses_are_spread_by_chance() -> None:
    """A hundred critics that failed at once must not all retry at once."""
    backoff = Backoff(first=4.0)

    assert (backoff.pause(1, 0.0), backoff.pause(1, 1.0)) == (3.0, 5.0)


def test_no_retry_comes_before_the_time_the_server_named() -> None:
    """A server that names a time refuses calls that come before it."""
    backoff = Backoff(first=1.0)

    pauses = [backoff.pause(3, chance, after=20.0) for chance in (0.0, 1.0)]

    assert pauses == [20.0, 25.0]
