from hypothesis import given
from hypothesis import strategies as st

from signoff.review.pure import work_order

# Parts of a work order, and characters that some programs treat as line ends.
PIECES = st.sampled_from(
    ["```", "````\n", "~~~", "\n", "\r", "\u2028", "\f", " ", "Issue: evil (HIGH)\n", "Find:", "a"]
) | st.sampled_from(
    ["Replace: `b`\n", "Anchor:\n", "Insert:", "Delete\n", "## Dismissed\n", "> ", "\0", "\ud800"]
)
LITERAL = st.one_of(st.text(), st.lists(PIECES, max_size=12).map("".join))
IDS = st.from_regex(r"[a-z][a-z0-9_.-]{0,10}[a-z0-9]", fullmatch=True)


@st.composite
def edits(draw: st.DrawFn) -> work_order.Edit:
    kind = draw(st.sampled_from(work_order.EditKind))
    text = "" if kind is work_order.EditKind.DELETE else draw(LITERAL)
    return work_order.Edit(kind, draw(LITERAL.filter(bool)), text, draw(IDS))


NOTES = st.lists(st.tuples(IDS, st.sampled_from(["HIGH", "LOW"]), LITERAL), max_size=3)


@given(expected=st.lists(edits(), max_size=4), notes=NOTES)
def test_a_work_order_returns_exactly_the_edits_it_was_built_from(
    expected: list[work_order.Edit], notes: list[tuple[str, str, str]]
) -> None:
    """Text of an artifact that looks like a work order must not cause changes."""
    assert work_order.parse_work_order(work_order.format_work_order(expected, notes)) == expected


@given(text=LITERAL)
def test_any_text_can_be_parsed_as_a_work_order(text: str) -> None:
    """Judges may write anything; only edits whose text is found are applied."""
    assert all(edit.find for edit in work_order.parse_work_order(text))


PLACES = st.lists(st.text("abc", min_size=1, max_size=3), max_size=4)


@given(text=st.text("abc", max_size=12), finds=PLACES)
def test_edits_change_only_the_places_they_name(text: str, finds: list[str]) -> None:
    """Every edit is applied or reported, and nothing else changes."""
    edits_to_apply = [
        work_order.Edit(work_order.EditKind.REPLACE, find, f"<{find}>") for find in finds
    ]

    done = work_order.apply_edits(text, edits_to_apply)

    assert len(done.applied) + len(done.unmatched) == len(edits_to_apply)
    assert all(text.count(edit.find) == 1 for edit in done.applied)
    # Equal edits are applied once.
    assert done.text.count("<") == len({edit.find for edit in done.applied})
    assert done.text.replace("<", "").replace(">", "") == text
