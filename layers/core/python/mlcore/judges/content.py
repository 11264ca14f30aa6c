"""What a trace holds for a judge: what went in and came out, what was expected, which tools were
called, what was retrieved; asks no model.

Values are taken from traces as MLflow's clients take them (``mlflow.genai.utils.trace_utils``).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from mlcore import artifacts, errors
from mlcore.entities.traces import Trace
from mlcore.repos.traces import span_packs, traces
from mlcore.repos.traces.span_packs import Owner
from mlcore.repos.traces.traces import SESSION, StoredTrace

_INPUTS: Final = "mlflow.spanInputs"
_OUTPUTS: Final = "mlflow.spanOutputs"
_TYPE: Final = "mlflow.spanType"
_LOCATION_TAG: Final = "mlflow.artifactLocation"
_FILE: Final = "traces.json"
_LIMITS: Final = (20_000, 4_000, 1_000, 200)
"""Characters of one value, from the most to the least."""
TRACE_CHARACTERS: Final = 150_000
"""That are shown of a trace."""

Span = dict[str, Any]


class Subject(NamedTuple):
    """A trace that is judged."""

    trace: Trace
    spans: tuple[Span, ...]
    """Root spans first, then by start."""

    @property
    def trace_id(self) -> str:
        return self.trace.trace_id

    @property
    def session(self) -> str | None:
        return self.trace.trace_metadata.get(SESSION)


def read(stored: StoredTrace) -> Subject:
    """The trace with its spans, from the table or the file that older clients keep them in."""
    trace = traces.entity(stored)
    experiment = stored.experiment
    owner = Owner(experiment.workspace, experiment.experiment_id, stored.trace_id)
    spans = [json.loads(line) for _, line in span_packs.read(owner)]
    found = spans or _spans_of_file(trace, experiment.workspace)
    return Subject(trace, tuple(sorted(found, key=_order)))


def of_call(asked: Any, answered: Any = None) -> Subject:
    """What there is of a call of a model, as though it were a trace with one span."""
    trace = Trace(
        trace_id="",
        experiment_id="",
        request_time=0,
        execution_duration=None,
        state="OK",
        client_request_id=None,
        request_preview=None,
        response_preview=None,
        trace_metadata={},
        tags={},
        assessments=(),
        prompts=(),
    )
    return Subject(trace, ({"attributes": {_INPUTS: asked, _OUTPUTS: answered}},))


def root(subject: Subject) -> Span | None:
    first = subject.spans[0] if subject.spans else None
    return None if first is None or _parent(first) else first


def root_span_id(subject: Subject) -> str | None:
    """In hexadecimal digits."""
    span = root(subject)
    return None if span is None else _span_id(span)


def inputs(subject: Subject) -> Any:
    span = root(subject)
    return None if span is None else _attribute(span, _INPUTS)


def outputs(subject: Subject) -> Any:
    span = root(subject)
    return None if span is None else _attribute(span, _OUTPUTS)


def expectations(subject: Subject, *, of_session: bool = False) -> dict[str, Any] | None:
    """What people expected: of the trace, or of the conversation that it begins."""
    found = {
        one.name: one.value
        for one in subject.trace.assessments
        if one.kind == "expectation"
        and one.source_type == "HUMAN"
        and (not of_session or SESSION in (one.metadata or {}))
    }
    return found or None


def conversation(session: Sequence[Subject]) -> list[dict[str, str]]:
    """What was said, in the order of time."""
    said = []
    for subject in in_time(session):
        asked, answered = inputs(subject), outputs(subject)
        for role, value, text in (
            ("user", asked, input_text(asked)),
            ("assistant", answered, output_text(answered)),
        ):
            if value and text.strip():
                said.append({"role": role, "content": text})
    return said


def in_time(session: Sequence[Subject]) -> list[Subject]:
    return sorted(session, key=lambda subject: subject.trace.request_time)


def tools_called(subject: Subject) -> list[dict[str, Any]]:
    """The calls of tools in the order of their start."""
    found = [span for span in subject.spans if _attribute(span, _TYPE) == "TOOL"]
    return [_shown(span) for span in sorted(found, key=_start)]


def retrieved(subject: Subject) -> list[tuple[str, list[str]]]:
    """Of each retrieval that is in no other: its span's id, and the texts that it found."""
    retrievals = {
        _span_id(span): span for span in subject.spans if _attribute(span, _TYPE) == "RETRIEVER"
    }
    by_id = {_span_id(span): span for span in subject.spans}
    found = []
    for span_id, span in retrievals.items():
        above = _parent_id(span)
        while above in by_id and above not in retrievals:
            above = _parent_id(by_id[above])
        if above not in retrievals:
            found.append((span_id, _chunks(_attribute(span, _OUTPUTS))))
    return found


def shown(subject: Subject) -> str:
    """The whole trace as JSON; values are cut where it would be too long for a model."""
    text = ""
    for limit in _LIMITS:
        spans = [_shown(span, limit) for span in subject.spans]
        told = {
            "state": subject.trace.state,
            "execution_duration_ms": subject.trace.execution_duration,
            "spans": spans,
        }
        text = json.dumps(told, ensure_ascii=False, default=str)
        if len(text) <= TRACE_CHARACTERS:
            return text
    return text[:TRACE_CHARACTERS] + " (cut)"


def input_text(value: Any) -> str:
    """What somebody asked, as a text: of a chat its only message, or all of them."""
    if value is None or isinstance(value, str):
        return value or ""
    messages = value.get("messages") if isinstance(value, dict) else None
    if isinstance(messages, list) and messages and all(isinstance(one, dict) for one in messages):
        contents = [one.get("content") for one in messages]
        if len(contents) > 1 and all(isinstance(one, str) for one in contents):
            return json.dumps(messages, ensure_ascii=False)
        if isinstance(contents[-1], str):
            return contents[-1]
    return json.dumps(value, ensure_ascii=False, default=str)


def output_text(value: Any) -> str:
    """What was answered, as a text, whichever API answered."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and value:
        return output_text(value[0])
    if isinstance(value, dict):
        for found in (_of_choices(value), _of_messages(value), _of_output(value)):
            if found is not None:
                return found
    return json.dumps(value, ensure_ascii=False, default=str)


def _of_choices(value: dict[str, Any]) -> str | None:
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return _content(first.get("message")) if isinstance(first, dict) else None


def _of_messages(value: dict[str, Any]) -> str | None:
    messages = value.get("messages")
    return _content(messages[-1]) if isinstance(messages, list) and messages else None


def _of_output(value: dict[str, Any]) -> str | None:
    """OpenAI's Responses API."""
    output = value.get("output")
    for item in reversed(output) if isinstance(output, list) else ():
        if isinstance(item, dict) and item.get("role") == "assistant":
            content = item.get("content")
            if isinstance(content, str):
                return content
            for part in content if isinstance(content, list) else ():
                if isinstance(part, dict) and part.get("type") in ("text", "output_text"):
                    return str(part.get("text", ""))
    return None


def _content(message: Any) -> str | None:
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, str) else None


def _chunks(value: Any) -> list[str]:
    """The texts of documents, in the form of any of the libraries that MLflow traces."""
    found = []
    for chunk in value if isinstance(value, list) else ():
        text: Any = chunk
        if isinstance(chunk, dict):
            text = next(
                (chunk[name] for name in ("page_content", "content", "text") if name in chunk),
                None,
            )
        if isinstance(text, str) and text:
            found.append(text)
    return found


def _shown(span: Span, limit: int = _LIMITS[0]) -> dict[str, Any]:
    start, end = _start(span), span.get("end_time_unix_nano") or span.get("end_time")
    told = {
        "span_id": _span_id(span),
        "parent_id": _parent_id(span),
        "name": span.get("name"),
        "type": _attribute(span, _TYPE),
        "status": _status(span),
        "duration_ms": (end - start) / 1e6 if isinstance(end, int) else None,
        "inputs": _cut(_attribute(span, _INPUTS), limit),
        "outputs": _cut(_attribute(span, _OUTPUTS), limit),
        "exceptions": [
            _cut(
                f"{attributes.get('exception.type')}: {attributes.get('exception.message')}", limit
            )
            for event in span.get("events") or ()
            if event.get("name") == "exception" and (attributes := event.get("attributes") or {})
        ],
    }
    return {name: value for name, value in told.items() if value not in (None, [])}


def _cut(value: Any, limit: int) -> Any:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return value if len(text) <= limit else f"{text[:limit]} (cut, {len(text)} characters)"


def _attribute(span: Span, name: str) -> Any:
    """The value of an attribute, which is kept as JSON text."""
    value = (span.get("attributes") or {}).get(name)
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _status(span: Span) -> str | None:
    status = span.get("status")
    code = status.get("code") if isinstance(status, dict) else span.get("status_code")
    return None if code is None else str(code).removeprefix("STATUS_CODE_")


def _order(span: Span) -> tuple[bool, int]:
    return bool(_parent(span)), _start(span)


def _start(span: Span) -> int:
    return int(span.get("start_time_unix_nano") or span.get("start_time") or 0)


def _parent(span: Span) -> str | None:
    return span.get("parent_span_id") or span.get("parent_id")


def _parent_id(span: Span) -> str | None:
    parent = _parent(span)
    return None if parent is None else _hexadecimal(parent)


def _span_id(span: Span) -> str:
    context = span.get("context")
    return _hexadecimal(span.get("span_id") or (context or {}).get("span_id") or "")


def _hexadecimal(text: str) -> str:
    """Older clients wrote ids in hexadecimal digits, newer ones in Base64."""
    if text.startswith("0x"):
        return text[2:]
    if len(text) == 16:
        return text
    try:
        return base64.b64decode(text, validate=True).hex()
    except binascii.Error:
        return text


def _spans_of_file(trace: Trace, workspace: str) -> list[Span]:
    location = trace.tags.get(_LOCATION_TAG)
    if location is None:
        return []
    try:
        data = artifacts.store().get(artifacts.locate(location, workspace, _FILE))
        found = json.loads(data or b"{}").get("spans")
    except (errors.InvalidParameterValue, ValueError, AttributeError):
        return []
    return [span for span in found if isinstance(span, dict)] if isinstance(found, list) else []
