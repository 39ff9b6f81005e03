import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from signoff.core.errors import ConfigError
from signoff.core.outcome import Status
from signoff.core.remedies import Install
from signoff.views.metrics import (
    DEFINITIONS,
    MOST_SERIES,
    OTHER,
    Metrics,
    RunSummary,
    prometheus_text,
    summarize,
)
from tests.unit.views.events import journal

HOSTILE = [
    'quo"te', "back\\slash", "new\nline", 'x"} 1\nsignoff_fake{a="', "", "half \ud83d",
    "\u202eevil", "\x1b[2J", "{}", "# HELP x", "é" * 500, "\\n",
]  # fmt: skip


def samples(metrics: Metrics, name: str) -> dict[tuple[str, ...], float]:
    """Reads a metric as Prometheus does: by its labels."""
    families = list(text_string_to_metric_families(prometheus_text(metrics)))
    assert len(families) == len(DEFINITIONS)
    found = [each for family in families for each in family.samples if each.name == name]
    return {tuple(each.labels.values()): each.value for each in found}


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_label_is_read_back_and_adds_no_series(value: str) -> None:
    """Agents report the names of their models, and a model could name itself anything."""
    metrics = Metrics()
    metrics.add(1, "signoff_tokens_total", "claude", value)

    read = samples(metrics, "signoff_tokens_total")

    assert read == {("claude", value[:120].encode(errors="replace").decode()): 1.0}


def test_a_histogram_is_cumulative_and_complete() -> None:
    """Prometheus computes quantiles from the difference between buckets."""
    metrics = Metrics()
    metrics.add_run(Status.COMPLETED, summarize(journal()))

    buckets = samples(metrics, "signoff_effect_seconds_bucket")
    asked = [count for (kind, _), count in buckets.items() if kind == "ask"]

    assert asked == sorted(asked)
    assert ("ask", "+Inf") in buckets
    assert asked[-1] == samples(metrics, "signoff_effect_seconds_count")[("ask",)]


def test_series_beyond_the_most_are_added_up_as_one() -> None:
    """An agent that invents a model for every call must not fill a server's memory."""
    metrics = Metrics()
    for number in range(10_000):
        metrics.add(1, "signoff_tokens_total", "claude", f"model-{number:05}")

    read = samples(metrics, "signoff_tokens_total")

    assert len(read) == MOST_SERIES + 1
    assert sum(read.values()) == 10_000
    assert read[OTHER, OTHER] == 10_000 - MOST_SERIES


def test_without_its_package_the_command_that_installs_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The extra is not part of a plain installation."""
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    with pytest.raises(ConfigError) as refused:
        prometheus_text(Metrics())

    assert refused.value.remedies == (Install("prometheus"),)


def test_a_run_without_claims_counts_as_none() -> None:
    """A series that nobody added to is a 0 for dashboards, and not a gap."""
    metrics = Metrics()
    metrics.add_run(Status.RUNNING, RunSummary())

    assert samples(metrics, "signoff_claim_seconds_count") == {(): 0}
