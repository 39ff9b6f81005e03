"""The benchmark of the review loop does the work that it reports."""

import asyncio
from typing import Any

import pytest

from benchmarks.loop import reading
from benchmarks.loop.__main__ import run, targets_of
from benchmarks.loop.artifacts import FEWEST, MOST, artifacts
from benchmarks.loop.meter import CHARS_PER_TOKEN, LEAST_CACHED, Meter
from benchmarks.loop.outcome import FIGURES
from benchmarks.loop.simulation import Simulation
from benchmarks.loop.targets import TARGETS, input_price
from benchmarks.loop.virtual_time import run_in_virtual_time

pytestmark = pytest.mark.slow

SEED = 7
BLOCK = "x" * LEAST_CACHED * CHARS_PER_TOKEN


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


def test_targets_are_judged_by_the_means_over_seeds(report: dict[str, Any]) -> None:
    """One lucky seed must not meet a target for all of them."""
    naive, signoff = (report["loops"][name]["sum"] for name in ("naive", "signoff"))
    worse = {**signoff, "calls": 2 * naive["calls"], "critical_reported": 1}
    other = {"loops": {"naive": {"sum": naive}, "signoff": {"sum": worse}}}

    judged = {each["target"]: each for each in targets_of([report, other])}

    calls = judged["fewer calls than naive"]
    assert (calls["min"], calls["met"]) == ("-100 %", False)
    assert calls["max"] == next(
        t["mean"] for t in report["targets"] if t["target"] == calls["target"]
    )
    assert not judged["passed with a reported planted CRITICAL left"]["met"]


def test_the_price_of_input_counts_a_cached_token_as_a_tenth() -> None:
    """What a vendor charges, which is what a user saves."""
    assert input_price({"tokens_in": 1_000, "cached": 400}) == pytest.approx(640)


def test_the_same_seed_gives_the_same_figures(report: dict[str, Any]) -> None:
    """Otherwise two versions could not be compared."""
    assert run(artifacts(SEED)[::11], SEED) == report


def test_there_are_twenty_texts_and_twenty_code_files_with_a_few_defects_each() -> None:
    """The page about the benchmark promises these numbers."""
    all_artifacts = artifacts(SEED)

    kinds = [each.kind for each in all_artifacts]
    assert (kinds.count("text"), kinds.count("code")) == (20, 20)
    assert len({each.text for each in all_artifacts}) == 40
    assert all(FEWEST <= len(each.defects) <= MOST for each in all_artifacts)


def test_fixing_everything_that_is_planted_leaves_nothing() -> None:
    """The simulation must know the correct text of every passage."""
    for artifact in artifacts(SEED):
        simulation = Simulation(artifact, SEED)
        text = artifact.text
        for defect in simulation.left(text):
            text = text.replace(defect.bad, defect.good)

        assert simulation.left(text) == []
        assert not any(simulation.left(passage) for passage in artifact.clean)


def test_a_prompt_is_cached_only_once_an_earlier_call_has_begun_to_answer() -> None:
    """Critics that start together find nothing in the cache."""
    meter = Meter()

    async def calls() -> None:
        await asyncio.gather(*(meter.call("critic", 1, f"{BLOCK} {n}", "ok") for n in range(2)))
        await meter.call("critic", 2, f"{BLOCK} again", "ok")
        await meter.call("judge", 2, f"{BLOCK} again", "ok")

    run_in_virtual_time(calls())

    assert [call.cached for call in meter.calls] == [0, 0, LEAST_CACHED, 0]


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ('- F-1, dismissed because it is fine: "some words": Wrong. (ref d1)', reading.DISMISSED),
        ('- F-1, open since round 1: "some words": It was fixed before. (ref d1)', reading.OPEN),
        ("- F-1: Wrong. (ref d1)\n  status: open", reading.OPEN),
        ('- F-2, dismissed: "other words": Wrong. (ref d2)', None),
        ("<<<ARTIFACT 0a\nsome words are open or dismissed\nARTIFACT 0a>>>", None),
    ],
)
def test_an_agent_remembers_only_what_its_prompt_lists(line: str, status: str | None) -> None:
    """Memory that is not in the prompt would make a loop look better than it is."""
    assert reading.known(f"Review it.\n\n{line}\n\nReview now.", "d1", "some words") == status
