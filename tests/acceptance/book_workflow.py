"""A contract workflow about a small book, and an external worker that does its work."""

WORKFLOW = """
import sqlite3
from pathlib import Path

from signoff.contracts import define_workflow

FILE = Path(__file__).parent / "book.db"

if not FILE.exists():
    with sqlite3.connect(FILE) as db:
        db.execute("CREATE TABLE chapters (id INTEGER PRIMARY KEY, words INTEGER, done INTEGER)")
        db.executemany("INSERT INTO chapters VALUES (?, 0, 0)", [(1,), (2,), (3,)])


def written(ctx):
    return ctx.db.value("SELECT words FROM chapters WHERE id = ?", [ctx.item]) > 100


def finish(ctx):
    slow = FILE.with_name("slow")
    if slow.exists():
        slow.rename(FILE.with_name("started"))
        import time
        time.sleep(30)
    ctx.db.stage("UPDATE chapters SET done = 1 WHERE id IN (1, 2, 3)")
    return {"finished": True}


BOOK = define_workflow({
    "type": "book",
    "database": str(FILE),
    "steps": [
        {
            "name": "plan",
            "prompt": "Say which chapters of {{title}} to write.",
            "schema": {
                "type": "object",
                "properties": {"chapters": {"type": "array", "items": {"type": "integer"}}},
                "required": ["chapters"],
            },
            "postconditions": [
                {"name": "planned", "check": "size(result.chapters) > 0", "error": "plan is empty"}
            ],
            "next": "write",
        },
        {
            "name": "write",
            "prompt": "Write chapter {{item}}.",
            "parallel": True,
            "parallelKey": "chapters",
            "postconditions": [
                {"name": "written", "check": written, "error": "the chapter is too short"}
            ],
            "next": "review",
        },
        {
            "name": "review",
            "prompt": "Review the chapters.",
            "postconditions": [
                {"name": "decided", "check": 'result.decision in ["approved", "rejected"]'}
            ],
            "next": {
                "condition": 'result.decision === "approved" || hint == "gate"',
                "onTrue": "gate", "onFalse": "write", "maxIterations": 2,
            },
        },
        {
            "name": "gate",
            "humanGate": {
                "prompt": "Publish?",
                "options": [
                    {"label": "Approve", "nextStep": "finish"},
                    {"label": "Reject", "nextStep": None},
                ],
            },
        },
        {"name": "finish", "command": finish},
    ],
})
"""

WORKER = '''
"""An external worker: takes work and submits it until there is none left."""

import json
import subprocess
import sys

program, run = sys.argv[1:]


def run_command(*arguments):
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout)


def work_on(item):
    if item["step"] == "plan":
        return ["--result", json.dumps({"chapters": [1, 2, 3]})]
    if item["step"] == "write":
        change = ["UPDATE chapters SET words = 900 WHERE id = ?", [item["item"]]]
        return ["--result", "{}", "--statements", json.dumps([change])]
    return ["--result", json.dumps({"decision": "approved"})]


code, status = run_command("next", run)
while status["work"]:
    item = status["work"][-1]
    code, status = run_command("submit", run, "--item", str(item["number"]), *work_on(item))
    assert status["accepted"], status
sys.exit(code)
'''
