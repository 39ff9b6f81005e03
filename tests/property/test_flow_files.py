import contextlib
import copy
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from signoff.core.errors import InvalidWorkflow, Problem
from signoff.documents.yaml_text import read_yaml
from signoff.review.flow.model import config_from_json, config_to_json
from signoff.review.flow.reading import config_from_dict

FLOWS = [
    YAML(typ="safe").load(path)
    for path in sorted((Path(__file__).parents[1] / "fixtures" / "flows").glob("*.yaml"))
]
KEYS = st.sampled_from("step name agent loop_to mode goal workflow constraints rules x".split())
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
YAML_SIGNS = st.lists(
    st.sampled_from(["a", ": ", "- ", "\n", "  ", "[", "]", "{", "}", "&a ", "*a", "|", "'", "\t"]),
    max_size=40,
).map("".join)


@settings(max_examples=150)
@given(flow=st.sampled_from(FLOWS), data=st.data())
def test_a_flow_with_any_value_at_any_key_is_read_or_refused(
    flow: dict[str, Any], data: st.DataObject
) -> None:
    """Every file gives a flow or a list of problems, never a traceback."""
    changed = copy.deepcopy(flow)
    places = list(holders(changed))
    for holder, key in data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=3)):
        holder[key] = data.draw(VALUES)

    with contextlib.suppress(InvalidWorkflow):
        config = config_from_dict(changed)
        assert config_from_json(config_to_json(config)) == config


@settings(max_examples=150)
@given(text=YAML_SIGNS)
def test_any_text_is_a_document_or_one_problem(text: str) -> None:
    """A file that cannot be read is named, with its line where there is one."""
    problems: list[Problem] = []

    document = read_yaml(text, "file.yaml", problems)

    assert (document is None) == (len(problems) == 1)
    assert all(problem.where.startswith("file.yaml") for problem in problems)


def holders(node: Any) -> Any:
    """Yields every container of a value with each of its keys."""
    keys = node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield node, key
        yield from holders(node[key])
