"""Every SQL statement the SQLite store sends, by name."""

from __future__ import annotations

_RUN = (
    "id, name, workflow, target, definition, status, step, iteration, reason, due_at, "
    "created_at, updated_at, head, fence, owner, cancel"
)
_ITEM = (
    "id, name, effect, kind, prompt, form, digest, step, opened_at, deadline, "
    "state, answer, answered_by, answered_at"
)

CREATE_RUN = """
INSERT INTO runs (name, workflow, target, definition, description, created_at, updated_at, owner,
                  status, fence)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'running', 1)
"""
RUN_BY_NAME = f"SELECT {_RUN} FROM runs WHERE name = ?"
RUN_BY_ID = f"SELECT {_RUN} FROM runs WHERE id = ?"
RUNS = f"SELECT {_RUN} FROM runs WHERE {{where}} ORDER BY id DESC LIMIT ?"
RUN_NAMES = "SELECT name FROM runs ORDER BY id DESC LIMIT 12"
DESCRIPTION = """
SELECT blobs.text FROM runs JOIN blobs ON blobs.digest = runs.description WHERE runs.id = ?
"""

ADVANCE = """
UPDATE runs
SET head = ?, status = ?, step = ?, iteration = ?, reason = ?, due_at = ?, updated_at = ?
WHERE id = ? AND head = ? AND fence = ?
"""
ADVANCE_RUNNING = """
UPDATE runs SET head = ?, step = ?, iteration = ?, updated_at = ?
WHERE id = ? AND head = ? AND fence = ? AND status = 'running'
"""
RELEASE = "UPDATE runs SET owner = NULL WHERE id = ?"
KEEP_RUNNING = "UPDATE runs SET status = 'running', due_at = NULL WHERE id = ?"
APPEND = "INSERT INTO journal (run, seq, events) VALUES (?, ?, ?)"
JOURNAL = """
SELECT seq, events, json_valid(events) FROM journal WHERE run = ? AND seq > ? ORDER BY seq
"""

PUT_BLOB = "INSERT OR IGNORE INTO blobs (digest, text) VALUES (?, ?)"
BLOB = "SELECT text FROM blobs WHERE digest = ?"

PUT_CHECKPOINT = """
INSERT INTO checkpoints (run, seq, state) VALUES (?, ?, ?)
ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, state = excluded.state
"""
# An unreadable checkpoint is ignored: the journal contains everything that is in it.
CHECKPOINT = "SELECT seq, state FROM checkpoints WHERE run = ? AND json_valid(state)"

OPEN_ITEM = """
INSERT INTO inbox (run, name, effect, kind, prompt, form, digest, step, opened_at, deadline)
VALUES (?1, (SELECT name FROM runs WHERE id = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
"""
USE_ITEM = "UPDATE inbox SET state = 'used' WHERE id = ? AND state = 'answered'"
WITHDRAW = "UPDATE inbox SET state = 'withdrawn' WHERE run = ? AND state IN ('open', 'answered')"
WITHDRAW_ONE = "UPDATE inbox SET state = 'withdrawn' WHERE id = ? AND run = ? AND state = 'open'"
HAS_ANSWER = "SELECT 1 FROM inbox WHERE run = ? AND state = 'answered' LIMIT 1"
ITEMS = f"""
SELECT {_ITEM} FROM inbox WHERE {{where}} ORDER BY id
"""
WAITING = """
SELECT id, name, step, kind, prompt, opened_at, deadline
FROM inbox INDEXED BY inbox_open WHERE state = 'open' ORDER BY id
"""
ANSWER = """
UPDATE inbox SET state = 'answered', answer = ?, answered_by = ?, answered_at = ?
WHERE id = ? AND state = 'open'
"""

PUT_LEDGER = """
INSERT OR REPLACE INTO ledger (run, step, agent, model, calls, tokens_in, tokens_out, usd,
                               unknown_tokens, unknown_usd, tokens_cached, unknown_cached)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
LEDGER = """
SELECT step, agent, model, calls, tokens_in, tokens_out, usd, unknown_tokens, unknown_usd,
       tokens_cached, unknown_cached
FROM ledger WHERE run = ? ORDER BY step, agent, model
"""

SUMMARIES = """
SELECT run, summary FROM run_summaries JOIN runs ON runs.id = run AND runs.head = seq
WHERE version = ?
"""
PUT_SUMMARY = """
INSERT OR REPLACE INTO run_summaries (run, seq, version, summary) VALUES (?, ?, ?, ?)
"""

KEEP_LATE = "INSERT OR REPLACE INTO late (run, effect, attempt, outcome) VALUES (?, ?, ?, ?)"
LATE = "SELECT effect, attempt, outcome FROM late WHERE run = ?"

OWNER = "SELECT id, host, pid, born, until FROM owners WHERE id = ?"
PUT_OWNER = "INSERT OR REPLACE INTO owners (id, host, pid, born, until) VALUES (?, ?, ?, ?, ?)"
DROP_OWNER = "DELETE FROM owners WHERE id = ?"
DROP_LEASES = "UPDATE runs SET owner = NULL WHERE owner = ?"
TAKE = "UPDATE runs SET owner = ?, fence = fence + 1, cancel = NULL WHERE id = ?"
CANCELS = "SELECT name, cancel FROM runs WHERE owner = ? AND cancel IS NOT NULL"
ASK_CANCEL = "UPDATE runs SET cancel = ? WHERE id = ?"
ADOPT = "UPDATE runs SET definition = ?, description = ? WHERE id = ?"

_TABLES = ("journal", "checkpoints", "inbox", "ledger", "late", "run_summaries")
DELETE_RUN = (*(f"DELETE FROM {name} WHERE run = ?" for name in _TABLES),
              "DELETE FROM runs WHERE id = ?")  # fmt: skip
DELETE_BLOB = "DELETE FROM blobs WHERE digest = ?"
DESCRIPTIONS = "SELECT lower(hex(description)) FROM runs"
WITH_REFERENCES = (
    "SELECT events FROM journal",
    "SELECT state FROM checkpoints",
    "SELECT form FROM inbox",
    "SELECT answer FROM inbox",
    "SELECT outcome FROM late",
)
"""Every column whose JSON may refer to texts that are stored separately."""
