from collections.abc import AsyncIterator

import pytest

from signoff.runtime import journal
from tests.patience import SkippingLoop
from tests.unit.runtime.engine_fixture import EngineFixture


@pytest.fixture
async def bench() -> AsyncIterator[EngineFixture]:
    bench = EngineFixture()
    yield bench
    await bench.close()


@pytest.fixture
def fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No commit counts as slow, however busy the machine, so the thread never takes over."""
    monkeypatch.setattr(journal, "SLOW_SECONDS", float("inf"))


@pytest.fixture
async def loop() -> AsyncIterator[SkippingLoop]:
    """Lets time-outs of the test come due when something hangs."""
    skipping = SkippingLoop()
    yield skipping
    skipping.end()
