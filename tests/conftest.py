"""What every test run shares: when real agents are called, and a last line that names the skipped.

Fixtures of one kind of test live in the conftest of its own folder.
"""

from collections import Counter

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--real", action="store_true", help="also call real agents; may cost money")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--real"):
        return
    skip = pytest.mark.skip(reason="calls a real agent; run it with: .venv/bin/pytest --real")
    for item in items:
        if item.get_closest_marker("real"):
            item.add_marker(skip)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = Counter(_reason(report) for report in terminalreporter.getreports("skipped"))
    for reason, count in reasons.items():
        terminalreporter.write_line(f"skipped {count}: {reason}")
    if not reasons:
        terminalreporter.write_line("skipped: nothing")


def _reason(report: object) -> str:
    match getattr(report, "longrepr", None):
        case (_, _, str(reason)):
            return reason.removeprefix("Skipped: ")
        case other:
            return str(other)
