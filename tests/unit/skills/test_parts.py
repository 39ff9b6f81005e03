import re
from itertools import product
from pathlib import Path

import pytest

import signoff.skills.library
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.skills.parts import (
    COVERAGE,
    MAX_ROUNDS,
    SkillTexts,
    repeat_until,
    until_confident,
    until_covered,
)
from signoff.skills.types import Confidence
from tests.tables import table

OK, ITERATE = Outcome.OK, Outcome.ITERATE
LIBRARY = Path(signoff.skills.library.__file__).parent
SHARED = (LIBRARY / "shared.md").read_text()


def test_a_skill_says_what_is_in_the_file_beside_its_module(tmp_path: Path) -> None:
    """Only comments with a name begin a text: headings and other comments are part of it."""
    (tmp_path / "skill.md").write_text(
        "Not a text.\n\n<!-- description -->\n\nReads.\n\n<!-- notes.md -->\n\n# Notes\n\n"
        "<!-- empty.md -->\n\n<!-- scope: Read it -->\n\nRead.\n\n# Done\n<!-- not a name -->\n\n"
        '<!-- shared fix-findings phase=plan-code what="the plan" notes=plan.json -->\n'
    )

    texts = SkillTexts.beside(str(tmp_path / "skill.py"))
    step = texts.step("scope", {OK: None}, edits=True)

    assert texts.description == "Reads."
    assert texts.files == {"notes.md": "# Notes\n", "empty.md": ""}
    assert (step.title, step.actions[0], step.edits) == (
        "Read it",
        "Read.\n\n# Done\n<!-- not a name -->",
        True,
    )
    assert "`qr-plan-code.json`" in step.actions[1]
    assert "leave the plan as it is, and write into `plan.json`" in step.actions[1]


@pytest.mark.parametrize("file", sorted(LIBRARY.glob("[!s]*.md")), ids=lambda file: file.stem)
def test_every_text_of_the_library_is_used(file: Path) -> None:
    """A text that no step uses would be edited in vain."""
    source = file.with_suffix(".py").read_text()
    steps = set(re.findall(r"step\(\"(\w+)\"", source))

    texts = SkillTexts.beside(str(file)).texts

    assert {name for name, text in texts.items() if text.title} == steps
    assert all("." in name for name in texts.keys() - steps - {"description"})


@table(("confidence", "iteration"), product(Confidence, range(1, MAX_ROUNDS + 1)))
def test_an_investigation_ends_when_it_is_confident_or_out_of_rounds(
    confidence: Confidence, iteration: int
) -> None:
    """An agent that stays unsure must not investigate forever."""
    outcome, _ = until_confident(StepContext("look"), confidence, iteration)

    sure = confidence in (Confidence.HIGH, Confidence.CERTAIN)
    assert outcome is (OK if sure or iteration == MAX_ROUNDS else ITERATE)


@table(("coverage", "iteration"), product(COVERAGE, range(1, MAX_ROUNDS + 1)))
def test_a_list_is_worked_through_unless_the_rounds_are_used_up(
    coverage: str, iteration: int
) -> None:
    """Work that is half done leads on only when there is no other way."""
    outcome, _ = until_covered(StepContext("read"), coverage, iteration)

    over = coverage == "complete" or iteration == MAX_ROUNDS
    assert outcome is (OK if over else ITERATE)


def test_a_run_counts_its_rounds_by_itself() -> None:
    """Its worker need not report in which round it is."""
    outcomes = [repeat_until(False, StepContext("look", visit=n), 1, bound=3)[0] for n in (1, 2, 3)]

    assert outcomes == [ITERATE, ITERATE, OK]


@pytest.mark.parametrize("scale", [tuple(Confidence), COVERAGE], ids=["confidence", "coverage"])
def test_a_scale_explains_every_level_in_order_and_the_bound(scale: tuple[str, ...]) -> None:
    """Agents would use a word that nothing explains as they like."""
    places = [SHARED.index(f"- `{each}`") for each in scale]

    assert places == sorted(places)
    assert SHARED.count(f"there are at most {MAX_ROUNDS}.") == 2
