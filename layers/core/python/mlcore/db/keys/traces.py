"""Keys of traces, which live in their experiment's partition, and what finds them elsewhere."""

from __future__ import annotations

from mlcore.db.keys.pattern import Key, Pattern

_EXP = "EXP#<experiment_id>"

TRACE = Pattern("trace", _EXP, "T#<trace_id>", "a trace's info with its tags and metadata")
TRACE_TAG = Pattern("trace_tag", _EXP, "T#<trace_id>#TAG#<key>", "one tag", "overflow")
TRACE_SPANS = Pattern("trace_spans", _EXP, "T#<trace_id>#SPANS", "the spans, serialised")
TRACE_REF = Pattern(
    "trace_ref", "TRACE#<trace_id>", "TRACE#REF", "the trace's experiment, read consistently"
)

TRACE_PATTERNS = (TRACE, TRACE_TAG, TRACE_SPANS, TRACE_REF)

_partition = TRACE.pk.build


def trace(experiment_id: str, trace_id: str) -> Key:
    return Key(_partition(experiment_id), TRACE.sk.build(trace_id))


def trace_prefix(trace_id: str = "") -> str:
    """Of all that belongs to a trace, but not it; without an id, of all traces and all theirs."""
    return TRACE.sk.build(trace_id) + "#" if trace_id else TRACE.sk.prefix()


def trace_tag(experiment_id: str, trace_id: str, key: str) -> Key:
    return Key(_partition(experiment_id), TRACE_TAG.sk.build(trace_id, key))


def trace_tag_prefix(trace_id: str) -> str:
    return TRACE_TAG.sk.prefix(trace_id)


def trace_spans(experiment_id: str, trace_id: str) -> Key:
    return Key(_partition(experiment_id), TRACE_SPANS.sk.build(trace_id))


def trace_ref(trace_id: str) -> Key:
    return Key(TRACE_REF.pk.build(trace_id), TRACE_REF.sk.text)
