import logging
from typing import Any

import pytest

from signoff.observers.run_log import LOGGER
from signoff.pair import run_slogan_generation
from signoff.testing import MemoryStore, ScriptedAgent

TASK = "eco-friendly water bottles"
SLOGAN = "Hydrate Green, Live Clean"


@pytest.mark.parametrize(
    ("replies", "reason", "turns"),
    [
        ([SLOGAN, "too vague", f"{SLOGAN}!", "SHIP IT!"], "approved", 2),
        ([SLOGAN, "too vague", "Drink less plastic", "still vague"], "max_turns", 2),
        ([SLOGAN, ValueError("a bug")], "error", 1),
    ],
)
async def test_a_session_is_logged_with_the_fields_of_the_seed(
    caplog: pytest.LogCaptureFixture, replies: list[Any], reason: str, turns: int
) -> None:
    """What a pair stores of its configuration is found in the parameters of its run."""
    caplog.set_level(logging.INFO, LOGGER)
    agent = ScriptedAgent(replies)

    session = await run_slogan_generation(
        TASK, max_turns=2, store=MemoryStore(), writer=agent, reviewers=[agent]
    )

    start, *_, end = (vars(record) for record in caplog.records)
    assert start["msg"] == "Starting workflow"
    assert (start["model_name"], start["max_turns"]) == (session.model_name, 2)
    assert end["msg"] == "Workflow completed"
    assert (end["completion_reason"], end["turn_count"]) == (reason, turns)
    assert end["completion_reason"] == session.completion_reason
    assert session.duration is not None
    assert end["duration"] == pytest.approx(session.duration.total_seconds(), abs=0.01)
    assert TASK not in caplog.text
    assert not [r for r in caplog.records if SLOGAN in str(vars(r)) or TASK in str(vars(r))]
