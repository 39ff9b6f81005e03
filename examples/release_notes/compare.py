"""Is given the run's checkpoint; prints which changes the notes do not name."""

import json
import re
import sys

point = json.load(sys.stdin)["checkpoint"]
numbers = [re.match(r"#\d+", line).group() for line in point["changes"]]
print(json.dumps({"missing": [n for n in numbers if n not in point["notes"]]}))
