"""Reads from a trace the parts that judges are shown: inputs, outputs, expectations, tool calls and
retrieved texts.

Values are extracted as MLflow's clients do (``mlflow.genai.utils.trace_utils``).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from mlcore import artifacts, errors, reserved_tags
from mlcore.entities.traces import Trace
from mlcore.repos.traces import span_packs, traces
from mlcore.repos.traces.span_packs import Owner
from mlcore.repos.traces.traces import StoredTrace
from mlcore.wire.json_text import parse_json_bytes, parse_json_text

_SPANS_FILE: Final = "traces.json"
_LIMITS: Final = (20_000, 4_000, 1_000, 200)
"""Maximum characters of one value; the next lower limit applies if the trace is too long."""
TRACE_CHARACTERS: Final = 150_000
"""Maximum characters of a whole trace."""

Span = dict[str, Any]


class Subject(NamedTuple):
    """A trace to be judged, with its spans."""

    trace: Trace
    spans: tuple[Span, ...]
    """Root spans first, then by start time."""

    @property
    def trace_id(self) -> str:
        return self.trace.trace_id

    @property
    def session(self) -> str | None:
        return self.trace.trace_metadata.get(reserved_tags.TRACE_SESSION)


def read(stored: StoredTrace) -> Subject:
    """Returns a trace with its spans. They are read from the table or, if older clients wrote the
    trace, from a file in its artifacts."""
    trace = traces.entity(stored)
    experiment = stored.experiment
    owner = Owner(experiment.workspace, experiment.experiment_id, stored.trace_id)
    spans = [json.loads(line) for _, line in span_packs.read(owner)]
    all_spans = spans or _spans_of_file(trace, experiment.workspace)
    return Subject(trace, tuple(sorted(all_spans, key=_order)))


def subject_of_call(request: Any, answer: Any = None) -> Subject:
    """Returns a trace with one span that holds the request and answer of a model call, so that a
    judge can rate the call."""
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
    return Subject(
        trace,
        ({"attributes": {reserved_tags.SPAN_INPUTS: request, reserved_tags.SPAN_OUTPUTS: answer}},),
    )


def root(subject: Subject) -> Span | None:
    """Returns the root span of a trace, which has no parent; None if the spans contain none."""
    first = subject.spans[0] if subject.spans else None
    return None if first is None or _parent(first) else first


def root_span_id(subject: Subject) -> str | None:
    """Returns the id of the root span of the judged trace in hexadecimal digits; None if its spans
    contain no root."""
    span = root(subject)
    return None if span is None else _span_id(span)


def inputs(subject: Subject) -> Any:
    span = root(subject)
    return None if span is None else _attribute(span, reserved_tags.SPAN_INPUTS)


def outputs(subject: Subject) -> Any:
    span = root(subject)
    return None if span is None else _attribute(span, reserved_tags.SPAN_OUTPUTS)


def expectations(subject: Subject, *, of_session: bool = False) -> dict[str, Any] | None:
    """Returns, by name, the values that people noted as expected for a trace or, with
    ``of_session``, for the session (conversation) whose first trace it is; None without any."""
    values = {
        assessment.name: assessment.value
        for assessment in subject.trace.assessments
        if assessment.kind == "expectation"
        and assessment.source_type == "HUMAN"
        and (not of_session or reserved_tags.TRACE_SESSION in (assessment.metadata or {}))
    }
    return values or None


def all_expectations(subject: Subject) -> dict[str, Any]:
    """Returns all values that anybody noted as expected for the trace, by name, as an evaluation by
    MLflow's client does."""
    return {
        assessment.name: assessment.value
        for assessment in subject.trace.assessments
        if assessment.kind == "expectation"
    }


def conversation(session: Sequence[Subject]) -> list[dict[str, str]]:
    """Returns the messages of the conversation in a session's traces, in chronological order."""
    messages = []
    for subject in chronological(session):
        request, answer = inputs(subject), outputs(subject)
        for role, value, text in (
            ("user", request, input_text(request)),
            ("assistant", answer, output_text(answer)),
        ):
            if value and text.strip():
                messages.append({"role": role, "content": text})
    return messages


def chronological(session: Sequence[Subject]) -> list[Subject]:
    """Returns the traces of one session (a conversation), ordered by request time."""
    return sorted(session, key=lambda subject: subject.trace.request_time)


def tool_calls(subject: Subject) -> list[dict[str, Any]]:
    """Returns a summary of each tool span of a trace, in the order in which they started."""
    spans = [span for span in subject.spans if _attribute(span, reserved_tags.SPAN_TYPE) == "TOOL"]
    return [_span_summary(span) for span in sorted(spans, key=_start)]


def retrieved_texts(subject: Subject) -> list[tuple[str, list[str]]]:
    """Returns (span id, retrieved texts) of each retriever span that is not nested in another
    retriever span."""
    parents = {_span_id(span): _parent_id(span) for span in subject.spans}
    retrievals = {
        _span_id(span): span
        for span in subject.spans
        if _attribute(span, reserved_tags.SPAN_TYPE) == "RETRIEVER"
    }
    nested = dict.fromkeys(retrievals, True)
    """By span id: whether the span is a retriever span or nested in one."""
    outermost: list[tuple[str, list[str]]] = []
    for span_id, span in retrievals.items():
        climbed: dict[str, None] = {}
        above = _parent_id(span)
        # Clients choose the ids of parents, so these may form a cycle.
        while above in parents and above not in nested and above not in climbed:
            climbed[above] = None
            above = parents[above]
        is_nested = nested.get(above or "", False)
        nested.update(dict.fromkeys(climbed, is_nested))
        if not is_nested:
            outermost.append(
                (span_id, _document_texts(_attribute(span, reserved_tags.SPAN_OUTPUTS)))
            )
    return outermost


def trace_json(subject: Subject) -> str:
    """Returns the trace as JSON for a judge's model, with long values truncated; if it is still
    longer than TRACE_CHARACTERS, the text is cut."""
    text = ""
    for limit in _LIMITS:
        spans = [_span_summary(span, limit) for span in subject.spans]
        summary = {
            "state": subject.trace.state,
            "execution_duration_ms": subject.trace.execution_duration,
            "spans": spans,
        }
        text = json.dumps(summary, ensure_ascii=False, default=str)
        if len(text) <= TRACE_CHARACTERS:
            return text
    return text[:TRACE_CHARACTERS] + " (cut)"


def summaries(subject: Subject, limit: int = _LIMITS[0]) -> list[dict[str, Any]]:
    """Returns a summary of each span: ``span_id``, and if known ``parent_id``, ``name``, ``type``,
    ``status``, ``duration_ms``, ``inputs``, ``outputs``, ``exceptions``.

    Args:
        limit: characters after which inputs, outputs and messages are cut.
    """
    return [_span_summary(span, limit) for span in subject.spans]


def input_text(value: Any) -> str:
    """Returns the request of a model call as text: a text itself, "" for None, the content of a
    chat's only message, the JSON of several messages or of any other value. If not all of several
    messages are texts, but the last one is, returns the content of the last one."""
    if value is None or isinstance(value, str):
        return value or ""
    messages = value.get("messages") if isinstance(value, dict) else None
    if (
        isinstance(messages, list)
        and messages
        and all(isinstance(message, dict) for message in messages)
    ):
        contents = [message.get("content") for message in messages]
        if len(contents) > 1 and all(isinstance(message, str) for message in contents):
            return json.dumps(messages, ensure_ascii=False)
        if isinstance(contents[-1], str):
            return contents[-1]
    return json.dumps(value, ensure_ascii=False, default=str)


def output_text(value: Any) -> str:
    """Returns a model's answer as text: the text in ``choices``, ``messages`` or ``output``, as in
    OpenAI's APIs, else the JSON of the answer. Of a list, its first item counts."""
    while isinstance(value, list) and value:
        value = value[0]
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, dict):
        for text in (_text_of_choices(value), _text_of_messages(value), _text_of_output(value)):
            if text is not None:
                return text
    return json.dumps(value, ensure_ascii=False, default=str)


def _text_of_choices(value: dict[str, Any]) -> str | None:
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return _content(first.get("message")) if isinstance(first, dict) else None


def _text_of_messages(value: dict[str, Any]) -> str | None:
    messages = value.get("messages")
    return _content(messages[-1]) if isinstance(messages, list) and messages else None


def _text_of_output(value: dict[str, Any]) -> str | None:
    """Returns the assistant's last text in an output of OpenAI's Responses API, all its parts
    together; None if it has none."""
    output = value.get("output")
    for item in reversed(output) if isinstance(output, list) else ():
        if isinstance(item, dict) and item.get("role") == "assistant":
            content = item.get("content")
            if isinstance(content, str):
                return content
            texts = [
                str(part.get("text", ""))
                for part in (content if isinstance(content, list) else ())
                if isinstance(part, dict) and part.get("type") in ("text", "output_text")
            ]
            if texts:
                return "".join(texts)
    return None


def _content(message: Any) -> str | None:
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, str) else None


def _document_texts(value: Any) -> list[str]:
    """Returns the texts of retrieved documents, in the forms of the libraries that MLflow
    traces."""
    texts = []
    for chunk in value if isinstance(value, list) else ():
        text: Any = chunk
        if isinstance(chunk, dict):
            text = next(
                (chunk[name] for name in ("page_content", "content", "text") if name in chunk),
                None,
            )
        if isinstance(text, str) and text:
            texts.append(text)
    return texts


def _span_summary(span: Span, limit: int = _LIMITS[0]) -> dict[str, Any]:
    start, end = _start(span), span.get("end_time_unix_nano") or span.get("end_time")
    fields = {
        "span_id": _span_id(span),
        "parent_id": _parent_id(span),
        "name": span.get("name"),
        "type": _attribute(span, reserved_tags.SPAN_TYPE),
        "status": _status(span),
        "duration_ms": (end - start) / 1e6 if isinstance(end, int) else None,
        "inputs": _truncated(_attribute(span, reserved_tags.SPAN_INPUTS), limit),
        "outputs": _truncated(_attribute(span, reserved_tags.SPAN_OUTPUTS), limit),
        "exceptions": [
            _truncated(
                f"{attributes.get('exception.type')}: {attributes.get('exception.message')}", limit
            )
            for event in span.get("events") or ()
            if event.get("name") == "exception" and (attributes := event.get("attributes") or {})
        ],
    }
    return {name: value for name, value in fields.items() if value not in (None, [])}


def _truncated(value: Any, limit: int) -> Any:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return value if len(text) <= limit else f"{text[:limit]} (cut, {len(text)} characters)"


def _attribute(span: Span, name: str) -> Any:
    """Returns the value of a span's attribute, parsed from the JSON text in which it is stored."""
    value = (span.get("attributes") or {}).get(name)
    if not isinstance(value, str):
        return value
    try:
        return parse_json_text(value, lone_surrogates=True)
    except ValueError:
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
    """Returns a span id in hexadecimal digits, from those or from the Base64 of newer clients."""
    if text.startswith("0x"):
        return text[2:]
    if len(text) == 16:
        return text
    try:
        return base64.b64decode(text, validate=True).hex()
    except binascii.Error:
        return text


def _spans_of_file(trace: Trace, workspace: str) -> list[Span]:
    location = trace.tags.get(reserved_tags.ARTIFACT_LOCATION)
    if location is None:
        return []
    try:
        data = artifacts.store().get(artifacts.locate(location, workspace, _SPANS_FILE))
        spans = parse_json_bytes(data or b"{}", lone_surrogates=True).get("spans")
    except (errors.InvalidParameterValue, ValueError, AttributeError):
        return []
    return [span for span in spans if isinstance(span, dict)] if isinstance(spans, list) else []
