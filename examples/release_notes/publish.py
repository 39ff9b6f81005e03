"""Writes the notes into a file."""

import json
import sys
from pathlib import Path

notes = json.load(sys.stdin)["checkpoint"]["notes"]
Path(sys.argv[1]).write_text(notes + "\n", "utf-8")
print(json.dumps({"characters": len(notes)}))
