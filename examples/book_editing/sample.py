"""Creates a database with a short book: `python sample.py [book.db]`."""

from __future__ import annotations

import sys
from pathlib import Path

from signoff.contracts import SafeDatabaseClient
from signoff.contracts.guarded_db.upkeep import Upkeep

HERE = Path(__file__).parent

ANALYSIS = "Chapters 1 and 2 are hard to read: long sentences, long words. Chapter 3 is fine."
KEEPER = """\
Notwithstanding innumerable difficulties accompanying meteorological unpredictability, the
lighthouse's custodian habitually undertook comprehensive preventative maintenance of
illumination equipment, consequently guaranteeing uninterrupted operation.
"""
STORM = """\
Subsequently, extraordinarily violent atmospheric disturbances materialised, necessitating
immediate intervention, whereupon the custodian, disregarding considerations of personal
preservation, ascended the staircase.
"""
MORNING = "The sea was calm. The light still burned. He put it out and slept.\n"
CHAPTERS = {1: ("The Keeper", KEEPER), 2: ("The Storm", STORM), 3: ("The Morning", MORNING)}


def make_sample(database: Path) -> None:
    """Creates the tables by their migrations, and one published version of the book."""
    Upkeep(database, migrations=HERE / "migrations").migrate()
    with SafeDatabaseClient.open(database) as db:
        db.execute(
            "INSERT INTO books (id, title, analysis) VALUES (?, ?, ?)",
            ["lighthouse", "The Lighthouse", ANALYSIS],
        )
        db.execute(
            "INSERT INTO book_versions (id, book_id, number, status) "
            "VALUES ('lighthouse-v1', 'lighthouse', 1, 'published')"
        )
        for number, (title, text) in CHAPTERS.items():
            db.execute(
                "INSERT INTO chapters (version_id, number, title, text) VALUES (?, ?, ?, ?)",
                ["lighthouse-v1", number, title, text],
            )


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "book.db"
    if path.exists():
        sys.exit(f"{path.name} already exists; remove it to start again")
    make_sample(path)
    print(f"created {path.name}: one book, {len(CHAPTERS)} chapters")
