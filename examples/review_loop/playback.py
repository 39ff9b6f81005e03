"""A writer that plays back drafts from a file, one per call, taking a moment for each.

It replaces a model, so that the example runs without an account and shows what the
engine does around a real writer.
"""

import asyncio
from pathlib import Path

from signoff import AgentRequest, Reply, Usage
from signoff.runtime.ports import Call


class Playback:
    """Answers with the drafts of a file, separated by lines of `---`."""

    def __init__(self, drafts: str, seconds: float = 1.5) -> None:
        """Reads the drafts; `seconds` is how long each answer takes."""
        text = (Path(__file__).parent / drafts).read_text("utf-8")
        self._drafts = [part.strip() for part in text.split("\n---\n")]
        self._seconds = seconds

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Answers with the draft that follows the one it is shown, or the first."""
        call.emit("thinking")
        await asyncio.sleep(self._seconds)
        shown = [i for i, draft in enumerate(self._drafts) if draft in request.prompt]
        text = self._drafts[min(max(shown, default=-1) + 1, len(self._drafts) - 1)]
        return Reply(text, usage=Usage(len(request.prompt) // 4, len(text) // 4, 0.0, "playback"))
