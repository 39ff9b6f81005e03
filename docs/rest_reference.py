"""Writes the reference of the REST interface from its description."""  # noqa: INP001  # part of the script next to it

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import FastAPI

from signoff.web import api
from signoff.web.api.description import describe


def rest_operations() -> Iterator[str]:
    """Yields every operation, by tag."""
    document = _description()
    for tag in document["tags"]:
        yield from (f"### {tag['name'].capitalize()}", "", tag["description"], "")
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                if tag["name"] in operation["tags"]:
                    yield from _operation(f"{method.upper()} {path}", operation)


def rest_documents() -> Iterator[str]:
    """Yields every document, with its fields."""
    for name, schema in sorted(_description()["components"]["schemas"].items()):
        properties = schema.get("properties")
        if not properties:
            continue
        yield from (f"### {name}", "", schema.get("description", ""), "")
        rows = [
            f"| `{field}` | {_type(value)} | {_cell(value.get('description', ''))} |"
            for field, value in properties.items()
        ]
        yield from ("| field | type | |", "| --- | --- | --- |", *rows, "")


def _description() -> dict[str, Any]:
    app = FastAPI()
    for router in api.ROUTERS:
        app.include_router(router, prefix=api.API)
    return describe(app)


def _operation(title: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"#### `{title}`", "", *operation["description"].splitlines(), "")
    rows = [
        f"| `{each['name']}` | {each['in']} | {_type(each['schema'])} "
        f"| {_cell(each.get('description', ''))} |"
        for each in operation.get("parameters", ())
    ]
    if rows:
        yield from ("| parameter | in | type | |", "| --- | --- | --- | --- |", *rows, "")
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body:
        yield from (f"Body: {_type(body['schema'])}", "")
    for status, answer in operation["responses"].items():
        if status != "default":
            yield from (f"{status}: {_answer(answer)}", "")


def _answer(answer: Mapping[str, Any]) -> str:
    kinds = answer.get("content", {})
    schema = kinds.get("application/json", {}).get("schema")
    return _type(schema) if schema else _cell(answer["description"])


def _type(schema: Mapping[str, Any]) -> str:
    """Returns a type in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})" if name not in _ENUMS else f"`{name}`"
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


_ENUMS = ("Status", "Severity", "FindingStatus", "ItemState", "RequestKind")


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
