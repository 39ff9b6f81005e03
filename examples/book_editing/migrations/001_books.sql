-- A book has versions, a version has chapters. Nothing is ever changed in place: work goes into
-- a new version, and a person decides whether it becomes the book.
CREATE TABLE books (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    analysis TEXT
);

CREATE TABLE book_versions (
    id TEXT PRIMARY KEY,
    book_id TEXT NOT NULL REFERENCES books (id),
    number INTEGER NOT NULL,
    based_on TEXT REFERENCES book_versions (id),
    status TEXT NOT NULL CHECK (status IN ('draft', 'published', 'replaced')),
    UNIQUE (book_id, number)
);

CREATE TABLE chapters (
    version_id TEXT NOT NULL REFERENCES book_versions (id),
    number INTEGER NOT NULL,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (version_id, number)
);
