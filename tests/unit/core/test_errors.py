import pytest

from signoff.core.errors import ItemsFailed, UnknownName


def test_an_unknown_name_lists_those_most_like_it_first() -> None:
    """With twenty agents configured, the one that was meant would not be listed at all."""
    agents = [*(f"reader-{n}" for n in range(20)), "claude", "codex"]

    message = str(UnknownName("agent", "claud", agents))

    assert message.startswith("unknown agent 'claud'; valid names: claude, reader-0, reader-1, ")
    assert message.endswith(" reader-10 and 10 more")


@pytest.mark.parametrize(
    ("failures", "message"),
    [
        (
            {1: "too long"},
            "1 of 2 items of 'part' failed; the others are finished. First: too long",
        ),
        ({0: "busy", 1: "busy"}, "2 of 2 items of 'part' failed. Each: busy"),
        ({0: "busy", 1: "lost"}, "2 of 2 items of 'part' failed. First: busy"),
    ],
)
def test_the_message_says_how_many_items_failed_and_why(
    failures: dict[int, str], message: str
) -> None:
    """Where all have failed there are no others, and equal reasons are one."""
    assert str(ItemsFailed("part", failures, 2)) == message
