"""`signoff reject`."""

from signoff.cli.decisions import decision_command

command = decision_command(
    "reject",
    yes=False,
    text="""Reject a request: no to what was shown.

    The workflow gets the reason and decides how to proceed.
    """,
)
