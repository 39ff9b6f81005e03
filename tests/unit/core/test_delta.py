from typing import Any

import pytest

from signoff.core.delta import Append, Revision, apply, diff
from signoff.core.errors import BadHandlerResult, NotSerialisable
from signoff.core.frozen import FrozenList, freeze


def test_only_what_changed_is_recorded() -> None:
    """A constant 20 KB artifact would otherwise be written again by every step."""
    state = freeze({"artifact": "long text", "n": 1})

    delta = diff(state, {**state, "n": 2})

    assert delta == {"set": {"n": 2}}


def test_an_update_that_changes_nothing_records_nothing() -> None:
    """An empty delta costs no bytes in the journal."""
    state = freeze({"a": None, "log": [1]})

    assert diff(state, {}) == {}
    assert diff(state, {"a": None, "log": [1]}) == {}


def test_a_list_that_grew_records_its_tail_only() -> None:
    """A growing log would make every step more expensive than the one before."""
    state = freeze({"log": ["a", {"deep": [1]}]})

    delta = diff(state, {"log": [*state["log"], "b", "c"]})

    assert delta == {"append": {"log": ["b", "c"]}}
    assert apply(state, delta) == {"log": ["a", {"deep": [1]}, "b", "c"]}


def test_append_adds_without_reading_the_list() -> None:
    """A step that only logs need not know the log."""
    state = freeze({"log": ["a"]})

    delta = diff(state, {"log": Append(["b"]), "fresh": Append(["c"])})

    assert delta == {"append": {"log": ["b"], "fresh": ["c"]}}
    assert apply(state, delta) == {"log": ["a", "b"], "fresh": ["c"]}


def test_appending_to_something_else_than_a_list_is_refused() -> None:
    """Otherwise the old value would silently be lost."""
    with pytest.raises(BadHandlerResult, match="'log' is not a list"):
        diff(freeze({"log": "text"}), {"log": Append(["b"])})


def test_two_keys_holding_one_list_grow_apart() -> None:
    """`{"kept": ctx.step_state["log"]}` keeps the log as it is now, not as it will be."""
    state = freeze({"log": ["a"]})
    state = apply(state, diff(state, {"kept": state["log"], "boxed": {"log": state["log"]}}))

    after = apply(state, diff(state, {"log": Append(["b"])}))

    assert after == {"log": ["a", "b"], "kept": ["a"], "boxed": {"log": ["a"]}}


def test_a_recorded_delta_does_not_follow_the_handlers_own_list() -> None:
    """A handler that keeps one list and grows it would rewrite events not yet on disk."""
    mine = ["a"]
    delta = diff(freeze({}), {"log": mine, "more": Append(mine)})

    mine.append("b")

    assert delta == {"set": {"log": ["a"]}, "append": {"more": ["a"]}}


def test_a_value_that_cannot_be_stored_is_named_by_its_key() -> None:
    """The author has to find it among everything the handler returned."""
    with pytest.raises(NotSerialisable, match=r"state 'found': this set cannot be stored"):
        diff(freeze({}), {"fine": 1, "found": {1, 2}})


LEDGER = {"round": 1, "entries": [{"id": "a", "n": 1}, {"id": "b"}, {"id": "c"}]}


def test_a_revision_records_the_items_that_changed() -> None:
    """A review with 500 findings would otherwise store all of them after every step."""
    state = freeze({"findings": LEDGER})
    entries = [{"id": "a", "n": 1}, {"id": "b", "fixed": True}, {"id": "c"}, {"id": "d"}]

    delta = diff(state, {"findings": Revision(round=2, entries=entries)})

    assert delta == {
        "revise": {
            "findings": {
                "set": {"round": 2},
                "append": {"entries": [{"id": "d"}]},
                "items": {"entries": [[1, {"id": "b", "fixed": True}]]},
            }
        }
    }
    after = apply(state, delta)
    assert after == {"findings": {"round": 2, "entries": entries}}
    assert after["findings"]["entries"][0] is state["findings"]["entries"][0]
    assert isinstance(after["findings"]["entries"], FrozenList)


def test_a_revision_without_a_change_records_nothing() -> None:
    """Most steps change no finding."""
    assert diff(freeze({"findings": LEDGER}), {"findings": Revision(LEDGER)}) == {}


@pytest.mark.parametrize(
    "new",
    [
        {"round": 1, "entries": []},
        {"round": 1, "entries": [{"id": "x"}, {"id": "y"}, {"id": "c"}]},
        {"round": True, "entries": [{"id": "a", "n": 1.0}, {"id": "b"}, {"id": "c"}]},
        {"round": 1, "entries": "none"},
        {"entries": LEDGER["entries"]},
        {**LEDGER, "more": [1]},
    ],
)
def test_a_revision_gives_the_same_state_as_the_whole_value(new: dict[str, Any]) -> None:
    """How a value is stored must never change it, not even the type of a number."""
    state = freeze({"findings": LEDGER})

    revised = apply(state, diff(state, {"findings": Revision(new)}))

    assert repr(revised) == repr(apply(state, diff(state, {"findings": new})))
    assert apply(freeze({}), diff(freeze({}), {"findings": Revision(new)})) == {"findings": new}
