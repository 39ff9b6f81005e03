"""Reads when a used-up limit returns, from the words programs use to say so.

They state it as a moment of the day, a date, a span of time or seconds since 1970; a
moment without a zone is one of this machine's.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}

_EPOCH = re.compile(r"(?:\||resets?(?:_at|At)?\D{0,4})(1[6-9]\d{8}|[2-4]\d{9})\b")
_MOMENT = re.compile(
    r"(?:resets?|try again|available)(?: again)?(?: at| on)?\s+"
    r"(?:(?P<month>[a-z]{3})[a-z]*\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?:(?P<year>\d{4}),?\s+)?"
    r"(?:at\s+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[ap]m)"
    r"(?:\s*\((?P<zone>[\w/+-]+)\))?",
    re.IGNORECASE,
)
_SPAN = re.compile(r"(?:again|resets?) in((?:\s+(?:and\s+)?\d{1,6}\s*[a-z]+,?)+)", re.IGNORECASE)
_PART = re.compile(r"(\d{1,6})\s*([dhms])", re.IGNORECASE)


def reset_in(text: str, now: datetime) -> datetime | None:
    """Returns the moment a text says a limit returns, or None when it says none."""
    epoch = _EPOCH.search(text)
    if epoch is not None:
        return datetime.fromtimestamp(int(epoch[1]), UTC)
    span = _SPAN.search(text)
    if span is not None:
        parts = _PART.findall(span[1])
        return now + timedelta(seconds=sum(int(n) * _SECONDS[u.lower()] for n, u in parts))
    moment = _MOMENT.search(text)
    return _moment(moment, now) if moment is not None else None


def _moment(found: re.Match[str], now: datetime) -> datetime | None:
    here = now.astimezone(_zone(found["zone"]))
    hour = int(found["hour"]) % 12 + (12 if found["half"].lower() == "pm" else 0)
    try:
        stated = here.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        if found["month"] is None:
            return stated if stated > here else stated + timedelta(days=1)
        month = _MONTHS.index(found["month"].lower()) + 1
        stated = stated.replace(month=month, day=int(found["day"]))
        if found["year"] is not None:
            return stated.replace(year=int(found["year"]))
        return stated if stated > here else stated.replace(year=stated.year + 1)
    except ValueError:
        return None


def _zone(name: str | None) -> tzinfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (OSError, ValueError):
        return None
