"""Whatever steps return, in whatever order, no step speaks for another."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.contracts.checkpoint import RESERVED, AmbiguousName, named_update, result_names
from signoff.contracts.model import WorkflowStep

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {}, "b": {}}}
STEPS = {
    "code": WorkflowStep("code", command=["true"]),
    "more": WorkflowStep("more", command=["true"]),
    "strict": WorkflowStep("strict", prompt="p", schema=SCHEMA),
    "free": WorkflowStep("free", prompt="p"),
    "loose": WorkflowStep("loose", prompt="p"),
}
WORKERS = {"free", "loose"}
"""Steps whose keys the author did not declare."""

KEYS = st.sampled_from(
    ["a", "b", "c", "param", "results", "completedSteps", "_owners", "__proto__"]
)
RESULTS = st.lists(
    st.tuples(st.sampled_from(sorted(STEPS)), st.dictionaries(KEYS, st.integers(), max_size=4)),
    max_size=8,
)


@given(RESULTS)
def test_a_bare_name_is_the_latest_value_of_its_only_owner_or_cannot_be_read(
    results: list[tuple[str, dict[str, Any]]],
) -> None:
    """A worker neither replaces nor hides what another step returned."""
    state: dict[str, Any] = {}
    returned: dict[str, dict[str, int]] = {}
    for step, result in results:
        state |= named_update(state, {step: result}, STEPS, {"param"})
        for key, value in result.items():
            if step != "strict" or key in SCHEMA["properties"]:
                returned.setdefault(key, {})[step] = value
    names = result_names(state)

    for key, values in returned.items():
        if key in RESERVED or key == "param" or key.startswith("_"):
            assert key not in names
            continue
        declared = {step: value for step, value in values.items() if step not in WORKERS}
        owners = declared or values
        if len(owners) == 1:
            assert [names[key]] == list(owners.values())
        else:
            with pytest.raises(AmbiguousName):
                names[key]
    assert set(names) <= returned.keys()
