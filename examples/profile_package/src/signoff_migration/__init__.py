"""A profile for SQL migrations: one file that makes a change, one that undoes it."""

from pathlib import Path

import click

from signoff.profiles import ProcessingResult, TemplateProfile, WorkflowStatus

DIALECTS = {
    "postgresql": "DDL runs inside the transaction of the migration.",
    "mysql": "Each DDL statement commits by itself.",
    "sqlite": "ALTER TABLE can do little; other changes copy the table.",
}


class MigrationProfile(TemplateProfile):
    """Asks for `up.sql` and `down.sql`, and accepts nothing less."""

    templates = Path(__file__).with_name("templates")

    @classmethod
    def get_metadata(cls):
        """Returns name, description and the fields that `-c` takes."""
        return {
            "name": "sql-migration",
            "description": "A SQL migration that can be undone.",
            "context_schema": {
                "change": {
                    "type": "string",
                    "required": True,
                    "description": "what the migration changes",
                },
                "dialect": {
                    "type": "string",
                    "choices": list(DIALECTS),
                    "default": "postgresql",
                    "description": "the database",
                },
            },
        }

    def template_variables(self, context):
        """Returns what the templates in the folder may use."""
        dialect = context["dialect"]
        return {"CHANGE": context["change"], "DIALECT": dialect, "NOTE": DIALECTS[dialect]}

    def process_generation_response(self, content):
        """Reads the files as usual, and insists on both directions."""
        result = super().process_generation_response(content)
        paths = {op.path for op in result.write_plan.writes} if result.write_plan else set()
        missing = sorted({"up.sql", "down.sql"} - paths)
        if result.write_plan and missing:
            problem = f"the response lacks {' and '.join(missing)}"
            return ProcessingResult(status=WorkflowStatus.ERROR, error_message=problem)
        return result

    def process_revision_response(self, content):
        """A revision may leave out the file that it does not change."""
        return super().process_generation_response(content)


def register(cli_group):
    """Adds `signoff profile dialects` and returns the profile."""
    cli_group.add_command(dialects)
    return MigrationProfile


@click.command()
def dialects():
    """List the databases of sql-migration."""
    for name, note in DIALECTS.items():
        click.echo(f"{name:12}{note}")
