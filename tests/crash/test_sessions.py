from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.core.run_state import RunState
from signoff.testing.crashing_store import When
from tests.crash import session_story
from tests.crash.harness import crash_everywhere
from tests.crash.session_story import EDITS, NAME, files_of

pytestmark = pytest.mark.slow


def _check_by_hand(run: RunState, files: dict[str, str]) -> None:
    assert run.status is Status.COMPLETED
    assert {path: files[path] for path in EDITS} == EDITS
    assert files["plan.md"] == EDITS["iteration-1/planning-response.md"]
    assert files["iteration-2/code/poem.txt"] == EDITS["iteration-2/revision-response.md"]


def _check_automatic(run: RunState, _files: dict[str, str]) -> None:
    assert run.status is Status.LIMIT
    assert (run.step, run.iteration) == ("review.response", 2)
    assert run.visits == dict.fromkeys(run.visits, 1) | {"review.prompt": 2, "review.response": 2}


def _check_mixed(run: RunState, files: dict[str, str]) -> None:
    assert run.status is Status.COMPLETED
    assert files["plan.md"] == "a better plan"
    assert files["iteration-1/code/poem.txt"] == "waves\nwaves\n"


CHECKS = {"by_hand": _check_by_hand, "automatic": _check_automatic, "mixed": _check_mixed}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("story", list(CHECKS))
def test_a_session_killed_at_any_write_leaves_the_same_files_and_repeats_no_call(
    tmp_path: Path, story: str, when: When
) -> None:
    survivals = list(crash_everywhere(getattr(session_story, story), tmp_path, when=when))

    assert len(survivals) > 10
    folders = [tmp_path / f"{when}-{each.at}/.signoff/runs/{NAME}" for each in survivals]
    expected = files_of(folders[-1])
    for survival, folder in zip(survivals, folders, strict=True):
        where = f"killed {when} write {survival.at}"
        (run,) = survival.runs.values()
        CHECKS[story](run, files_of(folder))
        assert files_of(folder) == expected, where
        assert survival.repeated == [], where
