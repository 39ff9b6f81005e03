"""Formats times, durations, counts, money and long texts. Unknown is never shown as 0."""

from __future__ import annotations

from datetime import UTC, datetime

from signoff.core.spend import Spend

UNKNOWN = "unknown"
"""The one word for an amount that no call has reported."""


def timestamp(at: float) -> str:
    """Returns a time in ISO 8601, in UTC."""
    utc = datetime.fromtimestamp(at, UTC)
    return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def cut(text: str, width: int) -> str:
    """Returns the beginning of a text; an ellipsis shows that there is more."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def duration(seconds: float) -> str:
    """Returns `0.4s`, `12.3s`, `2m 05s`, `1h 02m` or `3d 04h`."""
    seconds = max(0.0, seconds)
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d {whole % 86400 // 3600:02d}h"


def money(usd: float | None) -> str:
    """Returns an amount with enough digits to differ from 0."""
    if usd is None:
        return UNKNOWN
    if 0 < usd < 0.0001:
        return "<$0.0001"
    if usd >= 0.1 or usd == 0:
        return f"${usd:.2f}"
    cents, rest = f"{usd:.4f}"[:4], f"{usd:.4f}"[4:].rstrip("0")
    return f"${cents}{rest}"


def count(number: int, noun: str) -> str:
    """Returns `1 call`, `1,204 tokens`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def format_spend(spend: Spend) -> str:
    """Returns what a run cost in one line; amounts that no call reported are unknown."""
    calls = count(spend.calls, "call")
    if spend.calls == 0:
        return calls
    tokens = partial(count(spend.known_tokens, "token"), spend.known_tokens, spend.unknown_tokens)
    tokens += f" ({spend.known_cached:,} cached)" if spend.known_cached else ""
    cost = partial(money(spend.known_usd), spend.known_usd, spend.unknown_usd)
    if tokens == cost == UNKNOWN:
        return f"{calls} · tokens and cost {UNKNOWN}"
    named = (f"tokens {UNKNOWN}" if tokens == UNKNOWN else tokens,
             f"cost {UNKNOWN}" if cost == UNKNOWN else cost)  # fmt: skip
    return " · ".join((calls, *named))


def partial(text: str, reported: float, unreported_calls: int) -> str:
    """Returns an amount, a lower bound if some call did not report it, or that it is unknown."""
    if not unreported_calls:
        return text
    return f"at least {text}" if reported else UNKNOWN
