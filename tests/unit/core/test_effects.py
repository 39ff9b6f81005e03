import json

import pytest

from signoff.core.effects import AgentRequest, Reply, scope_of
from signoff.core.spend import Usage


@pytest.mark.parametrize(
    ("identity", "scope"),
    [
        ("ask#1", ""),
        ("write:a/b.md#1", ""),
        ("!gate#1", ""),
        ("critics#1[3]/ask#1", "critics#1[3]"),
        ("critics#1[3]~2/ask#1", "critics#1[3]~2"),
        ("critics#1[3]/sub#1[0]/write:a/b#2", "critics#1[3]/sub#1[0]"),
        ("critics#1[3]/sub#1", "critics#1[3]"),
    ],
)
def test_an_effect_knows_the_item_it_belongs_to(identity: str, scope: str) -> None:
    """When an item is done, exactly its own effects are forgotten."""
    assert scope_of(identity) == scope


def test_a_request_holds_only_what_was_asked() -> None:
    """A setting added later must not change what an old request was."""
    assert AgentRequest("hi").to_json() == {"prompt": "hi"}
    assert AgentRequest("").to_json() == {"prompt": ""}
    assert AgentRequest("hi", model="m", edit=True, options={"t": 1}).to_json() == {
        "prompt": "hi",
        "model": "m",
        "edit": True,
        "options": {"t": 1},
    }


@pytest.mark.parametrize(
    "reply",
    [
        Reply("hi"),
        Reply(""),
        Reply("{}", value={}),
        Reply("[]", value=[]),
        Reply("false", value=False),
        Reply("0", value=0),
        Reply("x", {"a": 1}, Usage(1, 2, 0.5, "m"), "s", "stop", {"a.py": "changed"}, "claude"),
        Reply("x", usage=Usage()),
    ],
    ids=range(8),
)
def test_a_stored_reply_comes_back_the_same(reply: Reply) -> None:
    """A replayed handler that gets another reply than before may take another path."""
    stored = json.loads(json.dumps(reply.to_json()))

    assert Reply.from_json(stored) == reply


def test_a_short_reply_is_stored_short() -> None:
    """Most replies are a text and nothing else."""
    assert Reply("hi").to_json() == {"text": "hi"}
