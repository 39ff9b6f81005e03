"""Plays `claude`, `codex` or `gemini` run headless, in a project that says what they answer.

Run with the project's folder and the name of a program, it reads the prompt, finds the first
rule of the project that fits, writes the call down and answers in that program's own protocol.
It imports nothing of ours, as the program of a vendor would not, and as little as possible at
all: the tests start it more than a thousand times, and importing `json` or `re` takes longer than
all the rest. The rules are therefore written with `marshal`.
"""

import marshal
import os
import sys
import time
from _json import encode_basestring_ascii as quoted
from binascii import crc32
from itertools import pairwise

STEPS = {
    "Write the artifact": "generate",
    "You review an artifact": "critique",
    "You are the judge": "adjudicate",
    "The artifact is the file": "refine",
    "A critic reported": "verify",
}
"""How the prompts of each kind of call begin, after the system prompt if there is one."""
ARTIFACT = "artifact.md"
USAGE = {"input_tokens": 100, "output_tokens": 10}


def main() -> None:
    project, program, *argv = sys.argv[1:]
    prompt = sys.stdin.buffer.read().decode()
    call = describe_call(program, argv, prompt)
    number, rule = chosen(f"{project}/play", call, prompt)
    call["rule"] = number
    note(f"{project}/calls.jsonl", call)
    answer(program, argv, {**rule, "text": prompt} if rule.get("echo") else rule)


def describe_call(program: str, argv: list[str], prompt: str) -> dict:  # type: ignore[type-arg]  # plain data
    """Describes the call by its arguments and its prompt."""
    begins = [(at, step) for start, step in STEPS.items() if (at := found(start, prompt)) >= 0]
    return {
        "agent": program,
        "model": next((b for a, b in pairwise(argv) if a in ("--model", "-m")), None),
        "step": min(begins)[1] if begins else "?",
        "constraint": constraint_of(prompt),
        "prompt": f"{len(prompt)}-{crc32(prompt.encode())}",
        "again": "Your previous answer was not accepted" in prompt,
        "edits": any(word in argv for word in ("acceptEdits", "workspace-write", "auto_edit")),
        "pid": os.getpid(),
    }


def found(start: str, prompt: str) -> int:
    """Returns where the first line that begins like this is, or -1."""
    return f"\n{prompt}".find(f"\n{start}")


def constraint_of(prompt: str) -> str | None:
    """Returns the constraint that a critic is asked about, if it is only one."""
    start, end = "Review the artifact against ", " now."
    for line in prompt.split("\n"):
        name = line[len(start) : -len(end)]
        if line.startswith(start) and line.endswith(end) and " " not in name:
            return name
    return None


def chosen(place: str, call: dict, prompt: str) -> tuple[int, dict]:  # type: ignore[type-arg]  # plain data
    """Returns the first rule that fits and is not used up, with its number."""
    rules = marshal.loads(read(f"{place}/rules"))
    for number, rule in enumerate(rules):
        fits = all(call[key] == rule[key] for key in call.keys() & rule.keys())
        if fits and rule.get("contains", "") in prompt and claimed(place, number, rule):
            return number, rule
    sys.exit(f"no rule for {call}")


def claimed(place: str, number: int, rule: dict) -> bool:  # type: ignore[type-arg]  # plain data
    """Takes one of a rule's uses; programs that run side by side never take the same one."""
    for use in range(rule.get("times", 0)):
        try:
            os.close(os.open(f"{place}/{number}.{use}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        return True
    return "times" not in rule


def note(log: str, call: dict) -> None:  # type: ignore[type-arg]  # plain data
    line = as_json(call) + "\n"
    with open(log, "ab", buffering=0) as file:
        file.write(line.encode())


def answer(program: str, argv: list[str], rule: dict) -> None:  # type: ignore[type-arg]  # plain data
    for find, put in rule.get("edit", ()):
        write(ARTIFACT, read_text(ARTIFACT).replace(find, put).encode())
    if "damage" in rule:
        damage(rule["damage"], ARTIFACT)
    time.sleep(rule.get("seconds", 0))
    if "raw" in rule:
        sys.stdout.write(rule["raw"])
    else:
        text = rule.get("text", "") * rule.get("repeated", 1)
        SPEAK[program](text, whole="stream-json" not in argv or rule.get("whole", False))
    sys.stdout.flush()
    sys.stderr.write(rule.get("stderr", ""))
    sys.exit(rule.get("code", 0))


def read_text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)


def make_folder(path: str) -> None:
    os.unlink(path)
    os.mkdir(path)
    write(f"{path}/{ARTIFACT}", b"The sea is wide.")


def make_link(path: str) -> None:
    os.unlink(path)
    write("other.md", b"The sea is wide.")
    os.symlink("other.md", path)


def damage(kind: str, path: str) -> None:
    """Does to a file what an editing agent may do instead of editing it."""
    match kind:
        case "deleted":
            os.unlink(path)
        case "folder":
            make_folder(path)
        case "link":
            make_link(path)
        case _:
            write(path, damaged(kind, read(path)))


def damaged(kind: str, data: bytes) -> bytes:
    return {
        "nothing": data,
        "grown": data.replace(b"see", b"sea " * 40),
        "emptied": b"",
        "blanked": b" \n\t\n",
        "spaced": data.replace(b" ", b"  "),
        "ended": data + b"\n \n",
        "crlf": data.replace(b"\n", b"\r\n"),
    }[kind]


def as_json(value: object) -> str:
    match value:
        case str():
            return quoted(value)
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case dict():
            members = [f"{quoted(key)}: {as_json(each)}" for key, each in value.items()]
            return "{" + ", ".join(members) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(as_json, value)) + "]"
    raise TypeError(value)


def say(**event: object) -> None:
    print(as_json(event), flush=True)


def claude(text: str, *, whole: bool) -> None:
    if not whole:
        say(type="system", subtype="init", session_id="s")
        delta = {"type": "text_delta", "text": text}
        say(type="stream_event", event={"type": "content_block_delta", "delta": delta})
        say(type="stream_event", event={"type": "message_stop"})
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
        print(as_json({"session_id": "g", "response": text, "stats": stats}))
        return
    say(type="init", session_id="g", model="m")
    say(type="message", role="assistant", content=text, delta=True)
    say(type="result", status="success", stats={"models": {"m": USAGE}})


SPEAK = {"claude": claude, "codex": codex, "gemini": gemini}
