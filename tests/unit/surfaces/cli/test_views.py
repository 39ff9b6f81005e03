import io
import re

from signoff.core import events as ev
from signoff.core.effects import EffectId, EffectKind
from signoff.core.outcome import Status
from signoff.core.stop_reason import StepDecided
from signoff.runtime.ports import Progress, Recorded, Retrying
from signoff.surfaces.cli.views import PlainView, View
from signoff.views.timeline import Timeline

STARTED = ev.RunStarted("review", "d", "draft", {}, at=0)
ASKED = ev.EffectStarted(EffectId("ask#1"), EffectKind.ASK, "d", {"agent": "claude"}, at=1)


def lines_of(stream: io.StringIO) -> list[str]:
    return [re.sub(r"^\d\d:\d\d:\d\d  ", "", line) for line in stream.getvalue().splitlines()]


def test_a_run_is_told_line_by_line_with_the_time() -> None:
    """The log of a build server is all that users have the next morning."""
    stream = io.StringIO()
    view = PlainView(stream=stream)

    with view:
        view.notice(Recorded("one", [STARTED, ASKED]))
        view.notice(Recorded("one", [ev.RunStopped.because(Status.FAILED, StepDecided("no luck"))]))

    assert re.match(r"\d\d:\d\d:\d\d  ", stream.getvalue())
    assert lines_of(stream) == ["workflow review started", "draft: begins", "failed: no luck"]


def test_an_answer_for_programs_is_not_streamed() -> None:
    """Half a JSON document tells no one anything."""
    stream = io.StringIO()
    view = PlainView(verbose=True, stream=stream)

    view.notice(Recorded("one", [STARTED, ASKED]))
    view.notice(Progress("one", "draft", "ask#1", '{"overall":\n"PASS",\n'))

    assert lines_of(stream)[2:] == ["draft: asks claude"]


def test_a_pause_names_who_is_waited_for() -> None:
    """`ask#1` is the engine's name for it, not the user's."""
    stream = io.StringIO()
    view = PlainView(stream=stream)
    view.notice(Recorded("one", [STARTED, ASKED]))

    view.notice(Retrying("one", "ask#1", "overloaded", 2.0))

    assert lines_of(stream)[-1] == "claude: overloaded; again in 2.0s"


def test_a_resumed_run_is_told_with_what_was_known_before() -> None:
    """Without its history, the first lines would name no step."""
    stream = io.StringIO()
    stopped = ev.RunStopped(Status.INTERRUPTED, at=4)
    view = PlainView({"one": Timeline().follow([STARTED, stopped])}, stream=stream)

    view.notice(Recorded("one", [ev.RunResumed(at=5)]))

    assert lines_of(stream) == ["resumed at draft"]


def test_a_quiet_view_says_nothing_and_knows_the_story() -> None:
    """Ctrl-C still has to find the runs to stop, and the summary what to report."""
    view = View()

    call = ev.EffectStarted(EffectId("a#1"), EffectKind.ASK, "d", {"agent": "claude"}, at=1)
    at_work = ev.EffectRunning(EffectId("a#1"), {"pid": 7}, at=1)
    view.notice(Recorded("one", [STARTED, call, at_work]))

    assert view.timelines["one"].processes == {"a#1": 7}
