from collections.abc import AsyncIterator

import pytest

from tests.unit.runtime.engine_fixture import EngineFixture


@pytest.fixture
async def bench() -> AsyncIterator[EngineFixture]:
    bench = EngineFixture()
    yield bench
    await bench.close()
