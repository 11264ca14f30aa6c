"""Items of traces."""

from __future__ import annotations

from pynamodb.attributes import UnicodeAttribute

from mlcore.db import keys
from mlcore.db.attributes import BytesAttribute, IntAttribute, TextMapAttribute
from mlcore.models.base import ChildItem, IndexedItem, Item


class Trace(IndexedItem):
    """A trace's info, with tags, metadata, assessments (JSON by id) and linked prompts
    (``name/version``)."""

    pattern = keys.TRACE

    trace_id = UnicodeAttribute()
    experiment_id = UnicodeAttribute()
    client_request_id = UnicodeAttribute(null=True)
    name = UnicodeAttribute(null=True)
    request_time = IntAttribute()
    execution_duration = IntAttribute(null=True)
    state = UnicodeAttribute()
    request_preview = UnicodeAttribute(null=True)
    response_preview = UnicodeAttribute(null=True)
    tags = TextMapAttribute(null=True)
    trace_metadata = TextMapAttribute(null=True)
    assessments = TextMapAttribute(null=True)
    prompts = TextMapAttribute(null=True)
    bytes = IntAttribute(null=True)
    overflow = UnicodeAttribute(null=True)
    given = UnicodeAttribute(null=True)
    """JSON: what was told about the trace itself."""
    facts = UnicodeAttribute(null=True)
    """JSON: what its spans tell."""
    first_pack = UnicodeAttribute(null=True)
    """The pack that lies at the trace's first place of spans."""


class TraceReference(Item):
    """Where a trace is."""

    pattern = keys.TRACE_REF

    trace_id = UnicodeAttribute()
    experiment_id = UnicodeAttribute()


class TraceTag(ChildItem):
    """A tag of a trace."""

    pattern = keys.TRACE_TAG

    value = UnicodeAttribute()


class TraceMetadata(ChildItem):
    """An entry of a trace's metadata."""

    pattern = keys.TRACE_METADATA


class TraceAssessment(ChildItem):
    """An assessment of a trace, as JSON."""

    pattern = keys.TRACE_ASSESSMENT


class TracePrompt(ChildItem):
    """A prompt version that was linked to a trace."""

    pattern = keys.TRACE_PROMPT


class TraceSpans(Item):
    """The spans that came together: ``data`` is zlib of their JSON, one span in a line."""

    pattern = keys.TRACE_SPANS

    trace_id = UnicodeAttribute()
    experiment_id = UnicodeAttribute()
    suffix = UnicodeAttribute()
    """A hash of what came."""
    spans = IntAttribute()
    """How many."""
    data = BytesAttribute(null=True)
    nodes = BytesAttribute(null=True)
    """zlib of JSON: what aggregations need of each span."""
    lsi1sk = UnicodeAttribute(null=True)
    """While the indexer has not followed what the spans hold."""
    location = UnicodeAttribute(null=True)
    """The file that holds what would be ``data``, if that is large."""


class TraceSpansPack(TraceSpans):
    """Further spans that came together."""

    pattern = keys.TRACE_SPANS_PACK


class TraceLink(Item):
    """A trace that was linked to a run."""

    pattern = keys.TRACE_LINK

    trace_id = UnicodeAttribute()
    run_id = UnicodeAttribute()
