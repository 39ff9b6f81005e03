"""A streamed chat completion in OpenAI's format, which several servers and runners speak."""

from __future__ import annotations

from typing import Any

from signoff.agents.answer import StreamedAnswer
from signoff.agents.vendor_json import as_dict, cached_count, token_count


class ChatCompletion(StreamedAnswer):
    """Collects a completion from its chunks, or from one whole response."""

    cost: object = None
    """The cost that the server reports; its unit depends on the server."""

    def add(self, chunk: dict[str, Any]) -> None:
        """Adds a chunk, or a whole completion."""
        self.session = chunk.get("id") or self.session
        self.model = chunk.get("model") or self.model
        if usage := chunk.get("usage"):
            self.tokens_in = token_count(usage.get("prompt_tokens"))
            self.tokens_out = token_count(usage.get("completion_tokens"))
            # Unlike Anthropic's, this count is a part of `prompt_tokens`.
            details = as_dict(usage.get("prompt_tokens_details"))
            self.tokens_cached = cached_count(details.get("cached_tokens"))
            reasoning = as_dict(usage.get("completion_tokens_details")).get("reasoning_tokens")
            self.tokens_reasoning = cached_count(reasoning)
            self.cost = usage.get("cost")
        for choice in (chunk.get("choices") or [])[:1]:
            message = choice.get("delta") or choice.get("message") or {}
            self.add_text(message.get("content"))
            self.declined += message.get("refusal") or ""
            # OpenRouter reports "error" when the model's server failed in the middle.
            if choice.get("finish_reason") != "error":
                self.finish = choice.get("finish_reason") or self.finish
        if self.finish == "content_filter":
            self.declined = self.declined or "its content filter stepped in"


def chat_messages(system: str | None, prompt: str) -> list[dict[str, str]]:
    """Returns a prompt as the messages of a chat."""
    messages = [{"role": "system", "content": system}] if system else []
    return [*messages, {"role": "user", "content": prompt}]
