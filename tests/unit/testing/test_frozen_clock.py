import asyncio

import pytest

from signoff.testing import FrozenClock


async def test_it_stands_still_until_it_is_moved() -> None:
    """A test that depends on the speed of the machine fails on a slow one."""
    clock = FrozenClock(1000.0)

    await asyncio.sleep(0)

    assert (clock.now(), clock.monotonic()) == (1000.0, 0.0)
    clock.advance(5)
    assert (clock.now(), clock.monotonic()) == (1005.0, 5.0)


async def test_sleeping_takes_no_time_and_is_noted() -> None:
    """A back-off of a minute must not make a test take one."""
    clock = FrozenClock(1000.0)
    ran: list[str] = []
    other = asyncio.create_task(_note(ran))

    await clock.sleep(60)

    assert clock.now() == 1060.0
    assert clock.slept == [60]
    assert ran == ["other"]
    await other


def test_only_the_wall_clock_can_jump_back() -> None:
    """Daylight saving, a time server, an administrator; time itself does not run backwards."""
    clock = FrozenClock(1000.0)

    clock.jump(-3600)

    assert (clock.now(), clock.monotonic()) == (-2600.0, 0.0)
    with pytest.raises(ValueError, match="jump"):
        clock.advance(-1)


async def _note(ran: list[str]) -> None:
    ran.append("other")
