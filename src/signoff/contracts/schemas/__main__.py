"""Writes the schema next to this file."""

from __future__ import annotations

from pathlib import Path

from signoff.contracts.schemas.made import schemas

if __name__ == "__main__":
    for name, text in schemas().items():
        (Path(__file__).parent / name).write_text(text, "utf-8")
