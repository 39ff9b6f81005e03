"""Strict comparisons are rewritten by token, so string literals are unchanged."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from signoff.contracts.expressions import BadExpression, Expression, plain_cel
from signoff.core.errors import StepFailed

TEXTS = st.text(alphabet="=!ab \\'\"\n", max_size=12).map(
    lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
)
RAW = st.text(alphabet="=!ab \\", max_size=8).map(lambda text: f"r'{text}'")
OTHERS = st.sampled_from([" == ", " != ", " && ", "a", "(", ")", "1", ">=", "!", " "])
CHARACTERS = "result.a123 ()[]{}<>=!&|?:+-*/%,'\"\\nu"
STRICT = {"===": "==", "!==": "!="}


@given(st.lists(TEXTS | RAW | OTHERS | st.sampled_from(sorted(STRICT)), max_size=12))
def test_only_comparisons_outside_of_texts_are_rewritten(tokens: list[str]) -> None:
    """A condition on the text `a === b` would otherwise never hold."""
    # Spaces keep adjacent parts from forming one token.
    written = " ".join(tokens)

    assert plain_cel(written) == " ".join(STRICT.get(token, token) for token in tokens)


@given(st.text(max_size=60) | st.text(alphabet=CHARACTERS, max_size=40))
def test_any_text_is_an_expression_or_is_refused(text: str) -> None:
    """Every input gives a value, or an error for the worker or for the author."""
    values = {"result": {"a": 1}, "ctx": {}, "params": {}, "checkpoint": {}}

    with suppress(BadExpression, StepFailed):
        assert Expression(text).holds(values) in (True, False)
