"""Plays a vendor's program: run with a folder and a kind, it acts out what the folder says.

It imports nothing of ours, as the program of a vendor would not. The folder holds
`behaviors.json`; every call leaves a numbered file there with what it was asked.
"""

import datetime
import json
import os
import sys
import time
from pathlib import Path


def main() -> None:
    place, kind, *argv = sys.argv[1:]
    asked = sys.stdin.buffer.read().decode()
    number = leave(Path(place), kind, argv, asked)
    behaviors = json.loads(Path(place, "behaviors.json").read_text())
    KINDS[kind](behaviors[min(number, len(behaviors) - 1)])


def leave(place: Path, kind: str, argv: list[str], asked: str) -> int:
    """Takes the next number and writes down the call under it."""
    number = 0
    while True:
        try:
            os.close(os.open(place / f"{number}.claim", os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            number += 1
    system, prompt = None, asked
    if "--append-system-prompt-file" in argv:
        system = Path(argv[argv.index("--append-system-prompt-file") + 1]).read_text()
    elif "\n\n" in asked:
        system, prompt = asked.split("\n\n", 1)
    model = argv[argv.index("--model") + 1] if "--model" in argv else None
    call = {"pid": os.getpid(), "prompt": prompt, "system": system, "model": model}
    written = place / f"{number}.part"
    written.write_text(json.dumps(call))
    written.rename(place / f"{number}.json")
    return number


def say(**event: object) -> None:
    print(json.dumps(event), flush=True)


def die() -> None:
    os.kill(os.getpid(), 9)


def hang() -> None:
    time.sleep(900)


def claude(act: dict) -> None:  # type: ignore[type-arg]  # plain data
    say(type="system", subtype="init", session_id="s")
    usage = act.get("usage") and {"input_tokens": 12, "output_tokens": 7}
    match act["does"]:
        case "TextReply" | "TruncatedReply":
            stop = "max_tokens" if act["does"] == "TruncatedReply" else "end_turn"
            say(
                type="result",
                subtype="success",
                is_error=False,
                result=act["text"],
                stop_reason=stop,
                session_id="s",
                **({"usage": usage} if usage else {}),
            )
        case "BrokenReply":
            print('{"type":"result","result":"' + act["text"], end="", flush=True)
            die()
        case "Hang":
            if act["after"]:
                delta = {"type": "text_delta", "text": act["after"]}
                say(type="stream_event", event={"type": "content_block_delta", "delta": delta})
            hang()
        case "Unreachable":
            claude_fails(None, "API Error: Connection refused (ECONNREFUSED)")
        case "Refusal":
            if act["seconds"]:
                until = int(time.time()) + act["seconds"]
                say(type="rate_limit_event", rate_limit_info={"resetsAt": until})
            claude_fails(
                *{
                    "AUTH": (401, f"Invalid API key {os.environ['ANTHROPIC_API_KEY']}"),
                    "QUOTA": (429, "You've hit your usage limit"),
                    "BUSY": (429, "API Error: Request rejected (429)"),
                    "DOWN": (500, "API Error: 500 Internal server error"),
                    "NO_MODEL": (404, "There's an issue with the selected model"),
                }[act["fault"]]
            )


def claude_fails(status: object, words: str) -> None:
    say(type="result", subtype="success", is_error=True, api_error_status=status, result=words)
    sys.exit(1)


def codex(act: dict) -> None:  # type: ignore[type-arg]  # plain data
    say(type="thread.started", thread_id="t")
    usage = act.get("usage") and {"input_tokens": 12, "output_tokens": 7}
    match act["does"]:
        case "TextReply":
            say(type="item.completed", item={"type": "agent_message", "text": act["text"]})
            say(type="turn.completed", **({"usage": usage} if usage else {}))
        case "BrokenReply":
            say(type="item.completed", item={"type": "agent_message", "text": act["text"]})
            die()
        case "Hang":
            if act["after"]:
                say(type="item.completed", item={"type": "agent_message", "text": act["after"]})
            hang()
        case "Unreachable":
            for _ in range(9):
                say(type="error", message="Reconnecting... waiting for network (refused)")
            hang()
        case "Refusal":
            codex_fails(act)


def codex_fails(act: dict) -> None:  # type: ignore[type-arg]  # plain data
    quota = "You've hit your usage limit."
    if act["seconds"]:
        moment = datetime.datetime.now().astimezone() + datetime.timedelta(seconds=act["seconds"])
        quota += moment.strftime(" Try again at %b %dth, %Y %I:%M %p.")
    words = {
        "AUTH": f"unexpected status 401 Unauthorized: {os.environ['CODEX_API_KEY']}",
        "QUOTA": quota,
        "BUSY": "exceeded retry limit, last status: 429 Too Many Requests",
        "DOWN": "We're currently experiencing high demand",
        "NO_MODEL": "unexpected status 404 Not Found: The model does not exist",
    }[act["fault"]]
    say(type="turn.failed", error={"message": words})
    sys.exit(1)


def gemini(act: dict) -> None:  # type: ignore[type-arg]  # plain data
    say(type="init", session_id="g")
    stats = {"models": {"m": {"input_tokens": 12, "output_tokens": 7}}} if act.get("usage") else {}
    match act["does"]:
        case "TextReply":
            say(type="message", role="assistant", content=act["text"])
            say(type="result", status="success", stats=stats)
        case "BrokenReply":
            say(type="message", role="assistant", content=act["text"])
            die()
        case "Hang":
            if act["after"]:
                say(type="message", role="assistant", content=act["after"])
            hang()
        case "Unreachable":
            gemini_fails("[API Error: exception TypeError: fetch failed sending request]")
        case "Refusal":
            later = f" Please retry in {act['seconds']}s." if act["seconds"] else ""
            gemini_fails(
                {
                    "AUTH": refusal(401, f"API key not valid: {os.environ['GEMINI_API_KEY']}"),
                    "QUOTA": refusal(429, f"You exceeded your current quota.{later}"),
                    "BUSY": refusal(429, f"Too many requests.{later}"),
                    "DOWN": refusal(500, "oops"),
                    "NO_MODEL": "[API Error: models/x is not found]",
                }[act["fault"]]
            )


def refusal(status: int, words: str) -> str:
    return "[API Error: " + json.dumps({"error": {"code": status, "message": words}}) + "]"


def gemini_fails(words: str) -> None:
    say(type="result", status="error", error={"type": "unknown", "message": words})
    sys.exit(1)


def command(act: dict) -> None:  # type: ignore[type-arg]  # plain data
    match act["does"]:
        case "TextReply":
            say(text=act["text"], **({"in": 12, "out": 7} if act["usage"] else {}))
        case "BrokenReply":
            print('{"text": "' + act["text"], end="", flush=True)
            die()
        case "Hang":
            print(act["after"], flush=True)
            hang()
        case "Unreachable":
            sys.exit(12)
        case "Refusal":
            later = f", try again in {act['seconds']} seconds" if act["seconds"] else ""
            print(f"{act['fault']} {os.environ['STUB_MODEL_KEY']}{later}", file=sys.stderr)
            sys.exit(
                {"AUTH": 10, "QUOTA": 11, "BUSY": 12, "DOWN": 12, "NO_MODEL": 13}[act["fault"]]
            )


KINDS = {"claude": claude, "codex": codex, "gemini": gemini, "command": command}

main()
