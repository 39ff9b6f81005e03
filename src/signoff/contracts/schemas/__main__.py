"""Writes the schema beside this file."""

from __future__ import annotations

from pathlib import Path

from signoff.contracts.schemas.made import schemas


def main() -> None:
    """Writes each schema that has changed."""
    for name, text in schemas().items():
        path = Path(__file__).parent / name
        if not path.is_file() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
