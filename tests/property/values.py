"""JSON values with as many corner cases as possible."""

from typing import Any

from hypothesis import strategies as st

from signoff.core.codec import BLOB_FROM

texts = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["$blob", "$is", "$", '"$', "", "\x00", "\ud83d"]),
    # By length, so that a failing example can still be read.
    st.integers(BLOB_FROM - 1, BLOB_FROM + 1).map(lambda length: "x" * length),
)
keys = st.one_of(st.text(max_size=3), st.sampled_from(["$blob", "$is", "$blobs", "", "\udc00"]))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)


def json_values() -> st.SearchStrategy[Any]:
    """Any value that can be stored."""
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
        max_leaves=8,
    )
