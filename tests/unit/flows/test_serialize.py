import json
from pathlib import Path

import pytest

from signoff.flows.model import GenflowConfig
from signoff.flows.reading import config_from_dict, read_flow_file
from signoff.flows.serialize import config_from_json, config_to_json

FLOWS = sorted((Path(__file__).parents[2] / "fixtures" / "flows").glob("*.yaml"))


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


def test_what_an_older_release_did_not_write_has_its_default() -> None:
    """Old runs are still explained."""
    stored = config_to_json(config_from_dict({"workflow": [{"step": "generate"}]}))
    del stored["convergence"]
    del stored["workflow"][0]["timeout"]

    assert config_from_json(stored).workflow[0].timeout is None


def test_who_may_answer_is_stored_only_if_it_is_not_a_human() -> None:
    """Runs of earlier versions keep the digest of their definition."""
    steps: dict[str, object] = {"workflow": [{"step": "generate"}]}
    plain = config_to_json(config_from_dict(steps))
    escalation = {"escalation": {"answerable_by": "agent"}}
    opened = config_to_json(config_from_dict({**steps, "adjudication": escalation}))

    assert "answerable_by" not in plain["adjudication"]
    assert opened["adjudication"]["answerable_by"] == "agent"
    assert config_from_json(opened).adjudication.answerable_by == "agent"


def test_presence_is_stored_only_if_it_is_required() -> None:
    """Runs of earlier versions keep the digest of their definition."""
    steps = [{"step": "generate"}, {"step": "adjudicate"}, {"step": "sign_off"}]
    plain = config_to_json(config_from_dict({"workflow": steps}))
    steps[2]["presence"] = True  # type: ignore[assignment]  # a key of another type
    strict = config_to_json(config_from_dict({"workflow": steps}))

    assert "presence" not in plain["workflow"][2]
    assert strict["workflow"][2]["presence"] is True
    assert config_from_json(strict).workflow[2].presence
