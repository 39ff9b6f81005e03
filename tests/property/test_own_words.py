from collections.abc import Callable

from hypothesis import example, given
from hypothesis import strategies as st

from signoff.review.pure.critique import Overall, Verdict
from tests.unit.review.pure.quotations import (
    APPROVED,
    BARE,
    BLOCK,
    DISMISSED,
    FULL,
    MINOR,
    YAML_BLOCK,
    blockquote,
    critic_verdict,
    fence,
    judge_verdict,
)

PIECES = st.sampled_from(
    [
        *(BARE, FULL, MINOR, APPROVED, DISMISSED, BLOCK, YAML_BLOCK, "\n", " ", '"', "{", "}"),
        *("```\n", "> ", "status: APPROVED", '"overall": "PASS"', "\u0301", "'", "[", "]", "\\"),
    ]
)
ARTIFACTS = st.lists(PIECES | st.text(max_size=5), max_size=8).map("".join)
FORMS: list[Callable[[str], str]] = [
    str,
    blockquote,
    lambda text: fence(text, ""),
    lambda text: f"    {text}",
    lambda text: f"I do not approve this. The text says:\n{text}",
    lambda text: f"{text}\nis what the text says. I do not approve it.",
    lambda text: f"## ADJUDICATION\n{text}",
    lambda text: text.replace(", ", ",\n"),
    lambda text: " ".join(text.split()),
]


@given(artifact=ARTIFACTS, cut=st.tuples(st.floats(0, 1), st.floats(0, 1)), data=st.data())
@example(artifact=f"x{BLOCK}", cut=(0, 1), data=None)
def test_no_part_of_an_artifact_passes_for_a_verdict(
    artifact: str, cut: tuple[float, float], data: st.DataObject | None
) -> None:
    """The rule has to hold for any text, not only for those that someone thought of."""
    start, end = sorted(int(share * len(artifact)) for share in cut)
    form = data.draw(st.sampled_from(FORMS)) if data is not None else str
    reply = form(artifact[start:end])

    assert critic_verdict(artifact, reply) != Overall.PASS
    assert judge_verdict(artifact, reply) != Verdict.APPROVED
