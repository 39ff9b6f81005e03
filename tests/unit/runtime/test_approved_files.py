from pathlib import Path

import pytest

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.requests import Approval
from signoff.runtime.approved_files import ApprovedFiles
from signoff.store.rundir import RunFiles
from tests.unit.runtime.engine_fixture import EngineFixture, one_step

TEXT = "the plan\n"


async def work(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    await ctx.write("plan.md", "a first plan\n", key="first")
    await ctx.write("plan.md", TEXT, key="second")
    return Outcome.OK, {}


@pytest.mark.parametrize("content", [TEXT, None], ids=["text shown", "only the file"])
async def test_a_file_holds_what_was_shown_until_somebody_changes_it(
    tmp_path: Path, content: object
) -> None:
    """An approval counts for that and nothing else; the earlier draft will not do either."""
    files = RunFiles(tmp_path)
    bench = EngineFixture(files=files)
    await bench.start(one_step(work))
    form = Approval("Good?", content, path="plan.md").to_json()
    approved = ApprovedFiles(bench.store, files)

    found = [approved.hold("run", form)]
    for text in ("a first plan\n", "the plan", TEXT):
        files.write("run", "plan.md", text)
        found.append(approved.hold("run", form))

    assert found == [True, False, False, True]


async def test_an_approval_of_no_file_has_nothing_that_could_change(tmp_path: Path) -> None:
    """Most approvals show their content and need no directory at all."""
    bench = EngineFixture()
    await bench.start(one_step(lambda _ctx: (Outcome.OK, {})))

    approved = ApprovedFiles(bench.store, RunFiles(tmp_path))

    assert approved.hold("run", Approval("Good?", TEXT).to_json())
