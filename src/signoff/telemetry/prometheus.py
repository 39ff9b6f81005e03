"""Writes metrics in the text format of Prometheus, version 0.0.4.

https://prometheus.io/docs/instrumenting/exposition_formats/ is all there is to it, so the command
needs no package and starts at once; the tests read it with the parser of prometheus-client.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from signoff.telemetry.distribution import Distribution

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MOST_SERIES = 200
"""Series of one metric. Agents report the names of their models themselves, and one that invents
names must not fill the memory of a Prometheus server."""
LONGEST_VALUE = 120
"""Characters of a label's value."""
OTHER = "other"
"""The value of the labels of all series beyond the first `MOST_SERIES`."""

_VALUE = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP = str.maketrans({"\\": r"\\", "\n": r"\n"})

Labels = tuple[str, ...]


@dataclass(slots=True)
class Metric:
    """A metric with its series."""

    name: str
    kind: str
    """counter, gauge or histogram."""
    help: str
    labels: Labels = ()
    """The names of its labels."""
    series: dict[Labels, float | Distribution] = field(default_factory=dict)
    """By the values of the labels."""

    def add(self, amount: float, *values: str) -> None:
        """Adds to the series with these label values."""
        before = self.series.get(values, 0.0)
        assert not isinstance(before, Distribution)  # noqa: S101  # a histogram has no amounts
        self.series[values] = before + amount

    def text(self) -> Iterator[str]:
        """Yields its lines."""
        yield f"# HELP {self.name} {self.help.translate(_HELP)}\n"
        yield f"# TYPE {self.name} {self.kind}\n"
        for values, value in _few(self.series).items():
            labels = dict(zip(self.labels, values, strict=True))
            if isinstance(value, Distribution):
                yield from _histogram(self.name, labels, value)
            else:
                yield f"{self.name}{_labels(labels)} {_number(value)}\n"


def prometheus_text(metrics: Iterable[Metric]) -> str:
    """Returns a whole document."""
    return "".join(line for metric in metrics for line in metric.text())


def _few(series: Mapping[Labels, float | Distribution]) -> dict[Labels, float | Distribution]:
    """Returns the series in order, with all beyond the most that are sensible as one."""
    few: dict[Labels, float | Distribution] = {}
    for values, value in sorted(series.items()):
        key = tuple(_short(each) for each in values)
        if key not in few and len(few) >= MOST_SERIES:
            key = (OTHER,) * len(values)
        before = few.get(key)
        if isinstance(value, Distribution):
            both = Distribution(value.bounds)
            for each in (before, value):
                if isinstance(each, Distribution):
                    both.merge(each.counts, each.total)
            few[key] = both
        else:
            few[key] = value + (before if isinstance(before, int | float) else 0.0)
    return few


def _short(text: str) -> str:
    """Returns a label's value without characters that no UTF-8 text can hold, and not too long."""
    return text[:LONGEST_VALUE].encode(errors="replace").decode()


def _histogram(name: str, labels: Mapping[str, str], value: Distribution) -> Iterator[str]:
    bounds = [*(_number(bound) for bound in value.bounds), "+Inf"]
    for bound, count in zip(bounds, accumulate(value.counts), strict=True):
        yield f"{name}_bucket{_labels({**labels, 'le': bound})} {count}\n"
    yield f"{name}_sum{_labels(labels)} {_number(value.total)}\n"
    yield f"{name}_count{_labels(labels)} {sum(value.counts)}\n"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    pairs = (f'{name}="{value.translate(_VALUE)}"' for name, value in labels.items())
    return f"{{{','.join(pairs)}}}"


def _number(value: float) -> str:
    """Returns a number as short as it can be read back exactly."""
    whole = float(value).is_integer() and abs(value) < 1e15
    return str(int(value)) if whole else repr(float(value))
