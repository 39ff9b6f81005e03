"""A streamed chat completion in OpenAI's format, which several servers and runners speak."""

from __future__ import annotations

from typing import Any

from signoff.agents.answer import ModelAnswer, StreamedText, token_count
from signoff.core.spend import Usage


class ChatCompletion:
    """Collects a completion from its chunks, or from one whole response."""

    def __init__(self, model: str, text: StreamedText) -> None:
        self.model = model
        self.finish: str | None = None
        self.usage: dict[str, Any] = {}
        self._text = text
        self._refusals: list[str] = []
        self._session: str | None = None

    def add(self, chunk: dict[str, Any]) -> None:
        """Adds a chunk, or a whole completion."""
        self._session = chunk.get("id") or self._session
        self.model = chunk.get("model") or self.model
        self.usage = chunk.get("usage") or self.usage
        for choice in (chunk.get("choices") or [])[:1]:
            message = choice.get("delta") or choice.get("message") or {}
            self._text.add(message.get("content"))
            self._refusals.append(message.get("refusal") or "")
            self.finish = choice.get("finish_reason") or self.finish

    def answer(self, usd: float | None) -> ModelAnswer:
        """Returns the collected answer, which cost `usd` if that is known."""
        declined = "".join(self._refusals)
        if self.finish == "content_filter":
            declined = declined or "its content filter stepped in"
        usage = Usage(
            token_count(self.usage.get("prompt_tokens")),
            token_count(self.usage.get("completion_tokens")),
            usd,
            self.model,
        )
        return ModelAnswer(
            self._text.text,
            self.finish,
            cut_off=self.finish == "length",
            declined=declined,
            usage=usage,
            session=self._session,
        )


def chat_messages(system: str | None, prompt: str) -> list[dict[str, str]]:
    """Returns a prompt as the messages of a chat."""
    messages = [{"role": "system", "content": system}] if system else []
    return [*messages, {"role": "user", "content": prompt}]
