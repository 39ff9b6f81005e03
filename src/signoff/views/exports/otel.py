"""A run as OpenTelemetry sees it: spans, and the export of them.

`RunSpans` is the one function from the journal to traces. The export writes its values as OTLP
in JSON lines, which needs no package and works for runs that were never traced; the live observer
passes them to OpenTelemetry's SDK. So both give the same trace. All ids are derived from the run's
key, its step visits and its effects, so a run is one trace over waits, kills and resumes, whichever
processes drove it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

from signoff.core import events as ev
from signoff.core.digest import text_digest
from signoff.core.effects import EffectKind
from signoff.core.outcome import NOT_ENDED
from signoff.core.run_state import RunState
from signoff.core.spend import Usage
from signoff.core.stop_reason import error_of
from signoff.views import genai_names as names
from signoff.views.exports.run_record import Export, ExportOptions, RunRecord
from signoff.views.timeline import EffectResult, EffectTry, Ended, StepVisit, Timeline

LONGEST_ATTRIBUTE = 256
"""Characters of an attribute that is not content: agents report some of them themselves."""

Attribute = str | int | float | Sequence[str]

_FAILED = {EffectResult.ERROR, EffectResult.RETRIED, EffectResult.LOST}


@dataclass(frozen=True, slots=True)
class OtelSpan:
    """A span that has ended, or is shown up to now."""

    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""
    parent_id: str
    """Empty for the run itself."""
    name: str
    client: bool
    """Whether its kind is CLIENT: it waited for another process. Otherwise it is INTERNAL."""
    started_at: float
    ended_at: float
    attributes: Mapping[str, Attribute]
    failed: bool = False


@dataclass(slots=True)
class RunSpans:
    """Follows one run, and returns the spans that end with each of its events."""

    run: str
    """Its name."""
    content: bool = False
    """Whether prompts and replies are included."""
    timeline: Timeline = field(default_factory=Timeline)
    """The run so far; feed events to the spans only, never to this."""

    def apply(self, event: ev.Event) -> list[OtelSpan]:
        """Applies one event."""
        return [self._span(part) for part in self.timeline.apply(event)]

    def unfinished(self) -> list[OtelSpan]:
        """Returns spans for what has not ended, up to the last event."""
        line = self.timeline
        if line.state.status not in NOT_ENDED:
            return []
        parts: list[Ended] = [*line.open_tries(), *line.open_visit(), line.state]
        return [self._span(part) for part in parts]

    @property
    def _trace_id(self) -> str:
        return text_digest(f"signoff trace/{self.timeline.state.seed}")[:32]

    def _span_id(self, *parts: object) -> str:
        # Joined by a character that no name contains, so that no two spans have the same text.
        return text_digest("\x1f".join(map(str, (self.timeline.state.seed, *parts))))[:16]

    def _span(self, part: Ended) -> OtelSpan:
        # What is sent has just ended, or is shown up to the last event.
        parent, ended_at = "", self.timeline.state.updated_at
        match part:
            case RunState():
                own, (name, attributes) = self._span_id("run"), self._run(part)
            case StepVisit():
                own, parent = self._span_id("step", part.step, part.visit), self._span_id("run")
                name, attributes = part.step, _step(part)
            case EffectTry():
                step = (part.visit.step, part.visit.visit)
                own = self._span_id("effect", *step, part.step_attempt, part.id, part.number)
                parent = self._span_id("step", *step)
                name, attributes = self._effect(part)
                ended_at = ended_at if part.ended_at is None else part.ended_at
            case _:
                assert_never(part)
        return OtelSpan(
            trace_id=self._trace_id,
            span_id=own,
            parent_id=parent,
            name=clean(name),
            client=isinstance(part, EffectTry) and part.chat,
            started_at=part.started_at,
            ended_at=max(part.started_at, ended_at),
            attributes={key: clean_attribute(key, value) for key, value in attributes.items()},
            failed=names.ERROR_TYPE in attributes,
        )

    def _run(self, state: RunState) -> tuple[str, dict[str, Attribute]]:
        spend, error = state.spend, error_of(state.status, state.stop_reason)
        attributes: dict[str, Attribute] = {
            names.OPERATION: names.INVOKE_WORKFLOW,
            names.WORKFLOW: state.workflow,
            names.RUN: self.run,
            names.STATUS: state.status.value,
            names.ROUND: state.iteration,
            names.UNKNOWN_COST: spend.unknown_usd,
        }
        # Attributes are only set if they are known; backends show a missing one as a gap.
        # A sum of nothing known would claim that the run was free.
        if spend.known_usd or spend.calls > spend.unknown_usd:
            attributes[names.COST] = spend.known_usd
        if error is not None:
            attributes[names.ERROR_TYPE] = error.kind
        return f"{names.INVOKE_WORKFLOW} {state.workflow}", attributes

    def _effect(self, part: EffectTry) -> tuple[str, dict[str, Attribute]]:
        attributes: dict[str, Attribute] = {
            names.EFFECT: part.id,
            names.KIND: part.kind.value,
            names.RESULT: part.result.value,
            names.TRY: part.number,
        }
        if part.result in _FAILED:
            attributes[names.ERROR_TYPE] = str(part.error.get("type") or part.result.value)
        name = part.kind.value
        if part.kind is EffectKind.ASK:
            attributes |= genai_attributes(part)
            subject = attributes.get(names.REQUEST_MODEL, "") if part.chat else part.agent
            name = f"{attributes[names.OPERATION]} {subject}".strip()
            if self.content:
                attributes |= _content(part)
        elif part.kind is EffectKind.COMMAND:
            argv = part.payload.get("argv") or [""]
            attributes[names.PROGRAM] = str(argv[0])
        return name, attributes


def genai_attributes(part: EffectTry) -> dict[str, Attribute]:
    """Returns what the conventions record about a call, without content."""
    reply = part.reply if isinstance(part.reply, Mapping) else {}
    usage = Usage(**part.usage).cleaned() if part.usage is not None else Usage()
    attributes: dict[str, Any] = {
        names.OPERATION: names.CHAT if part.chat else names.INVOKE_AGENT,
        # Required by the conventions; an agent that declares none is a provider of its own.
        names.PROVIDER: part.provider or part.agent,
        names.AGENT: part.agent,
        names.REQUEST_MODEL: part.payload.get("model") or (usage.model if part.chat else None),
        names.RESPONSE_MODEL: usage.model,
        names.CONVERSATION: reply.get("session"),
        names.FINISH_REASONS: [str(reply["finish"])] if reply.get("finish") else None,
        names.COST: usage.usd,
        **{name: getattr(usage, key, None) for key, name in names.USAGE.items()},
    }
    return {key: value for key, value in attributes.items() if value is not None}


def _step(part: StepVisit) -> dict[str, Attribute]:
    return {
        names.STEP: part.step,
        names.TIMES: part.visit,
        names.ROUND: part.iteration,
        names.ATTEMPTS: part.attempts,
        names.OUTCOME: part.outcome.value if part.outcome is not None else "unfinished",
    }


def _content(part: EffectTry) -> dict[str, Attribute]:
    """Returns prompts and replies, in the form that the conventions prescribe for spans."""
    reply = part.reply if isinstance(part.reply, Mapping) else {}
    content = {names.INPUT_MESSAGES: _messages("user", part.payload.get("prompt"))}
    if part.payload.get("system"):
        text = {"type": "text", "content": str(part.payload["system"])}
        content[names.SYSTEM_INSTRUCTIONS] = json.dumps([text])
    if reply.get("text") is not None:
        content[names.OUTPUT_MESSAGES] = _messages("assistant", reply["text"])
    return dict(content)


def _messages(role: str, text: object) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": str(text or "")}]}])


_CONTENT = {
    names.INPUT_MESSAGES,
    names.OUTPUT_MESSAGES,
    names.SYSTEM_INSTRUCTIONS,
}


def clean_attribute(key: str, value: Attribute) -> Attribute:
    """Returns a value that every collector takes; one that is not content is also kept short."""
    if isinstance(value, str):
        return clean(value, None if key in _CONTENT else LONGEST_ATTRIBUTE)
    if isinstance(value, Sequence):
        return [clean(each) for each in value]
    return value


def clean(text: str, longest: int | None = LONGEST_ATTRIBUTE) -> str:
    """Returns a text without half surrogate pairs, which cannot be sent as UTF-8."""
    text = text[:longest]
    return text if text.isascii() else text.encode(errors="replace").decode()


# The spans of a stored run as OTLP in JSON lines: what collectors and backends read.

SERVICE = "signoff"

_INTERNAL, _CLIENT, _ERROR = 1, 3, 2
"""Numbers of the protocol: two kinds of span, a status."""


def otel(record: RunRecord, options: ExportOptions) -> Iterator[str]:
    """Yields the spans of a run on one line."""
    spans = all_spans(record, options)
    service = _attributes({"service.name": SERVICE})
    scoped = {"scope": {"name": SERVICE}, "spans": list(map(_span, spans))}
    resource = {"resource": {"attributes": service}, "scopeSpans": [scoped]}
    yield json.dumps({"resourceSpans": [resource]}, separators=(",", ":")) + "\n"


def all_spans(record: RunRecord, options: ExportOptions) -> list[OtelSpan]:
    """Returns everything about a run, in the order in which it ended; open spans come last."""
    follow = RunSpans(record.name, options.content)
    # By identity, and in the order of the journal: the same run gives the same bytes every time, so
    # an export that is sent twice is one trace.
    spans: dict[str, OtelSpan] = {}
    for _, event in record.events(whole=options.content):
        # A run that failed and was resumed ends twice: its last span is the whole one.
        spans |= {span.span_id: span for span in follow.apply(event)}
    spans |= {span.span_id: span for span in follow.unfinished()}
    return list(spans.values())


def _span(span: OtelSpan) -> dict[str, Any]:
    parent = {"parentSpanId": span.parent_id} if span.parent_id else {}
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        **parent,
        "name": span.name,
        "kind": _CLIENT if span.client else _INTERNAL,
        "startTimeUnixNano": _nanoseconds(span.started_at),
        "endTimeUnixNano": _nanoseconds(span.ended_at),
        "attributes": _attributes(span.attributes),
        "status": {"code": _ERROR} if span.failed else {},
    }


def _attributes(attributes: Mapping[str, Attribute]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Attribute) -> dict[str, Any]:
    match value:
        case str():
            return {"stringValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case _:
            return {"arrayValue": {"values": [{"stringValue": each} for each in value]}}


def _nanoseconds(at: float) -> str:
    return str(nanoseconds(at))


def nanoseconds(at: float) -> int:
    """Returns a time as OpenTelemetry counts it; to the microsecond, as floats are no better."""
    return round(at * 1_000_000) * 1000


EXPORT = Export("otel", "The trace of the run, for OpenTelemetry (OTLP in JSON lines).", otel)
