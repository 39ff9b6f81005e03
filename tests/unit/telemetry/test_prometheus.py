import math

import pytest
from prometheus_client.parser import text_string_to_metric_families

from signoff.telemetry.distribution import Distribution
from signoff.telemetry.prometheus import MOST_SERIES, OTHER, Metric, prometheus_text

HOSTILE = [
    'quo"te', "back\\slash", "new\nline", 'x"} 1\nsignoff_fake{a="', "", "half \ud83d",
    "\u202eevil", "\x1b[2J", "{}", "# HELP x", "é" * 500, "\\n",
]  # fmt: skip


def samples(*metrics: Metric) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Reads the text with the parser of the Prometheus client."""
    families = list(text_string_to_metric_families(prometheus_text(metrics)))
    assert len(families) == len(metrics)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_label_is_read_back_and_adds_no_series(value: str) -> None:
    """Agents report the names of their models, and a model could name itself anything."""
    metric = Metric("m_total", "counter", "Help.", ("agent",), {(value,): 1.0})

    read = samples(metric)

    expected = value[:120].encode(errors="replace").decode()
    assert read == {("m_total", (("agent", expected),)): 1.0}


def test_a_histogram_is_cumulative_and_complete() -> None:
    """Prometheus computes quantiles from the difference between buckets."""
    taken = Distribution((1.0, 2.5))
    for value in (0.5, 1.0, 2.0, 99.0):
        taken.add(value)

    read = samples(Metric("m", "histogram", "Help.", ("kind",), {("ask",): taken}))

    assert read == {
        ("m_bucket", (("kind", "ask"), ("le", "1"))): 2,
        ("m_bucket", (("kind", "ask"), ("le", "2.5"))): 3,
        ("m_bucket", (("kind", "ask"), ("le", "+Inf"))): 4,
        ("m_count", (("kind", "ask"),)): 4,
        ("m_sum", (("kind", "ask"),)): 102.5,
    }  # fmt: skip


def test_series_beyond_the_most_are_added_up_as_one() -> None:
    """An agent that invents a model for every call must not fill a server's memory."""
    metric = Metric("m_total", "counter", "Help.", ("agent", "model"))
    for number in range(10_000):
        metric.add(1, "claude", f"model-{number:05}")

    read = samples(metric)

    assert len(read) == MOST_SERIES + 1
    assert sum(read.values()) == 10_000
    assert read["m_total", (("agent", OTHER), ("model", OTHER))] == 10_000 - MOST_SERIES


@pytest.mark.parametrize(
    "number", [0.0, 1.0, 0.1, 1e-9, 123456789012345680.0, 2.5e300, math.inf, -1.5]
)
def test_numbers_are_read_back_exactly(number: float) -> None:
    """Ten thousand cheap calls are not free."""
    read = samples(Metric("m", "gauge", "A \\ help\nin two lines.", (), {(): number}))

    assert read == {("m", ()): number}


def test_a_metric_without_series_is_still_listed() -> None:
    """A dashboard can then show that there is nothing yet."""
    assert samples(Metric("m", "gauge", "Help.", ("kind",))) == {}
