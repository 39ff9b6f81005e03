PRAGMA user_version = 2;
PRAGMA application_id = 5333247;
BEGIN TRANSACTION;
CREATE TABLE blobs (
    digest BLOB NOT NULL UNIQUE,
    text   TEXT NOT NULL
);
INSERT INTO "blobs" VALUES(X'7D57DE6A6FCA005EF418B40BEE5C7CBA3C04F843F394E439A59B8A585D68B74F','{"name": "story", "entry_point": "research", "notation": "python", "max_iterations": null, "limits": {}, "source": {}, "steps": [{"id": "research", "title": "", "actions": [], "handler": "research:fac76087c3d7b0a1b9d6ab6bfb9ed434d5e5979776cfb9fe1164382902a926e1", "next": {"ok": ["draft", null, false, "end", false]}, "phase": "", "preconditions": [], "postconditions": [], "retries": 1, "timeout": null, "limits": {}, "gate": null}, {"id": "draft", "title": "", "actions": [], "handler": "draft:11982bda3f17953027a34579de333c202f88a17479046f49d813e2a95bc3a6ed", "next": {"ok": ["judge", null, false, "end", false]}, "phase": "", "preconditions": [], "postconditions": [["second", "try again", "second_try:642ec5b008e7870c51fa51bc93d87279d10c6d398741e2bd8b2dc9adca00ad96"]], "retries": 1, "timeout": null, "limits": {}, "gate": null}, {"id": "judge", "title": "", "actions": [], "handler": "judge:edeeba87e7877815082364fa32bd14bc49e634ef62676f688e46b355e21aa052", "next": {"iterate": ["draft", 3, true, "end", false], "ok": ["sign", null, false, "end", false]}, "phase": "", "preconditions": [], "postconditions": [], "retries": 1, "timeout": null, "limits": {}, "gate": null}, {"id": "sign", "title": "", "actions": [], "handler": null, "next": {"gate:yes": [null, null, false, "end", false], "gate:no": ["draft", null, false, "end", false]}, "phase": "", "preconditions": [], "postconditions": [], "retries": 1, "timeout": null, "limits": {}, "gate": ["Publish?", [], []]}]}');
CREATE TABLE checkpoints (
    run   INTEGER PRIMARY KEY,
    seq   INTEGER NOT NULL,
    state TEXT NOT NULL
);
CREATE TABLE inbox (
    id          INTEGER PRIMARY KEY,
    run         INTEGER NOT NULL,
    name        TEXT NOT NULL,      -- of the run
    effect      TEXT NOT NULL,
    kind        TEXT NOT NULL,
    prompt      TEXT NOT NULL,
    form        TEXT NOT NULL,
    digest      TEXT NOT NULL,
    step        TEXT NOT NULL,
    opened_at   REAL NOT NULL,
    deadline    REAL,
    state       TEXT NOT NULL DEFAULT 'open',
    answer      TEXT,
    answered_by TEXT,
    answered_at REAL
);
CREATE TABLE journal (
    run    INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    events TEXT NOT NULL,
    PRIMARY KEY (run, seq)
);
INSERT INTO "journal" VALUES(1,1,'[{"e":"run_started","at":1700000000.0,"workflow":"story","definition":"1c8ef147737cb493b149e546a16d6b2f9405fb784b126c5334afa6db498036d0","entry":"research","params":{"topics":["cats","dogs","fish"]},"seed":"49a239d611e05d98"}]');
INSERT INTO "journal" VALUES(1,2,'[{"e":"effect_started","at":1700000000.0,"id":"topics#1","kind":"map","digest":"6b86bfd4204886496aecd389363f4ad58bccfc3995b34d6aa9ddce86d4d4b868","payload":{"items":3}},{"e":"effect_started","at":1700000000.0,"id":"topics#1[0]/ask#1","kind":"ask","digest":"45899421962ff1bdd8a8085eff56306aeb0c647aead42500c31c1865e2dce6fd","payload":{"agent":"claude","prompt":"A fact about cats. "}},{"e":"effect_started","at":1700000000.0,"id":"topics#1[1]/ask#1","kind":"ask","digest":"b4f6df9e48285f51d78fe7a6c002cad08adf108371fcfef22e67e29b7636371f","payload":{"agent":"claude","prompt":"A fact about dogs. "}},{"e":"effect_started","at":1700000000.0,"id":"topics#1[2]/ask#1","kind":"ask","digest":"08c477b7b8826fa09c1370de78996b611fc1cbc929b618e80c778da0453305da","payload":{"agent":"claude","prompt":"A fact about fish. "}}]');
CREATE TABLE late (
    run     INTEGER NOT NULL,
    effect  TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    PRIMARY KEY (run, effect, attempt)
) WITHOUT ROWID;
CREATE TABLE ledger (
    run            INTEGER NOT NULL,
    step           TEXT NOT NULL,
    agent          TEXT NOT NULL,
    model          TEXT NOT NULL,
    calls          INTEGER NOT NULL,
    tokens_in      INTEGER NOT NULL,
    tokens_out     INTEGER NOT NULL,
    usd            REAL NOT NULL,
    unknown_tokens INTEGER NOT NULL,
    unknown_usd    INTEGER NOT NULL,
    PRIMARY KEY (run, step, agent, model)
) WITHOUT ROWID;
CREATE TABLE owners (
    id    TEXT PRIMARY KEY,
    host  TEXT NOT NULL,
    pid   INTEGER NOT NULL,
    born  TEXT NOT NULL,
    until REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE runs (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    workflow    TEXT NOT NULL,
    target      TEXT NOT NULL,
    definition  TEXT NOT NULL,
    description BLOB NOT NULL,      -- digest of the frozen definition's JSON, in blobs
    status      TEXT NOT NULL,
    step        TEXT,
    iteration   INTEGER NOT NULL DEFAULT 1,
    reason      TEXT NOT NULL DEFAULT '',
    due_at      REAL,
    created_at  REAL NOT NULL,
    updated_at  REAL NOT NULL,
    head        INTEGER NOT NULL DEFAULT 0,
    fence       INTEGER NOT NULL DEFAULT 0,
    owner       TEXT,
    cancel      TEXT
);
INSERT INTO "runs" VALUES(1,'story','story','','1c8ef147737cb493b149e546a16d6b2f9405fb784b126c5334afa6db498036d0',X'7D57DE6A6FCA005EF418B40BEE5C7CBA3C04F843F394E439A59B8A585D68B74F','running','research',1,'',NULL,1700000000.0,1700000000.0,2,1,NULL,NULL);
CREATE TABLE schema_migrations (
    version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at REAL NOT NULL
);
INSERT INTO "schema_migrations" VALUES(1,'first',0.0);
INSERT INTO "schema_migrations" VALUES(2,'ledger_in_checkpoints',0.0);
CREATE INDEX runs_due ON runs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX runs_owner ON runs (owner) WHERE owner IS NOT NULL;
CREATE INDEX runs_status ON runs (status);
CREATE INDEX inbox_live ON inbox (run) WHERE state IN ('open', 'answered');
CREATE INDEX inbox_open ON inbox (id, name, step, kind, prompt, opened_at, deadline, state)
    WHERE state = 'open';
COMMIT;
