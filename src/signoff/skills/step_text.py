"""The page that an agent reads at each step: a title, instructions, and the next command."""

from __future__ import annotations

from collections.abc import Sequence

LAST_STEP = "This was the last step. There is no next command."


def format_step(body: str | Sequence[str], next_command: str = "", title: str = "") -> str:
    """Returns a step as text: its title, its instructions, and the command that follows.

    Without a command, the text says that this was the last step.
    """
    paragraphs = [body] if isinstance(body, str) else list(body)
    end = when_done(next_command) if next_command else LAST_STEP
    return page(title, paragraphs, [end])


def page(title: str, paragraphs: Sequence[str], end: Sequence[str]) -> str:
    """Joins the parts of a page; empty ones are left out."""
    parts = [f"# {title}" if title else "", *paragraphs, *end]
    return "\n\n".join(part.strip("\n") for part in parts if part.strip())


def when_done(command: str) -> str:
    """Returns the instruction to run the next command."""
    return commands("When this step is done, run:", command)


def commands(condition: str, *texts: str) -> str:
    """Returns commands below the condition under which they are run, indented like code."""
    return "\n\n".join([condition, "\n".join(f"    {text}" for text in texts)])
