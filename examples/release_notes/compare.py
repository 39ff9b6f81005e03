"""Reads the run's checkpoint; prints the changes that the notes do not mention."""

import json
import re
import sys

point = json.load(sys.stdin)["checkpoint"]
numbers = [re.match(r"#\d+", line).group() for line in point["changes"]]
print(json.dumps({"missing": [n for n in numbers if n not in point["notes"]]}))
