import json
from pathlib import Path

import pytest

from signoff.review.flow.model import GenflowConfig, config_from_json, config_to_json
from signoff.review.flow.reading import config_from_dict, read_flow_file

FLOWS = sorted((Path(__file__).parents[3] / "fixtures" / "flows").glob("*.yaml"))


@pytest.mark.parametrize("path", FLOWS, ids=lambda path: path.stem)
def test_a_flow_is_read_back_as_it_was(path: Path) -> None:
    """A finished run is explained by its own policy."""
    config = read_flow_file(path)

    stored = json.loads(json.dumps(config_to_json(config), sort_keys=True))

    assert config_from_json(stored) == config


def test_equal_flows_have_equal_data() -> None:
    """A comment or an explicit default must not prevent a resume."""
    short = config_from_dict({"workflow": [{"step": "generate"}]})
    long = config_from_dict(
        {
            "output": {"filename": "artifact.md"},
            "max_iterations": 3,
            "workflow": [{"step": "generate", "model": None}],
        }
    )

    assert config_to_json(short) == config_to_json(long)


def test_the_order_of_patterns_is_part_of_a_flow() -> None:
    """The first pattern that matches decides, also after the keys were sorted."""

    def flow(*patterns: str) -> GenflowConfig:
        behaviors = {pattern: {"low": "halt"} for pattern in patterns}
        return config_from_dict(
            {"workflow": [{"step": "generate"}], "constraint_behaviors": behaviors}
        )

    stored = json.loads(json.dumps(config_to_json(flow("z*", "a*")), sort_keys=True))

    assert list(config_from_json(stored).constraint_behaviors) == ["z*", "a*"]
    assert config_to_json(flow("z*", "a*")) != config_to_json(flow("a*", "z*"))
