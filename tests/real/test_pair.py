"""A pair with the small model itself, from its first turn to its end."""

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from signoff.agents.local import LocalModel
from signoff.agents.local_process import model_queue
from signoff.agents.weights import SMOLLM2, State, model_cache
from signoff.pair import CompletionReason, run_slogan_generation
from signoff.pair.checks import parse_check
from signoff.testing import MemoryStore

pytestmark = [pytest.mark.real, pytest.mark.slow]

RUNNER = Path(__file__).parents[2] / ".model-env"
CHECKS = ["words=8", "avoids=explanation"]


@pytest.fixture(autouse=True)
def model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the model runner importable, or skips the test if it is not installed."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(RUNNER)])
    weights = model_cache(os.environ).state(SMOLLM2)
    if find_spec("xllamacpp") is None or weights is not State.READY:
        missing = "the real local model is not here; run: make model"
        if request.config.getoption("--real"):
            pytest.fail(missing)
        pytest.skip(missing)
    yield
    model_queue().close()


async def test_the_small_model_writes_a_slogan_and_checks_take_the_place_of_the_reviewer() -> None:
    """What a new user gets without a server, an account or a key."""
    session = await run_slogan_generation(
        "a tea shop",
        store=MemoryStore(),
        writer=LocalModel(),
        reviewers=[],
        checks=CHECKS,
        max_turns=3,
    )

    assert session.completion_reason in {
        CompletionReason.APPROVED,
        CompletionReason.MAX_TURNS,
        CompletionReason.CONVERGED,
    }
    assert session.final_slogan
    assert session.turn_count == len(session.turns) >= 1
    passes = not any(parse_check(rule).problem(session.final_slogan) for rule in CHECKS)
    assert session.succeeded is passes
    assert session.duration
