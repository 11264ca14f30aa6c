"""DynamoDB keys of traces, in their experiment's partition, and of references to traces."""

from __future__ import annotations

from mlcore.db.keys.pattern import Key, Pattern, remembering

_EXP = "EXP#<experiment_id>"

TRACE = Pattern("trace", _EXP, "T#<trace_id>", "a trace's info with its tags and metadata")
TRACE_TAG = Pattern("trace_tag", _EXP, "T#<trace_id>#TAG#<key>", "one tag", "overflow")
TRACE_METADATA = Pattern(
    "trace_metadata", _EXP, "T#<trace_id>#METADATA#<key>", "one entry of the metadata", "overflow"
)
TRACE_ASSESSMENT = Pattern(
    "trace_assessment", _EXP, "T#<trace_id>#A#<assessment_id>", "one assessment", "overflow"
)
TRACE_PROMPT = Pattern(
    "trace_prompt", _EXP, "T#<trace_id>#PROMPT#<key>", "a linked prompt version", "overflow"
)
TRACE_SPANS = Pattern(
    "trace_spans",
    _EXP,
    "T#<trace_id>#SPANS",
    "the first spans of the trace that arrived, as a pack",
)
TRACE_SPANS_PACK = Pattern(
    "trace_spans_pack",
    _EXP,
    "T#<trace_id>#SPANS#<suffix>",
    "further spans of the trace that arrived in one export",
)
TRACE_REMOVAL = Pattern(
    "trace_removal",
    _EXP,
    "TRACEREMOVAL#<suffix>",
    "traces whose rows the publisher removes from the system tables, as a request asked",
)
TRACE_LINK = Pattern(
    "trace_link", "RUN#<run_id>", "RUN#TRACE#<trace_id>", "a trace that was linked to the run"
)
ASSESSED_TRACE = Pattern(
    "assessed_trace",
    "RUN#<run_id>",
    "RUN#ASSESSED#<trace_id>",
    "a trace with assessments that the run made",
)
TRACE_REF = Pattern(
    "trace_ref", "TRACE#<trace_id>", "TRACE#REF", "the trace's experiment, read consistently"
)

TRACE_PATTERNS = (
    TRACE,
    TRACE_TAG,
    TRACE_METADATA,
    TRACE_ASSESSMENT,
    TRACE_PROMPT,
    TRACE_SPANS,
    TRACE_SPANS_PACK,
    TRACE_REMOVAL,
    TRACE_REF,
    TRACE_LINK,
    ASSESSED_TRACE,
)

_partition = remembering(TRACE.pk.build)


def trace(experiment_id: str, trace_id: str) -> Key:
    return Key(_partition(experiment_id), TRACE.sk.build(trace_id))


def trace_prefix(trace_id: str = "") -> str:
    """Returns the prefix of the sort keys of a trace's children, without the trace itself; without
    an id, of all traces and their children."""
    return TRACE.sk.build(trace_id) + "#" if trace_id else TRACE.sk.prefix()


def trace_of(key: Key) -> Key:
    """Returns the key of the trace's item, given the key of an item of a trace, such as a tag;
    the key of a trace's item is returned unchanged."""
    return Key(key.pk, "#".join(key.sk.split("#")[:2]))


def trace_tag(experiment_id: str, trace_id: str, key: str) -> Key:
    return Key(_partition(experiment_id), TRACE_TAG.sk.build(trace_id, key))


def trace_tag_prefix(trace_id: str) -> str:
    return TRACE_TAG.sk.prefix(trace_id)


def trace_metadata(experiment_id: str, trace_id: str, key: str) -> Key:
    return Key(_partition(experiment_id), TRACE_METADATA.sk.build(trace_id, key))


def trace_metadata_prefix(trace_id: str) -> str:
    return TRACE_METADATA.sk.prefix(trace_id)


def trace_assessment(experiment_id: str, trace_id: str, assessment_id: str) -> Key:
    return Key(_partition(experiment_id), TRACE_ASSESSMENT.sk.build(trace_id, assessment_id))


def trace_assessment_prefix(trace_id: str) -> str:
    return TRACE_ASSESSMENT.sk.prefix(trace_id)


def trace_prompt(experiment_id: str, trace_id: str, prompt: str) -> Key:
    return Key(_partition(experiment_id), TRACE_PROMPT.sk.build(trace_id, prompt))


def trace_prompt_prefix(trace_id: str) -> str:
    return TRACE_PROMPT.sk.prefix(trace_id)


def trace_spans(experiment_id: str, trace_id: str) -> Key:
    return Key(_partition(experiment_id), TRACE_SPANS.sk.build(trace_id))


def trace_spans_pack(experiment_id: str, trace_id: str, suffix: str) -> Key:
    return Key(_partition(experiment_id), TRACE_SPANS_PACK.sk.build(trace_id, suffix))


def trace_spans_prefix(trace_id: str) -> str:
    """Returns the prefix of the sort keys of all items that hold spans of a trace."""
    return TRACE_SPANS.sk.build(trace_id)


def trace_removal(experiment_id: str, suffix: str) -> Key:
    return Key(_partition(experiment_id), TRACE_REMOVAL.sk.build(suffix))


def trace_link(run_id: str, trace_id: str) -> Key:
    return Key(TRACE_LINK.pk.build(run_id), TRACE_LINK.sk.build(trace_id))


def trace_link_prefix() -> str:
    return TRACE_LINK.sk.prefix()


def assessed_trace(run_id: str, trace_id: str) -> Key:
    return Key(ASSESSED_TRACE.pk.build(run_id), ASSESSED_TRACE.sk.build(trace_id))


def assessed_trace_prefix() -> str:
    return ASSESSED_TRACE.sk.prefix()


def trace_ref(trace_id: str) -> Key:
    return Key(TRACE_REF.pk.build(trace_id), TRACE_REF.sk.text)
