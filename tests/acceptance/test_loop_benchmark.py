"""The benchmark of the review loop does the work that it reports."""

from typing import Any

import pytest

from benchmarks.loop.__main__ import run
from benchmarks.loop.artifacts import artifacts
from benchmarks.loop.outcome import FIGURES
from benchmarks.loop.targets import TARGETS

pytestmark = pytest.mark.slow

SEED = 7


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return run(artifacts(SEED)[::11], SEED)


def test_both_loops_end_with_fewer_defects_than_were_planted(report: dict[str, Any]) -> None:
    """A loop that fixes nothing would look cheap."""
    planted = sum(len(each.defects) for each in artifacts(SEED)[::11])

    assert set(report["loops"]) == {"naive", "signoff"}
    for loop in report["loops"].values():
        assert loop["artifacts"] == 4
        assert set(loop["sum"]) == set(loop["mean"]) == set(FIGURES)
        assert 0 <= loop["sum"]["left"] < planted
        assert loop["sum"]["not_approved"] < 4
        assert loop["sum"]["calls"] == sum(each["calls"] for each in loop["by_round"])
        assert loop["sum"]["tokens_in"] > loop["sum"]["tokens_out"] > 0
    assert [each["target"] for each in report["targets"]] == [each.title for each in TARGETS]


def test_the_same_seed_gives_the_same_figures(report: dict[str, Any]) -> None:
    """Otherwise two versions could not be compared."""
    assert run(artifacts(SEED)[::11], SEED) == report
