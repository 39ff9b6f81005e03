import subprocess
import sys


def test_opening_the_client_loads_neither_the_parser_nor_a_driver() -> None:
    """Every command would take a tenth of a second longer, for a database that most never use."""
    loaded = (
        "import sys; from signoff.guarded_db import client, upkeep; "
        "print(*({'sqlglot', 'psycopg', 'pydantic', 'click'} & set(sys.modules)))"
    )

    process = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True)

    assert (process.returncode, process.stdout.strip()) == (0, ""), process.stderr
