"""Plays `claude`, `codex` or `gemini` run headless, in a project that says what they answer.

Run with the project's folder and the name of a program, it reads the prompt, finds the first
rule of `play.json` that fits, writes the call down and answers in that program's own protocol.
It imports nothing of ours, as the program of a vendor would not.
"""

import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

STEPS = {
    "Write the artifact": "generate",
    "You review an artifact": "critique",
    "You are the judge": "adjudicate",
    "The artifact is the file": "refine",
    "A critic reported": "verify",
}
"""How the prompts of each kind of call begin, after the system prompt if there is one."""
USAGE = {"input_tokens": 100, "output_tokens": 10}


def main() -> None:
    project, program, *argv = sys.argv[1:]
    if "--version" in argv:
        print("9.9.9")
        return
    if "status" in argv:
        print('{"loggedIn": true}')
        return
    prompt = sys.stdin.buffer.read().decode()
    call = describe_call(program, argv, prompt)
    place = Path(project, "play")
    number, rule = chosen(place, call, prompt)
    call["rule"] = number
    note(Path(project, "calls.jsonl"), call)
    answer(program, argv, {**rule, "text": prompt} if rule.get("echo") else rule)


def describe_call(program: str, argv: list[str], prompt: str) -> dict:  # type: ignore[type-arg]  # plain data
    """Describes the call by its arguments and its prompt."""
    begins = re.search(rf"^(?:{'|'.join(STEPS)})", prompt, re.MULTILINE)
    step = STEPS[begins[0]] if begins else "?"
    constraint = re.search(r"^Review the artifact against (\S+) now\.$", prompt, re.MULTILINE)
    return {
        "agent": program,
        "model": next((b for a, b in pairwise(argv) if a in ("--model", "-m")), None),
        "step": step,
        "constraint": constraint[1] if constraint else None,
        "prompt": hashlib.sha256(prompt.encode()).hexdigest()[:16],
        "again": "Your previous answer was not accepted" in prompt,
        "edits": any(word in argv for word in ("acceptEdits", "workspace-write", "auto_edit")),
        "pid": os.getpid(),
    }


def chosen(place: Path, call: dict, prompt: str) -> tuple[int, dict]:  # type: ignore[type-arg]  # plain data
    """Returns the first rule that fits and is not used up, with its number."""
    rules = json.loads(Path(place, "play.json").read_text())
    for number, rule in enumerate(rules):
        fits = all(call[key] == rule[key] for key in call.keys() & rule.keys())
        if fits and rule.get("contains", "") in prompt and claimed(place, number, rule):
            return number, rule
    sys.exit(f"no rule for {call}")


def claimed(place: Path, number: int, rule: dict) -> bool:  # type: ignore[type-arg]  # plain data
    """Takes one of a rule's uses; programs that run side by side never take the same one."""
    for use in range(rule.get("times", 0)):
        try:
            os.close(os.open(place / f"{number}.{use}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        return True
    return "times" not in rule


def note(log: Path, call: dict) -> None:  # type: ignore[type-arg]  # plain data
    line = json.dumps(call) + "\n"
    with log.open("ab", buffering=0) as file:
        file.write(line.encode())


def answer(program: str, argv: list[str], rule: dict) -> None:  # type: ignore[type-arg]  # plain data
    for find, put in rule.get("edit", ()):
        file = Path("artifact.md")
        file.write_text(file.read_text().replace(find, put))
    if "damage" in rule:
        DAMAGE[rule["damage"]](Path("artifact.md"))
    time.sleep(rule.get("seconds", 0))
    if "raw" in rule:
        sys.stdout.write(rule["raw"])
    else:
        text = rule.get("text", "") * rule.get("repeated", 1)
        SPEAK[program](text, whole="stream-json" not in argv or rule.get("whole", False))
    sys.stdout.flush()
    sys.stderr.write(rule.get("stderr", ""))
    sys.exit(rule.get("code", 0))


def make_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()
    (file / "artifact.md").write_text("The sea is wide.")


def make_link(file: Path) -> None:
    file.unlink()
    Path("other.md").write_text("The sea is wide.")
    file.symlink_to("other.md")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "emptied": lambda file: file.write_bytes(b""),
    "blanked": lambda file: file.write_bytes(b" \n\t\n"),
    "folder": make_folder,
    "link": make_link,
    "spaced": lambda file: file.write_bytes(file.read_bytes().replace(b" ", b"  ")),
    "ended": lambda file: file.write_bytes(file.read_bytes() + b"\n \n"),
    "crlf": lambda file: file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n")),
}
"""What an editing agent may do to its file instead of editing it."""


def say(**event: object) -> None:
    print(json.dumps(event), flush=True)


def claude(text: str, *, whole: bool) -> None:
    if not whole:
        say(type="system", subtype="init", session_id="s")
        say(type="assistant", message={"content": [{"type": "text", "text": text}]})
    done = {"type": "result", "subtype": "success", "is_error": False, "result": text}
    say(**done, session_id="s", usage=USAGE, total_cost_usd=0.01)


def codex(text: str, *, whole: bool) -> None:  # it has one form only
    say(type="thread.started", thread_id="t")
    say(type="turn.started")
    say(type="item.completed", item={"id": "i", "type": "agent_message", "text": text})
    say(type="turn.completed", usage=USAGE)


def gemini(text: str, *, whole: bool) -> None:
    stats = {"models": {"m": {"tokens": {"prompt": 100, "candidates": 10, "total": 110}}}}
    if whole:
        print(json.dumps({"session_id": "g", "response": text, "stats": stats}, indent=2))
        return
    say(type="init", session_id="g", model="m")
    say(type="message", role="assistant", content=text, delta=True)
    say(type="result", status="success", stats={"models": {"m": USAGE}})


SPEAK = {"claude": claude, "codex": codex, "gemini": gemini}

main()
