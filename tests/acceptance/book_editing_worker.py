"""An external worker that edits a book; at every step it submits fake work first, then real work.

Run with the name of a run. It knows `signoff next` and `signoff submit`, and nothing else.
"""

import io
import json
import sys
from contextlib import redirect_stdout
from typing import Any

from signoff.surfaces.cli import main

REFUSED = (2, 16)
"""Not of the right form, or not what the conditions demand."""

PLAN = {
    "goal": "Short sentences, plain words.",
    "areas": [
        {"id": "keeper", "chapter": 1, "instruction": "Say what he does in plain words."},
        {"id": "storm", "chapter": 2, "instruction": "Let us see the storm."},
    ],
}
TEXTS = {
    "keeper": "The storms came and went. Each day the keeper oiled the lamp. It never failed.",
    "storm": "That night the wind tore at the roof. The keeper took the stairs two at a time.",
}


def run_command(*arguments: str) -> tuple[int, Any]:
    """Runs a command and returns its exit code and its JSON output."""
    out = io.StringIO()
    with redirect_stdout(out):
        code = main([*arguments, "--json"])
    return code, json.loads(out.getvalue())


def submit(run: str, item: Any, result: Any) -> tuple[int, Any]:
    """Submits the result of a work item."""
    number, digest = str(item["number"]), item["digest"]
    return run_command(
        "submit", run, "--item", number, "--digest", digest, "--result", json.dumps(result)
    )  # fmt: skip


def real_work(item: Any) -> Any:
    """Returns a result that meets the conditions."""
    match item["step"]:
        case "strategic-planning":
            return PLAN
        case "writer":
            return {"text": TEXTS[item["item"]["id"]]}
        case _:
            return {"decision": "approved", "notes": "It reads well."}


def fake_work(item: Any) -> Any:
    """Returns a result that claims to be done."""
    match item["step"]:
        case "strategic-planning":
            return {"goal": "All is well.", "areas": []}
        case "writer":
            return {"text": item["prompt"].partition("Chapter:\n")[2]}
        case _:
            return {"notes": "Looks fine to me."}


def edit(run: str) -> int:
    """Works until no work is left."""
    tried = set()
    code, status = run_command("next", run)
    while status["work"]:
        item = status["work"][0]
        key = (item["step"], json.dumps(item["item"]))
        if key not in tried:
            tried.add(key)
            code, _answer = submit(run, item, fake_work(item))
            code_after, after = run_command("next", run)
            if code not in REFUSED or code_after or after["step"] != status["step"]:
                raise AssertionError(f"got through with nothing done: {after}")
            status = after
            continue
        code, status = submit(run, item, real_work(item))
        if not status["accepted"]:
            raise AssertionError(status["problem"])
    return code


if __name__ == "__main__":
    sys.exit(edit(sys.argv[1]))
