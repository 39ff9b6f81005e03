"""Options for a pytest that a test starts as users would."""

_UNRELATED = ("anyio", "hypothesispytest", "schemathesis", "xdist", "xdist.looponfail")

ONLY_SIGNOFF = tuple(word for name in _UNRELATED for word in ("-p", f"no:{name}"))
"""Leaves out plug-ins that only the tests of signoff need; importing them takes a second."""
