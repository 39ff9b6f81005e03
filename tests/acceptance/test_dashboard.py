"""The Grafana dashboard shows all metrics, and nothing that does not exist."""

import json
import re
from pathlib import Path
from typing import Any

from signoff.app.runs.run_records import metrics_text
from signoff.store.sqlite import MemoryStore
from signoff.views.metrics import DEFINITIONS

DASHBOARD: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "docs/grafana/signoff.json").read_text("utf-8")
)
PANELS: list[dict[str, Any]] = [each for each in DASHBOARD["panels"] if each["type"] != "row"]
QUERIES = [target["expr"] for panel in PANELS for target in panel["targets"]]
METRIC = re.compile(r"\b(?:signoff|workflow)_\w+")
SELECTOR = re.compile(r"(\w+)\s*!?=~?\s*\"")
GROUPING = re.compile(r"by \(([^)]*)\)")


def served_names() -> set[str]:
    """Returns the names that `signoff metrics` prints, and the parts of its histograms."""
    text = metrics_text(MemoryStore(), 0.0)
    names = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    histograms = re.findall(r"^# TYPE (\w+) histogram", text, re.MULTILINE)
    return names | {f"{each}_{part}" for each in histograms for part in ("bucket", "sum", "count")}


def test_every_query_is_about_a_metric_that_is_served() -> None:
    """A panel of a renamed metric stays empty, which looks like a quiet day."""
    found = {name for query in QUERIES for name in METRIC.findall(query)}

    assert found <= served_names()


def test_every_metric_is_on_the_dashboard() -> None:
    """It is the first thing an operator looks at."""
    found = {
        re.sub(r"_(bucket|sum|count)$", "", name) if name.endswith("_bucket") else name
        for query in QUERIES
        for name in METRIC.findall(query)
    }

    assert {name for name, *_ in DEFINITIONS} <= found


def test_every_label_of_a_query_belongs_to_its_metric() -> None:
    """A selector of a label that no series has matches nothing."""
    labels = {name: {*labels, "le"} for name, _, labels, _ in DEFINITIONS}

    for query in QUERIES:
        (metric,) = {name.removesuffix("_bucket") for name in METRIC.findall(query)}
        used = {*SELECTOR.findall(query)}
        for group in GROUPING.findall(query):
            used |= {each.strip() for each in group.split(",")}
        assert used <= labels[metric], query
