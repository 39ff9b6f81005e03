import asyncio
import json
import re
import shlex
from collections.abc import AsyncIterator, Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.effects import AgentRequest
from signoff.core.errors import AgentBadRequest
from signoff.core.outcome import Outcome, Status
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.skills.qr import (
    ROUNDS,
    ItemStatus,
    QRGate,
    QRItem,
    QRVerdict,
    Severity,
    blocking,
    judge,
    read_record,
    record,
)
from signoff.skills.state import STATE_DIR
from signoff.skills.types import QRStatus
from tests.tables import table
from tests.unit.runtime.engine_fixture import EngineFixture

OK, FAIL = Outcome.OK, Outcome.FAIL
PASS = json.dumps({"status": "pass", "notes": ""})
FAILED = json.dumps({"status": "fail", "notes": "see the records"})
GATE = QRGate(phase="plan-design", agent="claude")
GATED = Workflow(
    "planner",
    StepDef("gate", "Review", ["Review the plan."], GATE, {OK: None, FAIL: "fix"}),
    StepDef("fix", next={OK: "gate"}),
    inputs=[STATE_DIR],
)
A, B = {"id": "a", "severity": "MUST"}, {"id": "b", "severity": "MUST"}


@pytest.fixture
async def bench() -> AsyncIterator[EngineFixture]:
    bench = EngineFixture()
    yield bench
    await bench.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of items, in a state directory whose name has to be quoted."""
    folder = tmp_path / "it's $(one)"
    folder.mkdir()
    return folder / "qr-plan-design.json"


async def start(bench: EngineFixture, path: Path) -> Any:
    return await bench.start(GATED, state_dir=str(path.parent))


def write(path: Path, *items: dict[str, Any], **more: Any) -> str:
    path.write_text(json.dumps({"items": items, **more}))
    return PASS


def finds(path: Path, *findings: str, of: str = "a") -> list[Callable[[AgentRequest], str]]:
    """Returns answers of a reviewer that records these findings in turn; an empty one is a pass."""

    def answer(finding: str) -> Callable[[AgentRequest], str]:
        def recorded(_request: AgentRequest) -> str:
            record(path, of, "FAIL" if finding else "PASS", finding or None)
            return FAILED if finding else PASS

        return recorded

    return [*map(answer, findings)]


def commands(bench: EngineFixture) -> list[list[str]]:
    """Returns the options of the commands that the reviewers were told to run."""
    found = [re.findall(r"follow what it prints: (.*)", prompt) for prompt in bench.agent.prompts]
    return [shlex.split(command)[4:] for (command,) in found]


@pytest.mark.parametrize("phase", ["", "../x", "Plan", "a b", "-x"])
def test_a_phase_that_is_no_plain_name_is_refused(phase: str) -> None:
    """It becomes part of a file name and a command."""
    with pytest.raises(ValueError, match="phase"):
        QRGate(phase=phase)


@pytest.mark.parametrize("option", [{"free_form": True}, {"for_each": "files"}])
def test_what_a_gate_cannot_do_is_refused(option: dict[str, Any]) -> None:
    """It would be ignored, and the author would rely on it."""
    with pytest.raises(ValueError, match=next(iter(option))):
        QRGate(phase="plan-design", **option)


async def test_the_review_is_split_once_and_its_groups_are_verified_at_once(
    bench: EngineFixture, path: Path
) -> None:
    """Each reviewer gets the whole command, whatever the state directory is called."""
    both = asyncio.Barrier(2)
    items = [{**A, "group_id": "x"}, {**B, "group_id": "x"}, {"id": "c", "group_id": "it's y"}]

    async def verify(request: AgentRequest) -> str:
        await both.wait()
        for name in "c" if "--group 'it" in request.prompt else "ab":
            record(path, name, "PASS")
        return PASS

    bench.agent.on("--items", lambda _request: write(path, *items)).on("--group", verify)

    result = await start(bench, path)

    assert result.status is Status.COMPLETED
    assert result.state["gate"]["status"] == "pass"
    assert bench.agent.most_at_once == 2
    phase, folder = ["--phase", "plan-design"], ["--state-dir", str(path.parent)]
    assert commands(bench) == [
        [*phase, "--items", *folder],
        [*phase, "--group", "x", *folder],
        [*phase, "--group", "it's y", *folder],
    ]


async def test_what_failed_is_redone_and_verified_again_alone(
    bench: EngineFixture, path: Path
) -> None:
    """A result that was recorded is not paid for twice."""
    write(path, A, B)
    bench.agent.on("--group a", *finds(path, "no retry", ""))
    bench.agent.on("--group b", *finds(path, "", of="b"))

    result = await start(bench, path)

    assert result.status is Status.COMPLETED
    assert [each[3] for each in commands(bench)] == ["a", "b", "a"]
    first, second = (each.delta["set"]["gate"] for each in bench.events() if gate_ended(each))
    assert (first["action"], second["action"]) == ("redo", "proceed")
    assert first["findings"] == [
        {"id": "a", "severity": "MUST", "status": "FAIL", "check": "", "finding": "no retry"}
    ]
    assert read_record(path).iteration == 2


def gate_ended(event: Any) -> bool:
    return type(event).__name__ == "StepFinished" and "gate" in event.delta.get("set", ())


@pytest.mark.parametrize(
    ("replies", "calls"),
    [
        ([PASS], 2 * ROUNDS),
        ([FAILED], 2 * ROUNDS),
        ([PASS, PASS], ROUNDS + 1),
    ],
    ids=["nothing recorded", "failed without a record", "recorded at last"],
)
async def test_items_without_a_result_are_verified_a_few_times_then_a_human_decides(
    bench: EngineFixture, path: Path, replies: list[str], calls: int
) -> None:
    """A reviewer that says "pass" and records nothing has not passed the gate."""
    write(path, A)
    ends = finds(path, "") if len(replies) > 1 else []
    bench.agent.on("--group", *[replies[0]] * (ROUNDS if ends else 1), *ends)

    result = await start(bench, path)

    assert result.status is Status.WAITING
    assert len(bench.agent.prompts) == ROUNDS
    bench.answer("verify")
    again = await bench.resume(GATED)
    assert len(bench.agent.prompts) == calls
    assert again.status is (Status.COMPLETED if ends else Status.WAITING)


async def test_a_reviewer_that_fails_is_no_error_to_recover_from(
    bench: EngineFixture, path: Path
) -> None:
    """A run whose reviewers cannot be started must not go around its gate."""
    write(path, A)
    gate = StepDef("gate", "Review", ["Review it."], GATE, {OK: None, FAIL: None}, on_error="end")
    around = Workflow("planner", gate, StepDef("end", next={OK: None}), inputs=[STATE_DIR])
    bench.agent.on("--group", AgentBadRequest("not installed"))

    result = await bench.start(around, state_dir=str(path.parent))

    assert (result.status, result.step) == (Status.FAILED, "gate")


@pytest.mark.parametrize(
    ("choice", "calls", "visits"), [("accept", 0, 1), ("redo", 1, 2), ("verify", 1, 1)]
)
async def test_from_iteration_5_a_human_decides_with_all_findings(
    bench: EngineFixture, path: Path, choice: str, calls: int, visits: int
) -> None:
    """Also with those that no longer block, and without what a terminal would act on."""
    hostile = "no retry\n- b (MUST, PASS): \x1b[2J fine"
    write(path, A, B, {"id": "c", "severity": "COULD"})
    bench.agent.on("--group a", *finds(path, "1", "2", "3", "4", hostile, ""))
    bench.agent.on("--group b", *finds(path, "", of="b"))
    bench.agent.on("--group c", *finds(path, "a typo", of="c"))

    waiting = await start(bench, path)
    (item,) = bench.store.items("run")
    before = len(bench.agent.prompts)
    bench.answer(choice, "seen")
    result = await bench.resume(GATED)

    assert waiting.status is Status.WAITING
    listed = item.prompt.splitlines()[1:]
    assert [line.partition(":")[0] for line in listed] == ["- a (MUST, FAIL)", "- c (COULD, FAIL)"]
    assert "no retry - b" in listed[0]
    assert "\x1b" not in item.prompt
    assert (result.status, len(bench.agent.prompts)) == (Status.COMPLETED, before + calls)
    ended = [each for each in bench.events() if gate_ended(each)][4:]
    assert len(ended) == visits
    if choice != "verify":
        decided = ended[0].delta["set"]["gate"]
        assert (decided["decision"], decided["comment"]) == (choice, "seen")


async def test_the_same_failures_do_not_make_the_review_milder(
    bench: EngineFixture, path: Path
) -> None:
    """They end with a human all the same: an author that changes nothing could go on forever."""
    write(path, A)
    bench.agent.on("--group", *finds(path, "no retry"))

    result = await start(bench, path)

    assert result.status is Status.WAITING
    assert len(bench.agent.prompts) == 5
    assert read_record(path).iteration == 2


async def test_a_file_that_cannot_be_used_is_replaced_or_shown_to_a_human(
    bench: EngineFixture, path: Path
) -> None:
    """A review without items has checked nothing."""
    write(path, A, iteration="one")
    bench.agent.on("--items", PASS, lambda _request: write(path, A))
    bench.agent.on("--group", *finds(path, ""))

    waiting = await start(bench, path)
    (item,) = bench.store.items("run")
    bench.answer("verify")
    result = await bench.resume(GATED)

    assert waiting.status is Status.WAITING
    assert "'iteration' is not a number" in item.prompt
    assert result.status is Status.COMPLETED


@pytest.mark.parametrize("more", [{}, {"round": "run/gate/1/2"}], ids=["", "as if begun"])
async def test_only_what_this_run_had_verified_has_passed(
    bench: EngineFixture, path: Path, more: dict[str, str]
) -> None:
    """An agent that writes the items may write any result and iteration next to them."""
    passed = {"id": "a", "severity": "SHOULD", "status": "PASS"}
    bench.agent.on("--items", lambda _request: write(path, passed, B, iteration=7, **more))
    bench.agent.on("--group a", *finds(path, ""))
    bench.agent.on("--group b", *finds(path, "", of="b"))

    result = await start(bench, path)

    assert result.status is Status.COMPLETED
    assert [each[3] for each in commands(bench)[1:]] == ["a", "b"]


@pytest.mark.parametrize(
    ("change", "listed"),
    [
        (lambda content: content["items"].pop(0), "- a (SHOULD, TODO): the item was removed"),
        (lambda content: content["items"][0].update(severity="COULD"), "- a (SHOULD, TODO)"),
        (lambda content: content.update(iteration=9), "- a (SHOULD, TODO)"),
    ],
    ids=["removed", "matters less", "later iteration"],
)
async def test_a_reviewer_cannot_change_what_is_reviewed(
    bench: EngineFixture, path: Path, change: Callable[[Any], Any], listed: str
) -> None:
    """Instead of a result, it edits the file until nothing blocks."""

    def edit(_request: AgentRequest) -> str:
        content = json.loads(path.read_text())
        if content["items"][0]["id"] == "a":
            change(content)
        path.write_text(json.dumps(content))
        return PASS

    write(path, {**A, "severity": "SHOULD"}, B)
    bench.agent.on("--group b", *finds(path, "", of="b"))
    bench.agent.on("--group a", edit)

    result = await start(bench, path)

    assert result.status is Status.WAITING
    (item,) = bench.store.items("run")
    assert listed in item.prompt


async def test_work_between_two_reviews_cannot_pass_its_own_items(
    bench: EngineFixture, path: Path
) -> None:
    """What failed is verified again, whatever the file says by then."""

    def fix(_ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        write(path, {**A, "status": "PASS"}, B)
        return OK, {}

    steps = {**GATED.steps, "fix": StepDef("fix", handler=fix, next={OK: "gate"})}
    write(path, A, B)
    bench.agent.on("--group a", *finds(path, "no retry", ""))
    bench.agent.on("--group b", *finds(path, "", of="b"))

    result = await bench.start(
        Workflow("planner", *steps.values(), inputs=[STATE_DIR]), state_dir=str(path.parent)
    )

    assert result.status is Status.COMPLETED
    assert [each[3] for each in commands(bench)] == ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    "word",
    ["MUST", "must", " Must ", "blocker", "Critical", "CRITICAL", "blocking", "fatal", "required"],
)
def test_words_for_the_worst_severity_mean_must(word: str) -> None:
    """Models use the words of other reviews."""
    assert Severity.read(word) is Severity.MUST
    assert QRItem.from_json({"id": "a", "severity": word}).severity is Severity.MUST


@pytest.mark.parametrize(
    "word", ["should", "high", "major", "nit", "low", "urgent", "", "  ", None, 7, True, [], {}]
)
def test_any_other_word_means_should(word: Any) -> None:
    """A severity never aborts a run, and no word is taken for a milder one than it may be."""
    assert Severity.read(word) is Severity.SHOULD


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("PASS", "PASS"),
        ("pass", "PASS"),
        (" Fail\n", "FAIL"),
        ("TODO", "TODO"),
        ("passed", "TODO"),
        ("done", "TODO"),
        (None, "TODO"),
        (True, "TODO"),
        (["PASS"], "TODO"),
    ],
)
def test_only_a_known_word_is_a_result(word: Any, status: str) -> None:
    """Anything else still has to be verified."""
    assert ItemStatus.read(word) == status
    assert QRItem.from_json({"id": "a", "status": word}).status is ItemStatus(status)


def test_an_item_has_all_the_fields_of_its_file() -> None:
    """What a model wrote must not be lost on the way to the reviewer."""
    entries = {
        "id": "a-2",
        "scope": "src/",
        "check": "errors are handled",
        "status": "FAIL",
        "version": 3,
        "finding": "an error is ignored",
        "parent_id": "a",
        "group_id": "errors",
        "severity": "MUST",
    }

    item = QRItem.from_json(entries)

    assert {name: getattr(item, name) for name in entries} == entries


ITERATIONS = range(1, 7)
SEVERITIES = ("MUST", "SHOULD", "COULD")
STATUSES = ("TODO", "PASS", "FAIL")

# One letter for each iteration: Redo, Verify, Ask or proceed (.), written down by hand from the
# specification and not computed.
VERDICTS = {
    ("MUST", "TODO"): "VVVVAA",
    ("MUST", "PASS"): "......",
    ("MUST", "FAIL"): "RRRRAA",
    ("SHOULD", "TODO"): "VVVV..",
    ("SHOULD", "PASS"): "......",
    ("SHOULD", "FAIL"): "RRRR..",
    ("COULD", "TODO"): "VV....",
    ("COULD", "PASS"): "......",
    ("COULD", "FAIL"): "RR....",
}
VERDICTS_IF_FAIL_IS_REPORTED = {
    ("MUST", "TODO"): "VVVVAA",
    ("MUST", "PASS"): "VVVVAA",
    ("MUST", "FAIL"): "RRRRAA",
    ("SHOULD", "TODO"): "VVVVAA",
    ("SHOULD", "PASS"): "VVVVAA",
    ("SHOULD", "FAIL"): "RRRR..",
    ("COULD", "TODO"): "VVVVAA",
    ("COULD", "PASS"): "VVVVAA",
    ("COULD", "FAIL"): "RR....",
}
ACTIONS = {"R": "redo", "V": "verify", "A": "ask", ".": "proceed"}
WORST_FIRST = "ARV."
OTHER_WORDS = (None, "pass", "PASS", "ok", "", "failure is not an option", "unclear")
FAIL_WORDS = ("fail", "FAIL", " Fail ", QRStatus.FAIL)


def verdict(letter: str) -> QRVerdict:
    """Returns the verdict for a letter of the tables."""
    status = QRStatus.PASS if letter == "." else QRStatus.FAIL
    return QRVerdict(status, ACTIONS[letter])  # type: ignore[arg-type]  # an equal text will do


@pytest.mark.parametrize(
    ("iteration", "severities"),
    [
        (1, {"MUST", "SHOULD", "COULD"}),
        (2, {"MUST", "SHOULD", "COULD"}),
        (3, {"MUST", "SHOULD"}),
        (4, {"MUST", "SHOULD"}),
        (5, {"MUST"}),
        (6, {"MUST"}),
        (1000, {"MUST"}),
    ],
)
def test_later_iterations_block_on_less(iteration: int, severities: set[str]) -> None:
    """A loop of work and review has to end."""
    found = blocking(iteration)

    assert isinstance(found, frozenset)
    assert found == severities
    assert all(isinstance(each, Severity) for each in found)


def test_a_project_may_have_another_table() -> None:
    """Some teams never let go of what should be done."""
    table = {1: tuple(Severity), 2: (Severity.MUST,)}

    assert [len(blocking(iteration, table)) for iteration in ITERATIONS] == [3, 1, 1, 1, 1, 1]
    assert judge([{"id": "a", "status": "FAIL"}], 2, table=table) == verdict(".")


@table(("iteration", "severity", "status"), product(ITERATIONS, SEVERITIES, STATUSES))
def test_the_verdict_on_one_item(iteration: int, severity: str, status: str) -> None:
    """The specification, row by row."""
    entries = {"id": "a", "severity": severity, "status": status}
    found = {word: judge([entries], iteration, word) for word in (*OTHER_WORDS, *FAIL_WORDS)}

    plain = verdict(VERDICTS[severity, status][iteration - 1])
    if_reported = verdict(VERDICTS_IF_FAIL_IS_REPORTED[severity, status][iteration - 1])
    assert {word: found[word] for word in OTHER_WORDS} == dict.fromkeys(OTHER_WORDS, plain)
    assert {word: found[word] for word in FAIL_WORDS} == dict.fromkeys(FAIL_WORDS, if_reported)


@pytest.mark.parametrize("iteration", ITERATIONS)
def test_the_verdict_on_several_items_is_the_worst_of_them(iteration: int) -> None:
    """An item that passes hides no other; one that does not block vetoes nothing."""
    kinds = [*product(SEVERITIES, STATUSES)]
    for pair in product(kinds, kinds):
        items = [
            {"id": str(number), "severity": severity, "status": status}
            for number, (severity, status) in enumerate(pair)
        ]
        letters = [VERDICTS[kind][iteration - 1] for kind in pair]
        plain = min(letters, key=WORST_FIRST.index)
        # What was reported is explained by any failure that is recorded, even a harmless one.
        explained = any(status == "FAIL" for _, status in pair)
        unexplained = "A" if iteration >= 5 else "V"

        assert judge(items, iteration) == verdict(plain), pair
        assert judge(items, iteration, "pass") == verdict(plain), pair
        reported = plain if explained else unexplained
        assert judge(items, iteration, "fail") == verdict(reported), pair
