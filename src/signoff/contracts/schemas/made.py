"""Generates the schema from the model that reads contract files."""

from __future__ import annotations

from signoff.contracts.contract_file import ContractFile
from signoff.documents.sections import schema_text


def schemas() -> dict[str, str]:
    """Returns the text of every schema by the name of its file."""
    return {"contract.schema.json": schema_text(ContractFile, "signoff contract workflow")}
