import pytest

from signoff.runtime.sub_agents import BYTES_PER_TOKEN, RETURN_TOKENS, cut_return

MOST = RETURN_TOKENS * BYTES_PER_TOKEN


@pytest.mark.parametrize("text", ["", "short", "x" * MOST, "é" * (MOST // 2), "a\n" * (MOST // 2)])
def test_a_return_within_the_budget_is_unchanged(text: str) -> None:
    """Bytes are counted, four to a token."""
    assert cut_return(text) == text


def test_a_longer_return_is_cut_between_lines_and_marked() -> None:
    """Half a line could state the opposite of the whole."""
    lines = [f"line {number} of the report" for number in range(1_000)]

    cut = cut_return("\n".join(lines)).split("\n")

    assert cut[:-1] == lines[: len(cut) - 1]
    assert cut[-1].startswith(f"[cut off here: {1_000 - len(cut) + 1:,} more lines;")
    assert MOST - 100 < len("\n".join(cut)) <= MOST


@pytest.mark.parametrize("text", ["x" * (MOST + 1), "é" * MOST, "\ud800" * (MOST + 1)])
def test_one_line_that_is_too_long_keeps_its_beginning(text: str) -> None:
    """Nothing at all would be worse."""
    cut = cut_return(text)

    beginning, _, mark = cut.partition("\n")
    assert mark.startswith("[cut off here: 1 more line;")
    assert beginning
    assert len(cut.encode("utf-8", "replace")) <= MOST
