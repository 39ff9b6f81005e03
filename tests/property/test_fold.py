from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from signoff.core import events as ev
from signoff.core.codec import decode, encode
from signoff.core.effects import EffectId, EffectKind
from signoff.core.fold import fold, state_from_json, state_to_json
from signoff.core.frozen import CHECKPOINT_DEPTH
from signoff.core.outcome import Outcome, Status
from signoff.core.run_state import RunState
from signoff.core.workflow import Workflow
from tests.property.values import json_values
from tests.property.workflows import Choose, Drive, choices, workflows

names = st.sampled_from(["a", "b", "c"])
scopes = st.sampled_from(["m#1[0]", "m#1[1]", "m#1[0]/n#1[2]"])
effects = st.builds(
    lambda scope, key: EffectId(f"{scope}/{key}#1" if scope else f"{key}#1"),
    st.sampled_from(["", "m#1[0]", "m#1[0]~2", "m#1[1]"]),
    names,
)
outcomes = st.sampled_from([o for o in Outcome if o is not Outcome.DEFAULT])
deltas = st.fixed_dictionaries(
    {},
    optional={
        "set": st.dictionaries(names, json_values(), max_size=2),
        "append": st.dictionaries(st.just("log"), st.lists(json_values(), max_size=2)),
    },
)
usages = st.none() | st.just({"tokens_in": 1, "tokens_out": 2, "usd": 0.1})
limits = st.dictionaries(st.sampled_from(["usd", "calls", "seconds"]), st.floats(0, 9))
ways = st.sampled_from(["a/ok", "a/iterate", "b/gate:yes"])
words = st.text(max_size=5)

anything_that_happens = st.one_of(
    st.builds(ev.RunResumed),
    st.builds(ev.RunStopped, st.sampled_from(Status), words, st.none() | st.floats(0, 1e9)),
    st.builds(ev.LimitsChanged, limits),
    st.builds(ev.AgentSwitched, words, words),
    st.builds(ev.ParamsCorrected, st.dictionaries(names, json_values(), max_size=2)),
    st.builds(ev.DefinitionAdopted, words),
    st.builds(ev.StepBegun),
    st.builds(ev.StepWorked, outcomes, deltas),
    st.builds(ev.AttemptFailed, words),
    st.builds(ev.Escalated, words, ways, st.none() | outcomes, deltas),
    st.builds(ev.AttemptOpened, words),
    st.builds(ev.AttemptReplaced),
    st.builds(ev.LimitLifted, ways | st.just(ev.ROUNDS)),
    st.builds(
        ev.StepFinished,
        outcomes,
        ways,
        st.none() | names,
        deltas,
        st.integers(1, 9),
        st.booleans(),
        st.lists(ways, max_size=2).map(tuple),
        st.none() | words,
    ),
    st.builds(
        ev.EffectStarted, effects, st.sampled_from(EffectKind), words, attempt=st.integers(1, 2)
    ),
    st.builds(ev.EffectRunning, effects, st.just({"pid": 1})),
    st.builds(ev.EffectAttemptFailed, effects, st.just({"type": "AgentTransient"}), usages),
    st.builds(
        ev.EffectFinished,
        effects,
        json_values(),
        st.none() | st.just({"type": "AgentError"}),
        usages,
    ),
    st.builds(ev.ItemFinished, scopes, json_values()),
    st.builds(ev.Logged, words, scopes | st.just("")),
    st.builds(ev.ItemFailed, scopes, words, st.booleans()),
)


@st.composite
def journals(draw: st.DrawFn) -> list[ev.Event]:
    """Any sequence of events, even one that no runner would write."""
    params = draw(st.dictionaries(names, json_values(), max_size=2))
    started = ev.RunStarted("flow", "digest", "a", params, draw(limits), "seed")
    journal: list[ev.Event] = [started, *draw(st.lists(anything_that_happens, max_size=25))]
    for event in journal:
        event.at = draw(st.floats(0, 1e9))
    return journal


def stored_and_read(events: list[ev.Event]) -> list[ev.Event]:
    blobs: dict[str, str] = {}
    text = encode([ev.to_json(event) for event in events], blobs)
    return [ev.from_json(data) for data in decode(text, blobs.__getitem__)]


def checkpointed(state: RunState) -> RunState:
    blobs: dict[str, str] = {}
    text = encode(state_to_json(state), blobs, CHECKPOINT_DEPTH)
    return state_from_json(decode(text, blobs.__getitem__))


def test_every_kind_of_event_can_happen_here() -> None:
    """A kind left out would go untested."""
    seen = {"run_started"}

    @settings(max_examples=300, database=None)
    @given(anything_that_happens)
    def look(event: ev.Event) -> None:
        seen.add(event.tag)

    look()
    assert seen == set(ev.KINDS)


@settings(max_examples=150)
@given(journals(), st.data())
def test_a_run_resumed_after_any_event_has_the_same_state(
    journal: list[ev.Event], data: st.DataObject
) -> None:
    """From the whole journal, or from a checkpoint and the rest of it."""
    cut = data.draw(st.integers(0, len(journal)))
    whole = fold(journal)

    assert fold(journal[cut:], fold(journal[:cut])) == whole
    assert fold(stored_and_read(journal)) == whole
    assert checkpointed(whole) == whole
    assert fold(stored_and_read(journal[cut:]), checkpointed(fold(journal[:cut]))) == whole


@settings(max_examples=300)
@given(workflows(), choices(), st.data())
def test_a_run_driven_by_the_rules_can_be_resumed_after_any_event(
    workflow: Workflow, choose: Choose, data: st.DataObject
) -> None:
    """The same, for journals that the transition rules produced."""
    drive = Drive(workflow, choose)
    for _ in drive.steps():
        pass
    cut = data.draw(st.integers(0, len(drive.events)))

    taken_up = fold(stored_and_read(drive.events[cut:]), checkpointed(fold(drive.events[:cut])))

    assert taken_up == drive.state


@settings(max_examples=50)
@given(journals())
def test_folding_changes_no_event(journal: list[ev.Event]) -> None:
    """Observers and writers still use them."""
    before: list[dict[str, Any]] = [ev.to_json(event) for event in journal]
    texts = [encode(data, {}) for data in before]

    fold(journal)

    assert [encode(ev.to_json(event), {}) for event in journal] == texts
