import json
import logging
from typing import Any

import pytest

from signoff.runtime.environment import Secrets
from signoff.views.run_log import JsonLines


def record(message: str, /, **fields: Any) -> logging.LogRecord:
    made = logging.makeLogRecord({"msg": message, "name": "signoff.run", "levelno": logging.INFO})
    made.created = 1_700_000_000.25
    vars(made).update(fields)
    return made


def test_a_record_as_json_has_its_fields_at_the_top() -> None:
    """Log collectors index what is there, not what is nested."""
    line = JsonLines().format(record("Step finished", run="one", usd=0.5, to=None))

    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "info",
        "logger": "signoff.run",
        "message": "Step finished",
        "run": "one",
        "usd": 0.5,
    }


@pytest.mark.parametrize(
    "text",
    ["a\nb", "a\r\nb", "\x1b[2Jx", "\u202eevil", "\ud83d", "a\u2028b", '" x=1', "\x85", "\x00"],
)
def test_hostile_text_stays_on_its_line(text: str) -> None:
    """A model's text must not forge a record, nor move the cursor of the terminal."""
    line = JsonLines().format(record(f"said {text}", reply=text, more=[text]))

    assert len(line.splitlines()) == 1
    assert "\x1b" not in line
    assert "\u202e" not in line
    line.encode()
    assert json.loads(line)["reply"] == text


def test_secrets_are_hidden_wherever_they_are() -> None:
    """With `log_content`, a reply may quote a key."""
    formatter = JsonLines(Secrets((("API_KEY", "sk-12345678"),)))

    line = formatter.format(record("the key is sk-12345678", reply={"text": ["sk-12345678"]}))

    assert "sk-12345678" not in line
    assert json.loads(line)["reply"] == {"text": ["[hidden: API_KEY]"]}


def test_an_exception_is_one_line_too() -> None:
    """A traceback of twenty lines would be twenty records for a collector."""
    failed = record("observer failed")
    try:
        raise ValueError("a bug")
    except ValueError as error:
        failed.exc_info = (ValueError, error, error.__traceback__)

    line = JsonLines().format(failed)

    assert len(line.splitlines()) == 1
    assert "ValueError: a bug" in line
