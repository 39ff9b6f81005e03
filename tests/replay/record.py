"""Records every story as this version runs it: `python -m tests.replay.record`.

Run it with Python 3.11 before a release, and commit `tests/replay/recorded`. It replaces the
recordings of the version it runs, `signoff.__version__`; those of released versions stay as they
are, and every later version has to resume them.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from signoff import __version__
from tests.replay import instructions, notations, story
from tests.replay.recordings import RECORDED, dump

Record = Callable[[Path], Coroutine[Any, Any, None]]
RECORDINGS: Mapping[str, Record] = {
    **story.RECORDINGS,
    **instructions.RECORDINGS,
    **notations.RECORDINGS,
}


def main() -> None:
    """Writes all recordings of this version."""
    RECORDED.mkdir(exist_ok=True)
    for old in RECORDED.glob(f"{__version__}-*.sql"):
        old.unlink()
    for name, record in RECORDINGS.items():
        target = RECORDED / f"{__version__}-{name}.sql"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "signoff.db"
            asyncio.run(record(path))
            target.write_text(dump(path))
        print(target.name)


if __name__ == "__main__":
    main()
