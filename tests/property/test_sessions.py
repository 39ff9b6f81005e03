"""Whatever a user does, a session is where the transition table leads."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from signoff.core.outcome import Status
from signoff.profiles import TransitionTable, WorkflowPhase, WorkflowStage
from tests.unit.profiles.conftest import own_registries  # noqa: F401  # used by itself
from tests.unit.profiles.session_fixture import SessionFixture, review

MOST = 2
"""Iterations of the sessions here."""

REVIEWS = {"approve_complete": review("PASS"), "approve_revise": review("FAIL", 1), None: "unclear"}
"""A review whose verdict selects each of the rows, and one that selects none."""

Move = tuple[str, str | None]

MOVES = st.lists(
    st.tuples(
        # Mostly approvals, so that sessions get somewhere.
        st.sampled_from(["approve"] * 6 + ["reject", "approve_complete", "approve_revise"]),
        st.sampled_from(list(REVIEWS)),
    ),
    max_size=12,
)


# A step of a session takes long, compared with what properties usually check: shrinking would
# take minutes.
@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(MOVES)
@example([("approve", "approve_revise")] * 10)
@example([("approve", None)] * 6 + [("approve_revise", None), ("reject", None)])
@example([("approve", None)] * 6 + [("approve_complete", "approve_revise")])
def test_no_sequence_of_commands_leaves_the_table(
    tmp_path_factory: pytest.TempPathFactory, moves: list[Move]
) -> None:
    """The graph that is really run has no hidden way."""
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as folder:
        session = SessionFixture(Path(folder), max_iterations=MOST)
        session.start()
        phase, stage, iteration = WorkflowPhase.PLAN, WorkflowStage.PROMPT, 1

        for command, verdict in moves:
            # A review that quotes the code would not be the reviewer's own words.
            response = REVIEWS[verdict] if phase is WorkflowPhase.REVIEW else "a text"
            _perform(session, stage, command, response)
            found = _follow(phase, stage, command, verdict)
            if phase is WorkflowPhase.REVIEW and found[0] is WorkflowPhase.REVISE:
                if iteration == MOST:
                    found = phase, stage
                    assert session.status is Status.LIMIT
                else:
                    iteration += 1
            phase, to = found
            state = session.state
            assert (state.phase, state.stage, state.current_iteration) == (phase, to, iteration)
            if to is None or session.status is Status.LIMIT:
                break
            stage = to
            assert session.status is Status.WAITING


def _perform(session: SessionFixture, stage: WorkflowStage, command: str, response: str) -> None:
    """Does what a user would do for a command."""
    if stage is WorkflowStage.RESPONSE:
        session.write(session.pending_path, response)
    if command == "reject":
        session.reject("not yet")
    else:
        session.approve(**({} if command == "approve" else {"command": command}))


def _follow(
    phase: WorkflowPhase, stage: WorkflowStage, command: str, verdict: str | None
) -> tuple[WorkflowPhase, WorkflowStage | None]:
    """Returns where the table leads; without a row the session stays."""
    row = TransitionTable.get(phase, stage, command)
    if row is not None and row.action == "check_verdict":
        row = TransitionTable.get(phase, stage, verdict) if verdict else None
    return (row.phase, row.stage) if row is not None else (phase, stage)
