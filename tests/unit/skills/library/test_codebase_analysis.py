import pytest

from signoff.skills.library.codebase_analysis import WHOLE, WORKFLOW


@pytest.mark.parametrize(
    ("params", "following", "areas"),
    [
        ({}, "divide", [WHOLE]),
        ({"areas": "store, engine"}, "explore", ["store", "engine"]),
        ({"areas": ["store"]}, "explore", ["store"]),
        ({"areas": " , "}, "divide", [WHOLE]),
        ({"iteration": 5}, "explore", [WHOLE]),
    ],
)
def test_the_areas_are_kept_for_the_sub_agents(
    params: dict[str, object], following: str, areas: list[str]
) -> None:
    """Each of them is read; without any, everything is."""
    output = WORKFLOW.run("divide", params)

    assert (output.next, output.state["areas"]) == (following, areas)


def test_confidence_in_the_answers_ends_the_reading() -> None:
    """The map is checked only once it is complete."""
    assert WORKFLOW.run("deepen", confidence="low").next == "deepen"
    assert WORKFLOW.run("deepen", confidence="high").next == "verify"
