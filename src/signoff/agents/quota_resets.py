"""Finds the time of a retry or a quota reset in the message of a server or a program.

Messages contain a time of day, a date, a duration or seconds since 1970. A time of day without
a zone is in this machine's zone.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}

_EPOCH = re.compile(r"(?:\||resets?(?:_at|At)?\D{0,4})(1[6-9]\d{8}|[2-4]\d{9})\b")
_MOMENT = re.compile(
    r"(?:resets?|try again|available)(?: again)?(?: at| on)?\s+"
    r"(?:(?P<month>[a-z]{3})[a-z]*\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?:(?P<year>\d{4}),?\s+)?"
    r"(?:at\s+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[ap]m)"
    r"(?:\s*\((?P<zone>[\w/+-]+)\))?",
    re.IGNORECASE,
)
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)(?:T| at |\s)(\d\d:\d\d)(?::\d\d)?\s*(?:UTC|Z)")
_SPAN = re.compile(
    r"(?:again|retry|available|resets?) in((?:\s*(?:and\s+)?\d{1,7}(?:\.\d+)?\s*[a-z]+,?)+)",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d{1,7}(?:\.\d+)?)\s*(ms|[dhms])", re.IGNORECASE)


def find_reset_time(text: str, now: datetime) -> datetime | None:
    """Returns the time at which a text says a quota resets, or None when it names none."""
    if epoch := _EPOCH.search(text):
        return datetime.fromtimestamp(int(epoch[1]), UTC)
    try:
        if date := _DATE.search(text):
            return datetime.fromisoformat(f"{date[1]}T{date[2]}:00+00:00")
        if span := _SPAN.search(text):
            parts = _PART.findall(span[1])
            seconds = sum(float(number) * _SECONDS[unit.lower()] for number, unit in parts)
            return now + timedelta(seconds=seconds)
        moment = _MOMENT.search(text)
        return _parse_moment(moment, now) if moment is not None else None
    except ValueError:
        return None  # such as February 31


def _parse_moment(match: re.Match[str], now: datetime) -> datetime:
    local_now = now.astimezone(_parse_zone(match["zone"]))
    hour = int(match["hour"]) % 12 + (12 if match["half"].lower() == "pm" else 0)
    minute = int(match["minute"] or 0)
    reset = local_now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if match["month"] is None:
        return reset if reset > local_now else reset + timedelta(days=1)
    month = _MONTHS.index(match["month"].lower()) + 1
    reset = reset.replace(month=month, day=int(match["day"]))
    if match["year"] is not None:
        return reset.replace(year=int(match["year"]))
    # A date without a year that has passed belongs to the next year.
    return reset if reset > local_now else reset.replace(year=reset.year + 1)


def _parse_zone(name: str | None) -> tzinfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (OSError, ValueError):
        return None
