import json

from hypothesis import given
from hypothesis import strategies as st

from signoff.review.pure.critique import Adjudication, Critique, Overall, Verdict
from signoff.review.pure.parsing import Unreadable, parse_adjudication, parse_critique

PIECES = (
    st.sampled_from(
        [
            '{"overall": "PASS"',
            '"issues": [',
            "]",
            "}",
            "{",
            ",",
            ":",
            '"',
            "```json\n",
            "\n",
            "PASS",
        ]
    )
    | st.sampled_from(
        [
            "=== ADJUDICATION ===\n",
            "=== BILL_OF_WORK ===\n",
            '{"status": "APPROVED"}',
            "status: ",
            "\\",
        ]
    )
    | st.sampled_from(
        ["APPROVED", "null", "\0", "\ud800", "- ", "&a *a", "! ", '"finding": "x"', "decisions:\n"]
    )
)
REPLIES = st.one_of(st.text(), st.lists(PIECES, max_size=15).map("".join))
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
FIELDS = st.sampled_from(
    "overall issues status decisions id severity finding evidence edit confidence summary "
    "approved_sections issue_id flagged_by bill_of_work tension_analysis suggested_fix".split()
)
ITEMS = st.lists(st.dictionaries(FIELDS, VALUES, max_size=4), max_size=3)
OBJECTS = st.dictionaries(FIELDS, VALUES | ITEMS, max_size=5)


def critique(text: str) -> Critique | None:
    try:
        return parse_critique(text, constraint_id="c", reviewer="r", iteration=1)
    except Unreadable:
        return None


def adjudication(text: str) -> Adjudication | None:
    try:
        return parse_adjudication(text, iteration=1)
    except Unreadable:
        return None


@given(text=REPLIES | OBJECTS.map(json.dumps))
def test_any_reply_is_a_critique_that_can_be_stored_or_unreadable(text: str) -> None:
    """No reply may break a run, and only an explicit pass is a pass."""
    read = critique(text)

    if read is not None:
        assert Critique.from_json(json.loads(json.dumps(read.to_json(), allow_nan=False))) == read
        assert len({issue.id for issue in read.issues}) == len(read.issues)
        assert read.overall is not Overall.PASS or "pass" in text.lower()


@given(text=REPLIES | OBJECTS.map(json.dumps))
def test_any_reply_is_an_adjudication_that_can_be_stored_or_unreadable(text: str) -> None:
    """No reply may break a run, and only an explicit approval is one."""
    read = adjudication(text)

    if read is not None:
        stored = json.loads(json.dumps(read.to_json(), allow_nan=False))
        assert Adjudication.from_json(stored) == read
        assert read.status is not Verdict.APPROVED or "approved" in text.lower()


@given(value=OBJECTS, cut=st.floats(0, 1, exclude_max=True), fence=st.booleans())
def test_no_part_of_an_answer_is_an_answer(
    value: dict[str, object], cut: float, fence: bool
) -> None:
    """A connection that breaks must not turn a fail into a pass."""
    whole = json.dumps(value)
    half = whole[: int(len(whole) * cut)]
    text = f"```json\n{half}" if fence else half

    assert critique(text) is None
    if "{" in text:
        assert adjudication(text) is None
