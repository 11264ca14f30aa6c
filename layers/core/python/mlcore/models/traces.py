"""Items of traces."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attributes import BytesAttribute, IntAttribute, TextAttribute, TextMapAttribute
from mlcore.models.base import ChildItem, Item, MetaItem


class Trace(MetaItem):
    """A trace's info, with tags, metadata, assessments (JSON by id) and linked prompts
    (``name/version``)."""

    pattern = keys.TRACE

    trace_id = TextAttribute()
    experiment_id = TextAttribute()
    client_request_id = TextAttribute(null=True)
    name = TextAttribute(null=True)
    request_time = IntAttribute()
    execution_duration = IntAttribute(null=True)
    state = TextAttribute()
    request_preview = TextAttribute(null=True)
    response_preview = TextAttribute(null=True)
    tags = TextMapAttribute(null=True)
    trace_metadata = TextMapAttribute(null=True)
    assessments = TextMapAttribute(null=True)
    prompts = TextMapAttribute(null=True)
    given = TextAttribute(null=True)
    """JSON: what was told about the trace itself."""
    facts = TextAttribute(null=True)
    """JSON: what its spans tell."""
    first_pack = TextAttribute(null=True)
    """The pack that lies at the trace's first place of spans."""


class TraceReference(Item):
    """Where a trace is."""

    pattern = keys.TRACE_REF

    version = IntAttribute()
    trace_id = TextAttribute()
    experiment_id = TextAttribute()


class TraceTag(ChildItem):
    """A tag of a trace."""

    pattern = keys.TRACE_TAG

    value = TextAttribute()


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

    version = IntAttribute()
    trace_id = TextAttribute()
    experiment_id = TextAttribute()
    suffix = TextAttribute()
    """A hash of what came."""
    spans = IntAttribute()
    """How many."""
    data = BytesAttribute(null=True)
    nodes = BytesAttribute()
    """zlib of JSON: what aggregations need of each span."""
    lsi1sk = TextAttribute(null=True)
    """While the indexer has not followed what the spans hold."""
    location = TextAttribute(null=True)
    """The file that holds what would be ``data``, if that is large."""


class TraceSpansPack(TraceSpans):
    """Further spans that came together."""

    pattern = keys.TRACE_SPANS_PACK


class TraceLink(Item):
    """A trace that was linked to a run."""

    pattern = keys.TRACE_LINK

    trace_id = TextAttribute()
    run_id = TextAttribute()
