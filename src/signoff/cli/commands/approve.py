"""`signoff approve`."""

from signoff.cli.decisions import decision_command

command = decision_command(
    "approve",
    yes=True,
    text="""Approve a request: yes to exactly what was shown.

    An approval is bound to the digest of the content. If the content or its file has
    changed since, the approval is refused; look at the request again.
    """,
)
