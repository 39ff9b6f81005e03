import pytest

from signoff.profiles.library.jpa_mt.profile import TableDefinition, find_tables
from tests.tables import table


@table(
    ("sql", "name"),
    [
        ("create table t (a int, b text)", "t"),
        ("CREATE TABLE IF NOT EXISTS shop.T (A INT, B INT);", "shop.T"),
        ("create unlogged table t (a numeric(12, 2) check (a in (1, 2)), b int)", "t"),
        ('create table "shop"."t" ("a" int, "b" int, "odd name" int)', "shop.t"),
        ("create table `shop`.`t` (`a` int, `b` int, key ix (a))", "shop.t"),
        ("CREATE TABLE [dbo].[t] ([a] int, [b] int)\nGO", "dbo.t"),
        ("create table t (a int, -- not c, c int\n /* c int, */ b text[], f int[3])", "t"),
        ("create table t (a text default 'x, c int)', b text default 'it''s')", "t"),
        ("create or replace view t (a, b) as values (1, 2)", "t"),
        ("create table t (a int); alter table only x.t add column if not exists b int", "t"),
        ("create table t (a int) alter table t add b int, add constraint d check (b)", "t"),
        ("alter table t rename column a to b; create table t (a int);", "t"),
        ("create function f() returns table (x) $$create table u$$; create table t (a, b)", "t"),
        ("grant create on schema s to u; create index on t (c); create table t (a int, b)", "t"),
        ("create table t (a int, b", "t"),
    ],
)  # fmt: skip
def test_it_reads_the_dialects_of_common_databases(sql: str, name: str) -> None:
    """A definition that a database accepts must not be refused."""
    (found,) = find_tables(sql)

    assert found.name == name
    assert found.may_have("a")
    assert found.may_have("B")
    assert not found.may_have("c")


@pytest.mark.parametrize(
    "sql",
    [
        "create table t as select * from u",
        "create table t (like u including all, a int)",
        "create table t like u",
        "create table t (select 1)",
        "create table t (a int) inherits (u)",
        "create table t partition of u for values in (1)",
        "create materialized view t as select * from u",
    ],
)
def test_columns_from_elsewhere_are_not_known(sql: str) -> None:
    """Such a table may well have the column that is asked for."""
    (table,) = find_tables(sql)

    assert table.name == "t"
    assert table.may_have("tenant_id")


@pytest.mark.parametrize(
    "text", ["", "-- create table t (a int)", "'create table t (a int)'", "create", "drop table t"]
)
def test_a_text_without_a_definition_has_no_table(text: str) -> None:
    """A table in a comment is not defined."""
    assert find_tables(text) == []


@pytest.mark.parametrize("part", ["create table ", "(", "'", '"', "$a$ $", "/* ", "[a", ".", "`x"])
def test_any_text_can_be_read(part: str) -> None:
    """A file that is not SQL leads to a message, not to a crash or a long wait."""
    for found in find_tables("create table t (" + part * 20_000):
        assert len(found.name) < 1000


@pytest.mark.parametrize(
    ("name", "other", "same"),
    [
        ("products", "PRODUCTS", True),
        ("shop.products", "products", True),
        ("products", "shop.products", True),
        ("db.shop.products", "shop.products", True),
        ("shop.products", "stock.products", False),
        ("products", "product", False),
        ("products", "products.shop", False),
    ],
)
def test_either_name_may_leave_out_the_schema(name: str, other: str, same: bool) -> None:
    """A schema is often set for the session that runs the file."""
    assert TableDefinition(name, frozenset()).matches(other) is same
