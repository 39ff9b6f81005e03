-- What editing leaves behind: plans, measures, reviews, and how each run of it ended.
CREATE TABLE strategic_plans (
    id TEXT PRIMARY KEY,
    run_id TEXT NOT NULL,
    book_id TEXT NOT NULL REFERENCES books (id),
    goal TEXT NOT NULL,
    areas_json TEXT NOT NULL
);

CREATE TABLE metrics (
    run_id TEXT NOT NULL,
    version_id TEXT NOT NULL REFERENCES book_versions (id),
    chapter INTEGER NOT NULL,
    words INTEGER NOT NULL,
    sentences INTEGER NOT NULL,
    ease REAL NOT NULL,
    PRIMARY KEY (run_id, version_id, chapter)
);

CREATE TABLE workflow_artifacts (
    id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    version_id TEXT NOT NULL REFERENCES book_versions (id),
    content TEXT NOT NULL
);

CREATE TABLE workflow_runs (
    id TEXT PRIMARY KEY,
    workflow_type TEXT NOT NULL,
    book_id TEXT NOT NULL REFERENCES books (id),
    status TEXT NOT NULL CHECK (status IN ('running', 'completed'))
);
