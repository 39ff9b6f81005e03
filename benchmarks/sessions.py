"""W11: a session of a profile without human approvals: what a stage costs without its call."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

from benchmarks.sample import Figures
from benchmarks.sizes import FULL, Scale
from signoff import AgentRequest, Reply, Status
from signoff.app.runs.start import start
from signoff.app.settings.home import init_home
from signoff.app.settings.project import open_project
from signoff.runtime.ports import Call

SETTINGS = """\
profiles:
  providers: {{default: scripted}}
  approval: {{default_approver: skip}}
  max_iterations: {reviews}
"""

PLAN = "One function, one test.\n"

CODE = """\
slugs.py
```python
def slug(text: str) -> str:
    return text.lower()
```

test_slugs.py
```python
from slugs import slug


def test_slug() -> None:
    assert slug("A") == "a"
```
"""

REVIEW = """\
Spaces are left as they are.

@@@REVIEW_META
verdict: FAIL
issues_total: 1
issues_critical: 0
missing_inputs: 0
@@@
"""


class Scripted:
    """Answers at once: a plan, then code and reviews in turn, none of which passes."""

    def __init__(self) -> None:
        self.calls = 0

    async def ask(self, _request: AgentRequest, _call: Call) -> Reply:
        """Returns what the phase needs."""
        self.calls += 1
        if self.calls == 1:
            return Reply(PLAN)
        return Reply(REVIEW if self.calls % 2 else CODE)


async def automatic_session(folder: Path, scale: Scale) -> Figures:
    """W11: from the start to the round limit, with the run directory written."""
    reviews = 20 if scale == FULL else 2
    home = init_home(folder, {}).home
    home.config.write_text(SETTINGS.format(reviews=reviews), encoding="utf-8")
    agent = Scripted()
    with open_project(folder, {}, agents={"scripted": agent}) as project:
        target = project.find("profile:python-module")
        began = perf_counter()
        result = await start(project, target, {"module": "slugs", "description": "Makes slugs."})
        took = perf_counter() - began
    assert result.status is Status.LIMIT, result.reason
    assert agent.calls == 1 + 2 * reviews
    # Every call is two stages: its prompt and its response.
    return {"ms": took * 1000 / (2 * agent.calls)}
