"""Reads pages the way a browser does, for tests."""

from __future__ import annotations

from html.parser import HTMLParser


class PageReader(HTMLParser):
    """Collects the texts, links, forms and fields of a page, and what a browser would act on."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.actions: list[str] = []
        """Where forms are sent to."""
        self.handlers: list[str] = []
        """Attributes that would run scripts or change the style."""
        self.loading: list[str] = []
        """The ids of elements that load something by themselves."""
        self.ids: list[str] = []
        self.fields: dict[str, str] = {}
        """The values of inputs and buttons, by name; of several with one name, the last."""
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes an element."""
        values = {key: value or "" for key, value in attrs}
        self.tags.append(tag)
        self.addresses += [values[key] for key in ("href", "src") if key in values]
        if "action" in values:
            self.actions.append(values["action"])
        self.handlers += [key for key in values if key.startswith("on") or key == "style"]
        if any(key.startswith("hx-") and key != "hx-morph-skip" for key in values):
            self.loading.append(values.get("id", ""))
        if "id" in values:
            self.ids.append(values["id"])
        if tag in ("input", "button", "textarea") and "name" in values:
            self.fields[values["name"]] = values.get("value", "")

    def handle_data(self, data: str) -> None:
        """Notes a text."""
        self.text += data
