"""Values are never rendered: not by the template they are inserted into, nor later."""

from hypothesis import given
from hypothesis import strategies as st

from signoff.documents.templates import fill
from tests.template_text import render_text

NAMES = ("A", "B")
KEPT = ("PLAN", "CODE")

PARTS = st.sampled_from(
    ["{{", "}}", "{", "}", "=", "A", "B", "PLAN", "CODE", "#if ", "#unless ", "/if", "/unless"]
    + [f"{{{{{form}{name}}}}}" for form in ("", "=", "#if ") for name in ("A", "PLAN")]
    + ["{{/if}}", "{{=/if}}", " ", "\n", "x"]
)
TEXTS = st.lists(PARTS, max_size=12).map("".join)
VALUES = st.fixed_dictionaries(dict.fromkeys(NAMES, TEXTS))
LATER = st.fixed_dictionaries(dict.fromkeys(KEPT, TEXTS))


def block(body: str, name: str, kind: str) -> str:
    return f"{{{{#{kind} {name}}}}}{body}{{{{/{kind}}}}}"


LEAVES = st.sampled_from(
    [f"{{{{{name}}}}}" for name in (*NAMES, *KEPT)]
    + ["{{=PLAN}}", "{{=A}}", "{{=#if PLAN}}", "{", "}", "\n", "text "]
)
TEMPLATES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4).map("".join)
        | st.builds(block, inner, st.sampled_from(NAMES + KEPT), st.sampled_from(["if", "unless"]))
    ),
    max_leaves=15,
)


@given(TEXTS)
def test_a_value_is_inserted_as_it_is(value: str) -> None:
    """The author of a value must not control the template."""
    assert render_text("<{{A}}>", {"A": value, "B": "b"}) == f"<{value}>"


@given(TEMPLATES, VALUES, LATER)
def test_two_steps_give_the_same_text_as_one(
    template: str, values: dict[str, str], later: dict[str, str]
) -> None:
    """Nothing that the first step inserts is taken for a tag by the second."""
    at_once = render_text(template, values | later)

    assert fill(render_text(template, values, KEPT), later) == at_once


@given(TEXTS, st.integers(0, 60), LATER)
def test_a_tag_that_arises_where_two_values_meet_is_not_rendered(
    text: str, cut: int, later: dict[str, str]
) -> None:
    """Neither value contains it, so checking each value would miss it."""
    values = {"A": text[:cut], "B": text[cut:]}

    kept = render_text("{{A}}{{B}}", values, KEPT)

    assert fill(kept, later) == text
