"""The guard's verdict on a statement: allowed with limits, or refused with advice.

The advice says what to use instead of a statement that is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

Dialect: TypeAlias = Literal["sqlite", "postgres"]

Params: TypeAlias = Sequence[object] | Mapping[str, object]
"""Values bound to a statement: by position, or by `:name`."""


OWN_TABLES = "signoff_"
"""The prefix of signoff's own tables, which only signoff writes to."""


OWN_SCHEMA = "signoff"
"""The schema for these tables that an administrator of PostgreSQL sets up."""


def quoted(name: str) -> str:
    """Returns a name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def quoted_table(name: str) -> str:
    """Returns the name of a table, perhaps after that of its schema, with both in quotes."""
    return ".".join(map(quoted, name.split(".")))


class StatementKind(StrEnum):
    """What an allowed statement does."""

    READ = "read"
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True)
class Names:
    """The names of one statement that the connection has to look up; most are in lower case."""

    called: frozenset[str] = frozenset()
    """Followed by parentheses, so most of them are functions."""
    of_rows: frozenset[str] = frozenset()
    """After the name of a table or a subquery, and a dot."""
    of_values: frozenset[str] = frozenset()
    """After any other expression, and a dot."""
    tables: frozenset[str] = frozenset()
    """Tables that are read or changed, without their schemas."""


@dataclass(frozen=True)
class Allowed:
    """A statement that may run, and what it may change."""

    kind: StatementKind
    table: str = ""
    """The only table it may change, in lower case and without its schema; empty for reads."""
    target: str = field(default="", compare=False)
    """That table as the statement names it, with its schema and quotes."""
    scope: str = field(default="", compare=False)
    """The statement without what it returns, in a normalized form; empty for reads."""
    every_row: bool = False
    """Whether it is an UPDATE without a condition, which a human has to confirm."""
    replaces: bool = field(default=False, compare=False)
    """Whether it is an INSERT ... DO UPDATE, which may change rows that exist."""
    names: Names = field(default=Names(), compare=False)


@dataclass(frozen=True)
class Refused:
    """A statement that may not run."""

    what: str
    instead: str

    def __str__(self) -> str:
        """Returns one line: what is refused, and what to use instead."""
        return f"{self.what}; {self.instead}"


Verdict: TypeAlias = Allowed | Refused


ALLOWED_FIRST_WORDS = frozenset({"select", "with", "values", "table", "insert", "update", "delete"})
"""Statements with another first word are refused without parsing them."""

USE_PLAIN_STATEMENT = "use a plain SELECT, INSERT, UPDATE or DELETE"
USE_UPSERT = "use INSERT ... ON CONFLICT (...) DO UPDATE, which keeps the row"
SEND_ONE_STATEMENT = "send each statement on its own, so that each is checked on its own"

_FIRST_WORDS_BY_ADVICE = {
    "put schema changes into a numbered migration and apply it": "drop alter create rename comment",
    "use DELETE, which has to be confirmed: a human is asked in a run, and a token is needed "
    "elsewhere": "truncate",
    "a step's statements share one transaction that signoff opens and closes": (
        "begin start commit end rollback abort savepoint release lock"
    ),
    "signoff manages the settings of the connection; leave it out": "pragma set reset discard",
    USE_UPSERT: "replace merge upsert",
    "a step uses one database; copy what it needs into a table in a migration": "attach",
    "a step uses one database": "detach",
    "maintenance, such as a backup, is done outside of workflows": "vacuum",
    "read with query() and write with INSERT; SQL cannot access files": "copy",
    "look at plans outside of workflows; EXPLAIN ANALYZE runs what it explains": "explain",
}
_ADVICE = {word: text for text, words in _FIRST_WORDS_BY_ADVICE.items() for word in words.split()}


def refusal_of(word: str) -> Refused:
    """Returns why a statement with this first word is refused, and what to use instead."""
    if not word:
        return Refused("the text contains no statement", USE_PLAIN_STATEMENT)
    return Refused(f"{word.upper()[:40]} is refused", _ADVICE.get(word, USE_PLAIN_STATEMENT))


# The functions that a statement may call: those without side effects.
#
# This is a list of what is allowed, because a list of what is dangerous is never complete:
# PostgreSQL has functions that read files, end sessions, change settings and run statements. A
# project adds its own functions when it creates the guard.


_COMMON = """
abs all and any anyvalue array avg between case cast ceil ceiling char chr coalesce collate concat
concat_ws cos count cume_dist current_date current_time current_timestamp degrees dense_rank
exists exp first_value floor greatest if iff ifnull initcap instr json_array json_object lag
last_value lead least left length ln log log10 log2 lower lpad ltrim max min mod mode not
nth_value ntile nullif or percent_rank pi position pow power radians rand random rank repeat
replace reverse right round row_number rpad rtrim sign sin sqrt stddev stddev_pop stddev_samp
str_position strpos substr substring sum tan translate trim trunc try_cast upper var_pop var_samp
variance variance_pop xor
"""

_SQLITE = """
acos acosh arrow_json_extract asin asinh atan atan2 atanh bm25 changes concat_agg cosh cross_join
current_version date date_add datetime format glob group_concat hex highlight iif is_ascii json
json_array_agg json_array_length json_each json_error_position json_extract json_extract_scalar
json_group_array json_group_object json_insert json_object_agg json_patch json_quote json_remove
json_replace json_set json_tree json_type json_valid jsonb jsonb_extract jsonb_set julianday
last_insert_rowid like likelihood likely match nullif octet_length parse_json printf quote
randomblob regexp regexp_like sinh snippet soundex sqlite_version strftime string_agg subsec tanh
time time_to_str timediff timestamp to_char total total_changes ts_or_ds_to_date
ts_or_ds_to_datetime ts_or_ds_to_timestamp typeof unhex unicode unixepoch unlikely xor zeroblob
"""

_POSTGRES = """
age array_agg array_append array_cat array_concat array_contains array_contains_all array_dims
array_intersect array_length array_lower array_ndims array_overlaps array_position array_positions
array_prepend array_remove array_replace array_size array_to_json array_to_string array_upper
bit_and bit_count bit_length bit_or bool_and bool_or btrim cardinality cbrt char_length
character_length clock_timestamp concat_agg convert_from convert_to corr covar_pop covar_samp
current_database current_schema current_user current_version currval date date_add date_bin
date_part date_sub date_trunc decode div encode every explode exploding_generate_series extract
format gcd gen_random_uuid generate_series generate_subscripts group_concat grouping
is_distinct_from isempty isfinite json_agg json_array_agg json_array_elements
json_array_elements_text json_array_length json_build_array json_build_object json_each
json_each_text json_extract json_extract_path json_extract_path_text json_extract_scalar
json_object_agg json_object_keys json_populate_record json_populate_recordset json_strip_nulls
json_to_record json_to_recordset json_typeof jsonb_agg jsonb_array_elements
jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_concat
jsonb_contains jsonb_contains_all_top_keys jsonb_contains_any_top_keys jsonb_contains_top_key
jsonb_delete_at_path jsonb_each jsonb_each_text jsonb_exists jsonb_extract jsonb_extract_path
jsonb_extract_path_text jsonb_extract_scalar jsonb_insert jsonb_object jsonb_object_agg
jsonb_object_keys jsonb_path_exists jsonb_path_match jsonb_path_query jsonb_path_query_array
jsonb_path_query_first jsonb_populate_record jsonb_pretty jsonb_set jsonb_set_lax
jsonb_strip_nulls jsonb_to_record jsonb_to_recordset jsonb_typeof justify_days justify_hours
justify_interval lastval lcm length levenshtein localtime localtimestamp logical_and logical_or
lower_inc make_date make_interval make_time make_timestamp make_timestamptz match_against md5
now num_nonnulls num_nulls numnode octet_length overlaps overlay pad parse_ident parse_json
percentile_cont percentile_disc pg_typeof phraseto_tsquery plainto_tsquery quote_ident
quote_literal quote_nullable range_agg range_merge regexp_count regexp_i_like regexp_instr
regexp_like regexp_match regexp_matches regexp_replace regexp_split regexp_split_to_array
regexp_split_to_table regexp_substr regr_avgx regr_avgy regr_count regr_intercept regr_r2
regr_slope row row_to_json scale session_user set_bit setweight sha224 sha256 sha384 sha512
similarity split_part starts_with statement_timestamp stddev str_to_date str_to_time string_agg
string_to_array string_to_table strip struct time time_to_str timeofday timestamp timestamp_trunc
timestamptz to_ascii to_char to_date to_hex to_json to_jsonb to_number to_timestamp to_tsquery
to_tsvector tochar tonumber transaction_timestamp translate trim_array trim_scale ts_headline
ts_or_ds_to_date ts_or_ds_to_timestamp ts_rank ts_rank_cd unix_to_time unnest upper_inc uuid
uuidv4 uuidv7 version websearch_to_tsquery width_bucket word_similarity
"""

ALLOWED: dict[Dialect, frozenset[str]] = {
    "sqlite": frozenset((_COMMON + _SQLITE).split()),
    "postgres": frozenset((_COMMON + _POSTGRES).split()),
}
"""Names in lower case, as written in SQL or as the parser calls them."""
