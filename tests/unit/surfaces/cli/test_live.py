import io
import re
from typing import Any

import pytest
from rich.console import Console

from signoff import Edge, Outcome, StepDef, Workflow
from signoff.core import events as ev
from signoff.core.effects import EffectId, EffectKind
from signoff.review.pure.history import (
    ArtifactChanged,
    IssuesReported,
    Judgment,
    ReviewHistory,
    ReviewNews,
    Version,
)
from signoff.runtime.ports import Progress, Recorded, Retrying
from signoff.surfaces.cli.live import LiveView, StreamTail
from signoff.testing import FrozenClock
from signoff.views.timeline import Timeline

FLOW = Workflow(
    "review",
    StepDef("draft", "Write it", ["Write."], next={Outcome.OK: "judge"}),
    StepDef("judge", next={Outcome.OK: None, Outcome.ITERATE: Edge("draft", 3)}),
)


class Stage:
    """A live view on a fake terminal, with a clock that does not move."""

    def __init__(
        self,
        width: int = 80,
        *,
        verbose: bool = False,
        flow: Workflow = FLOW,
        history: Timeline | None = None,
    ) -> None:
        self.clock = FrozenClock(now=100.0)
        self.file = io.StringIO()
        console = Console(file=self.file, width=width, force_terminal=False)
        before = {"one": history} if history is not None else None
        self.view = LiveView(flow, before, console=console, clock=self.clock, verbose=verbose)

    def record(self, *events: ev.Event) -> None:
        for event in events:
            event.at = self.clock.now()
            self.view.notice(Recorded("one", [event]))

    def stayed(self) -> list[str]:
        """The lines that scroll up and stay, without their times."""
        self.view.flush()
        return [line[10:].rstrip() for line in self.file.getvalue().splitlines()]

    def picture(self, width: int = 80) -> list[str]:
        """The lines that move, as they are now."""
        console = Console(file=io.StringIO(), width=width, force_terminal=False)
        with console.capture() as captured:
            console.print(self.view.picture())
        return [line.rstrip() for line in captured.get().splitlines()]


def started() -> ev.RunStarted:
    return ev.RunStarted("review", "d", "draft", {}, limits={"usd": 5.0})


def ask(effect: str, **payload: Any) -> ev.EffectStarted:
    return ev.EffectStarted(EffectId(effect), EffectKind.ASK, "d", {"agent": "claude", **payload})


def test_the_picture_shows_what_works_for_how_long_and_the_cost() -> None:
    """This is what people look at for hours."""
    stage = Stage()
    stage.record(started(), ask("draft#1", model="large"))
    stage.clock.advance(12.3)

    picture = stage.picture()

    assert picture[0].split() == ["⠋", "draft", "Write", "it", "12.3s"]
    assert picture[1].split() == ["asking", "claude", "(large)", "·", "draft", "12.3s"]
    assert picture[2].strip() == "round 1 · 12.3s · 1 call · $0.00 of $5.00"


def test_a_program_left_over_does_not_seem_to_run() -> None:
    """For five seconds, a resume seemed to run what it was about to ask about."""
    history = Timeline().follow(
        [
            started(),
            ev.EffectStarted(EffectId("c#1"), EffectKind.COMMAND, "d", {"argv": ["make"]}, at=2),
            ev.EffectRunning(EffectId("c#1"), {"pid": 7}, at=3),
        ]
    )
    stage = Stage(history=history)

    before = stage.picture()
    stage.record(ev.RunResumed())

    assert before[0].endswith("3.0s")
    assert "make" not in "".join([*before, *stage.picture()])


def test_what_a_run_does_stays_as_lines_like_those_of_a_log() -> None:
    """Users scroll up to read the history long after the live view has ended."""
    stage = Stage()
    stage.record(started(), ask("ask#1"))
    stage.clock.advance(2)

    stage.record(ev.StepFinished(Outcome.OK, "draft/ok", "judge"))
    stage.record(ev.StepFinished(Outcome.ITERATE, "judge/iterate", "draft", round=2))

    assert stage.stayed() == [
        "workflow review started",
        "draft: begins",
        "draft: ok in 2.0s",
        "judge: begins",
        "judge: iterate in 0.0s",
        "draft: begins (round 2)",
    ]
    assert stage.picture()[0].split()[1:3] == ["draft", "Write"]


def test_a_fan_out_is_one_line_with_the_slowest_named() -> None:
    """Eight critics are one thing to the person who waits for the last of them."""
    stage = Stage()
    stage.record(
        started(), ev.EffectStarted(EffectId("critics#1"), EffectKind.MAP, "d", {"items": 8})
    )
    stage.record(ask("critics#1[0]/ask#1"), ask("critics#1[1]/ask#1"))
    stage.clock.advance(3)
    stage.record(ask("critics#1[2]/ask#1"), ev.ItemFinished("critics#1[0]"))
    stage.record(ev.EffectFinished(EffectId("critics#1[0]/ask#1"), {}))

    line = stage.picture()[1]

    assert "critics" in line
    assert "1/8" in line
    assert "2 running, slowest [1] claude" in line
    assert line.endswith("3.0s")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """A line that wraps makes the whole picture jump."""
    stage = Stage(width)
    stage.record(started(), ask("a-very-long-key-for-an-effect-that-goes-on-and-on#1"))
    stage.view.notice(Progress("one", "draft", "x", "w" * 500))
    stage.view.notice(Retrying("one", "ask#1", "e" * 500, 3.0))
    stage.record(ev.AttemptFailed("p" * 500))

    picture = stage.picture(width)

    assert max(map(len, picture)) <= width


def test_what_a_step_said_goes_with_the_step() -> None:
    """Progress that stays below the next step looks as if it came from that one."""
    stage = Stage()
    stage.record(started())
    stage.view.notice(Progress("one", "draft", "", "nothing has changed"))
    during = stage.picture()

    stage.record(ev.StepFinished(Outcome.OK, "draft/ok", "judge", {}, 1))

    assert any("nothing has changed" in line for line in during)
    assert not any("nothing has changed" in line for line in stage.picture())


def test_many_things_at_once_are_summed_up() -> None:
    """The picture must fit a small terminal."""
    stage = Stage()
    stage.record(started(), *(ask(f"key-{number}#1") for number in range(50)))

    picture = stage.picture()

    assert len(picture) < 15
    assert any("and 44 more" in line for line in picture)


def test_what_a_model_says_cannot_take_over_the_terminal() -> None:
    """Streamed output comes from outside."""
    stage = Stage()
    stage.record(started(), ask("ask#1"))
    stage.view.notice(Progress("one", "draft", "ask#1", "\x1b[2J\x1b[Hgotcha [bold]x[/bold]"))

    picture = "\n".join(stage.picture())

    assert "\x1b" not in picture
    assert "gotcha [bold]x[/bold]" in picture


def test_stopping_is_said_at_once() -> None:
    """After ctrl-c, users need to see that it was noticed."""
    stage = Stage()
    stage.record(started())

    stage.view.stopping()

    assert "stopping; ctrl-c again quits at once" in stage.picture()[-1]


class Screen(io.StringIO):
    """A terminal that supports the few control codes of a live view."""

    _CODES = re.compile(
        r"\x1b\[(?P<number>\d*)(?P<code>[A-Za-z])|\x1b\[\?25[hl]|\r|\n|[^\x1b\r\n]+"
    )

    def lines(self) -> list[str]:
        """Returns what the screen shows in the end."""
        rows, row = [""], 0
        for found in self._CODES.finditer(self.getvalue()):
            match found["code"], found[0]:
                case "A", _:
                    row -= int(found["number"] or 1)
                case "K", _:
                    rows[row] = ""
                case None, "\n":
                    row += 1
                    rows += [""] * (row + 1 - len(rows))
                case None, "\r":
                    pass
                case None, text if not text.startswith("\x1b"):
                    rows[row] += text
        return [line.rstrip() for line in rows]


def test_lines_that_stay_are_never_mixed_with_the_picture() -> None:
    """If two threads draw at once, a fragment stays on the screen and a line is lost."""
    screen = Screen()
    console = Console(file=screen, width=80, force_terminal=True, color_system=None)
    visits = range(2, 402)

    with LiveView(FLOW, console=console) as view:
        view.notice(Recorded("one", [started()]))
        for _ in visits:
            view.notice(Recorded("one", [ev.StepFinished(Outcome.OK, "draft/ok", "draft")]))

    shown = [line[10:] for line in screen.lines() if line]
    assert shown[:2] == ["workflow review started", "draft: begins"]
    assert shown[2:] == ["draft: ok in 0.0s", "draft: begins again"] * len(visits)


class Review:
    """Follows a review of which each event reports one thing."""

    history = ReviewHistory()

    def __init__(self, *news: ReviewNews) -> None:
        self._news = list(news)

    def apply(self, _event: ev.Event) -> list[ReviewNews]:
        return [self._news.pop(0)] if self._news else []


def test_findings_and_changes_are_shown_as_they_arrive() -> None:
    """People watch what critics find, not only that they work."""
    before, after = (
        Version(n, 1, "fix", "refine", {"": text}, labels={"\n@@ -1 +1 @@": ("a",)})
        for n, text in ((1, "The see\n"), (2, "The sea\n"))
    )
    issues = ({"severity": "HIGH", "finding": "Misspelt\x1b[31m."},)
    stage = Stage()
    stage.view = LiveView(
        FLOW,
        console=Console(file=stage.file, width=80, force_terminal=False),
        clock=stage.clock,
        open_review=lambda _run: Review(
            IssuesReported("clear", "claude", issues, ("sea.md:3",)),
            IssuesReported("calm", "claude", ()),
            IssuesReported("short", "gemini", (), usable=False),
            Judgment(1, "judge", "policy", "REWRITE", to_fix=("a",)),
            ArtifactChanged("fix", 1, before, after),
        ),
    )

    stage.record(started(), *(ask(f"draft#{n}") for n in range(4)))

    started_and_begun = slice(1, 3)
    lines = stage.stayed()
    del lines[started_and_begun]
    assert lines == [
        "HIGH clear sea.md:3: Misspelt.",
        "calm: passed by claude",
        "short: no usable review by gemini",
        "policy: asks for changes, 1 to fix",
        "changed by exact edits: +1 -1, answers 1 finding",
    ]


def test_streamed_words_are_shown_as_the_tail_of_a_sentence() -> None:
    """Models send single words."""
    stage = Stage()
    stage.record(started(), ask("draft#1"))

    for word in ("The ", "sea ", "is ", "wide"):
        stage.view.notice(Progress("one", "draft", "draft#1", word))

    assert "The sea is wide" in [line.strip() for line in stage.picture()]


def tail_of(*pieces: str) -> StreamTail:
    tail = StreamTail()
    for piece in pieces:
        tail.add(piece)
    return tail


def test_pieces_are_joined_and_cut_between_words() -> None:
    """A model sends single words, and half words."""
    tail = tail_of(*(f"word{n} of a long sen" + "tence, " for n in range(40)))

    shown = tail.shown(40)

    assert shown.startswith("… ")
    assert shown.endswith("word39 of a long sentence,")
    assert len(shown) <= 40
    assert shown[2:].split()[0] in ("of", "a", "long", "sentence,", "word38", "word39")


def test_an_answer_for_programs_is_only_counted() -> None:
    """Raw JSON is noise; that it grows is news."""
    assert tail_of(" {", '"a": 1').shown(60) == "writing its answer, 8 characters so far"
    assert "10 characters" in tail_of("```json\n{}").shown(60)
