import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signoff.core.codec import BLOB_FROM, decode, encode
from signoff.core.delta import Revision, apply, diff
from signoff.core.digest import digest, text_digest
from signoff.core.errors import NotSerialisable
from signoff.core.frozen import freeze, thaw
from tests.property.values import json_values, keys

objects = st.dictionaries(keys, json_values(), max_size=4)


def exactly(value: Any) -> str:
    """Compares values with their types: `==` does not tell 1 from 1.0 and true."""
    return json.dumps(value, sort_keys=True)


@given(json_values())
def test_a_stored_value_is_returned_exactly(value: Any) -> None:
    """Even a value that looks like a stored reference."""
    blobs: dict[str, str] = {}

    text = encode(value, blobs)

    assert exactly(decode(text, blobs.__getitem__)) == exactly(value)
    assert text.encode()
    assert len(text) < 100 * BLOB_FROM
    assert all(len(blob) >= BLOB_FROM for blob in blobs.values())


@given(json_values())
def test_a_frozen_value_is_stored_as_the_value_itself(value: Any) -> None:
    """Freezing is for handlers; the journal does not know of it."""
    frozen = freeze(value)

    assert exactly(frozen) == exactly(value) == exactly(thaw(frozen))
    assert encode(frozen, {}) == encode(value, {})


@given(
    st.dictionaries(keys | st.text(), st.text() | st.text(st.characters(codec=None)))
    | json_values()
)
def test_a_digest_is_that_of_the_canonical_text(value: Any) -> None:
    """A resume compares digests, so they must not depend on how they are computed."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    assert digest(value) == text_digest(canonical)


@given(st.lists(json_values(), max_size=2), st.integers() | st.booleans() | st.none())
def test_a_key_that_is_not_a_string_is_refused_at_any_depth(beside: list[Any], key: Any) -> None:
    """It would be read back as another key."""
    value = {"outer": [*beside, {"inner": {key: 1}}]}

    for store in (freeze, lambda v: encode(v, {}), lambda v: diff(freeze({}), v)):
        with pytest.raises(NotSerialisable):
            store(value)


@st.composite
def updates(draw: st.DrawFn, state: dict[str, Any]) -> dict[str, Any]:
    """What handlers return: new values, old ones again, and lists grown in either way."""
    update = draw(objects)
    for key, old in state.items():
        same = [{}, {key: old}, {key: thaw(old)}, {key: disguised(old)}]
        update.update(draw(st.sampled_from(same)))
        if isinstance(old, list):
            grown = [*old, *draw(st.lists(json_values(), max_size=2))]
            more = [{}, {key: grown}, {key: thaw(grown)}, {key: disguised(grown)}]
            update.update(draw(st.sampled_from(more)))
        if isinstance(old, dict):
            revised = {**old, **draw(updates(old))}
            update.update(draw(st.sampled_from([{}, {key: Revision(revised)}])))
    return update


def disguised(value: Any) -> Any:
    """Values that are equal in Python but different in JSON."""
    match value:
        case bool():
            return int(value)
        case int() if abs(value) < 2**50:
            return float(value)
        case list():
            return [disguised(each) for each in value]
        case dict():
            return {key: disguised(each) for key, each in value.items()}
        case _:
            return value


@settings(max_examples=120)
@given(objects, st.data())
def test_applying_a_difference_gives_what_the_handler_returned(
    before: dict[str, Any], data: st.DataObject
) -> None:
    """Storing only what changed must change nothing else."""
    state = freeze(before)
    update = data.draw(updates(state))

    delta = diff(state, update)
    after = apply(state, delta)

    assert exactly(after) == exactly({**state, **update})
    assert exactly(state) == exactly(before)


@settings(max_examples=60)
@given(objects, st.data())
def test_a_difference_read_back_from_the_journal_does_the_same(
    before: dict[str, Any], data: st.DataObject
) -> None:
    """A resumed run sees the state its predecessor saw."""
    state = freeze(before)
    delta = diff(state, data.draw(updates(state)))
    blobs: dict[str, str] = {}

    stored = decode(encode(delta, blobs), blobs.__getitem__)

    assert exactly(apply(state, stored)) == exactly(apply(state, delta))
