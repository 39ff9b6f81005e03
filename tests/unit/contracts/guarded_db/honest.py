"""Statements that must get through, and run, on the library of `SCHEMA`."""

import json
from pathlib import Path

SCHEMA = {
    "sqlite": """
CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT, price REAL, added TEXT, meta TEXT);
CREATE TABLE chapters (
    id INTEGER PRIMARY KEY, book INTEGER REFERENCES books (id) ON DELETE CASCADE ON UPDATE CASCADE,
    n INTEGER, body TEXT, UNIQUE (book, n));
CREATE TABLE "Odd Name" ("order" INTEGER, größe TEXT);
CREATE TABLE changes (what TEXT);
CREATE TRIGGER tell AFTER UPDATE ON books BEGIN
    INSERT INTO changes VALUES ('book ' || new.id); DELETE FROM changes WHERE what = 'old'; END;
CREATE VIRTUAL TABLE pages USING fts5 (body);
INSERT INTO books VALUES (1, 'Dune', 9.5, '2026-01-01', '{"a": 1}'), (2, 'Emma', 5, NULL, NULL);
INSERT INTO chapters VALUES (1, 1, 1, 'sand'), (2, 1, 2, 'worm'), (3, 2, 1, 'tea');
INSERT INTO "Odd Name" VALUES (1, 'klein');
INSERT INTO pages VALUES ('the word');
""",
    "postgres": """
CREATE TABLE books (
    id SERIAL PRIMARY KEY, title TEXT, price NUMERIC, added TIMESTAMPTZ, meta JSONB, tags TEXT[]);
CREATE TABLE chapters (
    id SERIAL PRIMARY KEY, book INT REFERENCES books (id) ON DELETE CASCADE ON UPDATE CASCADE,
    n INT, body TEXT, CONSTRAINT place UNIQUE (book, n));
CREATE TABLE "Odd Name" ("order" INT, größe TEXT);
INSERT INTO books VALUES (1, 'Dune', 9.5, now(), '{"a": 1}', '{x}');
INSERT INTO books VALUES (2, 'Emma', 5);
INSERT INTO chapters VALUES (1, 1, 1, 'sand'), (2, 1, 2, 'worm'), (3, 2, 1, 'tea');
INSERT INTO "Odd Name" VALUES (1, 'klein');
SELECT setval('books_id_seq', 100), setval('chapters_id_seq', 100);
""",
}

SHARED = """
SELECT 1
SELECT * FROM books
SELECT * FROM books;
select title from books where id = 1
SELECT 1 -- a note; with a semicolon
SELECT /* DROP TABLE books */ 1
SELECT 'DROP TABLE books; --' AS text
SELECT 'it''s; -- fine' AS text
SELECT "title" FROM "books"
SELECT "order", größe FROM "Odd Name"
SELECT b.title, c.n FROM books AS b JOIN chapters AS c ON c.book = b.id
SELECT b.title FROM books b LEFT JOIN chapters c ON c.book = b.id WHERE c.id IS NULL
SELECT b.title FROM books b CROSS JOIN chapters c
SELECT title FROM books WHERE id IN (1, 2, 3) AND price BETWEEN 1 AND 10
SELECT title FROM books WHERE title LIKE 'D%' OR title IS NULL
SELECT title FROM books WHERE EXISTS (SELECT 1 FROM chapters WHERE book = books.id)
SELECT title FROM books WHERE id = (SELECT max(id) FROM books)
SELECT count(*), sum(price), avg(price), min(id), max(id) FROM books
SELECT count(DISTINCT title) FROM books
SELECT book, count(*) FROM chapters GROUP BY book HAVING count(*) > 1 ORDER BY 2 DESC, book
SELECT DISTINCT title FROM books ORDER BY title LIMIT 5 OFFSET 1
SELECT CASE WHEN price > 5 THEN 'dear' ELSE 'cheap' END FROM books
SELECT coalesce(title, 'none'), nullif(price, 0), upper(title), lower(title) FROM books
SELECT length(title), trim(title), replace(title, 'u', 'o'), substr(title, 1, 2) FROM books
SELECT round(price), abs(id), -id, id % 2, id + 1, id * 2 FROM books
SELECT title || ' by ' || 'nobody' FROM books
SELECT CAST(id AS TEXT) FROM books
SELECT id FROM books UNION SELECT id FROM chapters
SELECT id FROM books UNION ALL SELECT id FROM chapters EXCEPT SELECT 1
SELECT id FROM books INTERSECT SELECT id FROM chapters
VALUES (1, 'a'), (2, 'b')
WITH long AS (SELECT * FROM chapters WHERE n > 1) SELECT count(*) FROM long
WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS x FROM a) SELECT x FROM b
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) SELECT i FROM n
SELECT row_number() OVER (PARTITION BY book ORDER BY n) FROM chapters
SELECT sum(n) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM chapters
SELECT lag(n) OVER w, lead(n) OVER w FROM chapters WINDOW w AS (PARTITION BY book ORDER BY n)
SELECT count(*) FILTER (WHERE n > 1) FROM chapters
SELECT CURRENT_TIMESTAMP, CURRENT_DATE
SELECT EXISTS (SELECT 1 FROM books WHERE id = 1) AS there
SELECT x.n FROM (SELECT n FROM chapters) AS x
INSERT INTO books (title) VALUES ('Emma; DROP TABLE books')
INSERT INTO books (title, price) VALUES ('a', 1), ('b', NULL)
INSERT INTO books DEFAULT VALUES
INSERT INTO books (title) SELECT body FROM chapters WHERE n = 1
INSERT INTO books (title) VALUES ('c') RETURNING id, title
INSERT INTO books (id, title) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET title = excluded.title
INSERT INTO books (id, title) VALUES (1, 'x') ON CONFLICT DO NOTHING
INSERT INTO chapters (book, n) VALUES (1, 1) ON CONFLICT (book, n) DO UPDATE SET body = 'y'
INSERT INTO books (id, title) SELECT id, 'y' FROM books WHERE id = 1 ON CONFLICT (id) DO NOTHING
UPDATE books SET title = 'New' WHERE id IN (SELECT id FROM books WHERE price > 5 LIMIT 1)
WITH x AS (SELECT 'd' AS t) INSERT INTO books (title) SELECT t FROM x
UPDATE books SET title = 'New' WHERE id = 1
UPDATE books SET title = 'New', price = price + 1 WHERE id = 1 AND price > 0
UPDATE books SET title = NULL WHERE title = 'Old' OR id = 7
UPDATE books SET title = 'New' WHERE id IN (SELECT book FROM chapters WHERE n = 2)
UPDATE books SET title = 'New' WHERE EXISTS (SELECT 1 FROM chapters c WHERE c.book = books.id)
UPDATE books SET price = (SELECT count(*) FROM chapters WHERE book = books.id) WHERE id = 1
UPDATE books SET title = c.body FROM chapters AS c WHERE c.book = books.id AND c.n = 1
UPDATE books SET title = 'New' WHERE id = 1 RETURNING id
UPDATE books SET id = 50 WHERE id = 2
UPDATE "Odd Name" SET größe = 'groß' WHERE "order" = 1
WITH x AS (SELECT 2 AS id) UPDATE books SET title = 'New' WHERE id IN (SELECT id FROM x)
UPDATE chapters SET body = 'longer' WHERE length(body) < 4
"""

SQLITE = """
SELECT [title], `id` FROM books
SELECT rowid, * FROM main.books WHERE title = 'dune' COLLATE NOCASE
SELECT json_extract(meta, '$.a'), meta ->> '$.a', meta -> 'a' FROM books
SELECT value FROM json_each('[1, 2]')
SELECT json_object('a', 1), json_array(1, 2), json_group_array(id) FROM books
SELECT date('now'), datetime('now', '-1 day'), strftime('%Y', 'now'), julianday('now')
SELECT group_concat(title, ', '), total(price), typeof(price), hex(title) FROM books
SELECT printf('%d', id), ifnull(title, ''), iif(id > 1, 'a', 'b'), instr(title, 'u') FROM books
SELECT title FROM books WHERE title GLOB 'D*'
SELECT body FROM pages WHERE pages MATCH 'word' ORDER BY rank
SELECT snippet(pages, 0, '<', '>', '...', 5), bm25(pages) FROM pages WHERE pages MATCH 'word'
INSERT INTO pages (body) VALUES ('another word')
UPDATE pages SET body = 'changed' WHERE rowid = 1
INSERT OR IGNORE INTO books (id, title) VALUES (1, 'x')
SELECT name FROM sqlite_master WHERE type = 'table'
SELECT x'0aff', 1e3, 0x10, NULL, TRUE
SELECT last_insert_rowid(), changes(), random() IS NOT NULL, sqlite_version()
SELECT title IS NOT 'x', id IS DISTINCT FROM 1 FROM books
"""

POSTGRES = """
SELECT id::text, '2026-01-01'::date, price::int FROM public.books
SELECT meta ->> 'a', meta -> 'a', meta @> '{"a": 1}'::jsonb FROM books
SELECT jsonb_build_object('id', id), to_jsonb(title), jsonb_array_length('[1]'::jsonb) FROM books
SELECT now() - interval '1 day', date_trunc('day', added), extract(year FROM added) FROM books
SELECT to_char(added, 'YYYY-MM-DD'), age(added), added AT TIME ZONE 'UTC' FROM books
SELECT array_agg(title ORDER BY id), string_agg(title, ', ') FROM books
SELECT title FROM books WHERE id = ANY(ARRAY[1, 2])
SELECT title FROM books WHERE 'x' = ANY(tags)
SELECT DISTINCT ON (book) book, n FROM chapters ORDER BY book, n DESC
SELECT i FROM generate_series(1, 3) AS g(i)
SELECT u FROM unnest(ARRAY['a', 'b']) AS u
SELECT b.id, x.n FROM books b, LATERAL (SELECT n FROM chapters c WHERE c.book = b.id LIMIT 1) x
SELECT $$a; DROP TABLE books$$ AS text, $x$ it's $$ fine $x$ AS other
SELECT E'it\\'s; fine', E'\\n'
SELECT title FROM books WHERE title ILIKE 'd%' OR title ~ '^D' OR title SIMILAR TO 'D%'
SELECT to_tsvector('english', body) @@ plainto_tsquery('english', 'sand') FROM chapters
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY price) FROM books
SELECT md5(title), split_part(title, 'u', 1), regexp_replace(title, 'u', 'o', 'g') FROM books
SELECT left(title, 2), right(title, 2), initcap(title), position('u' IN title) FROM books
SELECT title FROM books FETCH FIRST 1 ROWS ONLY
TABLE books
SELECT book, n, count(*) FROM chapters GROUP BY ROLLUP (book, n)
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'
INSERT INTO books (title, tags) VALUES (gen_random_uuid()::text, ARRAY['a']), (DEFAULT, '{}')
INSERT INTO chapters (book, n) VALUES (1, 1) ON CONFLICT ON CONSTRAINT place DO UPDATE SET n = 9
UPDATE books SET meta = jsonb_set(meta, '{a}', '2'), added = now() WHERE id = 1
UPDATE books SET (title, price) = ('x', 1) WHERE id = 1
UPDATE books AS b SET title = 'x' FROM chapters c WHERE c.book = b.id AND c.n = 2 RETURNING b.id
WITH x AS MATERIALIZED (SELECT 1 AS id) SELECT id FROM x
SELECT title IS DISTINCT FROM 'x', greatest(1, 2), least(1, 2), now() FROM books
SELECT meta ? 'a', meta ?| ARRAY['a'], meta ?& ARRAY['a'], meta #>> '{a}', meta - 'a' FROM books
SELECT e.key, e.value FROM books, jsonb_each(meta) AS e
SELECT g.i, u.u FROM generate_series(1, 2) AS g(i), unnest(ARRAY[1]) AS u(u)
SELECT (jsonb_each(meta)).key FROM books
SELECT rpad(title, 30), lpad(id::text, 5, '0'), repeat('-', 40) FROM books
SELECT format('%s: %s', id, title) FROM books
SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LIMIT 3
SELECT relname, n_live_tup FROM pg_stat_user_tables
"""

DELETES = [
    "id = 1",
    "id = 1 AND title = 'Dune'",
    "title LIKE 'D%'",
    "id IN (SELECT book FROM chapters WHERE n = 2)",
    "EXISTS (SELECT 1 FROM chapters WHERE chapters.book = books.id)",
    "title IS NULL OR price > 100",
]
"""Conditions for rows of books that may be deleted, given a token."""


ORM_STATEMENTS = json.loads(Path(__file__).with_name("orm_statements.json").read_text("utf-8"))
"""What SQLAlchemy and Django sent to each kind of database, with the schema they created.

Recorded from real sessions: each statement once, with its values, in its order. What needs
functions that Django adds to its SQLite connections is left out, and values that JSON cannot store.
"""


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


HONEST = {
    "sqlite": lines(SHARED) + lines(SQLITE),
    "postgres": lines(SHARED) + lines(POSTGRES),
}
