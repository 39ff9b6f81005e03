from collections.abc import AsyncIterator

import pytest

from tests.unit.runtime.bench import Bench


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    await bench.close()
