import os
import threading
from pathlib import Path

from signoff.documents.regular_files import file_lock


def test_a_lock_keeps_others_out_and_leaves_the_file_alone(tmp_path: Path) -> None:
    """Two processes that change a file at the same time would lose one of the changes."""
    path = tmp_path / "data"
    path.write_text("0")

    def add() -> None:
        for _ in range(50):
            with file_lock(path):
                path.write_text(str(int(path.read_text()) + 1))

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert path.read_text() == "400"


def test_a_pipe_in_place_of_the_lock_does_not_hang(tmp_path: Path) -> None:
    """Everyone can create one in a shared folder."""
    os.mkfifo(tmp_path / ".data.lock")

    with file_lock(tmp_path / "data"):
        entered = True

    assert entered
