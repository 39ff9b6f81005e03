"""The script of quality reviewers: prints what to review next.

Run as `signoff skill script signoff.skills.quality_review --phase PHASE --state-dir DIR`. Without
a file of items it asks for them, once. Otherwise it lists what is due, by group.
"""

from __future__ import annotations

import sys

from signoff.surfaces.notations.skills.quality_review import main

if __name__ == "__main__":
    sys.exit(main())
