"""Reads a list of changes; prints it as JSON."""

import json
import sys
from pathlib import Path

lines = Path(sys.argv[1]).read_text("utf-8").splitlines()
changes = [line for line in lines if line.strip()]
print(json.dumps({"changes": changes}))
