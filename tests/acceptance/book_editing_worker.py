"""An agent outside that edits a book: it tries to get by without the work first, then does it.

Run with the name of a run. It knows `signoff next` and `signoff submit`, and nothing else.
"""

import io
import json
import sys
from contextlib import redirect_stdout
from typing import Any

from signoff.cli import main

NOT_ACCEPTED = 16

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


def say(*words: str) -> tuple[int, Any]:
    """Runs a command and returns its exit code and what it says."""
    out = io.StringIO()
    with redirect_stdout(out):
        code = main([*words, "--json"])
    return code, json.loads(out.getvalue())


def hand_in(run: str, piece: Any, result: Any) -> tuple[int, Any]:
    """Submits one piece of work."""
    number, digest = str(piece["number"]), piece["digest"]
    return say(
        "submit", run, "--item", number, "--digest", digest, "--result", json.dumps(result)
    )  # fmt: skip


def worked(piece: Any) -> Any:
    """Does the work."""
    match piece["step"]:
        case "strategic-planning":
            return PLAN
        case "writer":
            return {"text": TEXTS[piece["item"]["id"]]}
        case _:
            return {"decision": "approved", "notes": "It reads well."}


def pretended(piece: Any) -> Any:
    """Says what would be enough if nobody looked."""
    match piece["step"]:
        case "strategic-planning":
            return {"goal": "All is well.", "areas": []}
        case "writer":
            return {"text": piece["prompt"].partition("Chapter:\n")[2]}
        case _:
            return {"notes": "Looks fine to me."}


def edit(run: str) -> int:
    """Works until nothing is left to do."""
    tricked = set()
    code, standing = say("next", run)
    while standing["work"]:
        piece = standing["work"][0]
        what = (piece["step"], json.dumps(piece["item"]))
        if what not in tricked:
            tricked.add(what)
            code, after = hand_in(run, piece, pretended(piece))
            if code != NOT_ACCEPTED or after["step"] != standing["step"]:
                raise AssertionError(f"got through with nothing done: {after}")
            standing = after
            continue
        code, standing = hand_in(run, piece, worked(piece))
        if not standing["accepted"]:
            raise AssertionError(standing["problem"])
    return code


if __name__ == "__main__":
    sys.exit(edit(sys.argv[1]))
