"""Declares the DynamoDB items in which traces are stored."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import (
    BytesAttribute,
    IntAttribute,
    TextAttribute,
    TextMapAttribute,
    TextSetAttribute,
)
from mlcore.models.base import ChildItem, Item, MetaItem


class Trace(MetaItem):
    """A trace without its spans: info, tags, metadata, assessments (JSON by id) and linked prompts
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
    arrivals = TextAttribute(null=True)
    """JSON: when clients' assessments came (microseconds since the epoch), by id."""
    prompts = TextMapAttribute(null=True)
    given = TextAttribute(null=True)
    """JSON: the data that clients sent about the trace itself."""
    facts = TextAttribute(null=True)
    """JSON: the data derived from its spans."""
    first_pack = TextAttribute(null=True)
    """The pack in the item ``T#<trace_id>#SPANS``."""


class TraceReference(Item):
    """Maps a trace's id to its experiment."""

    pattern = keys.TRACE_REF

    version = IntAttribute()
    trace_id = TextAttribute()
    experiment_id = TextAttribute()


class TraceTag(ChildItem):
    """The item of one tag that does not fit into its trace's own item."""

    pattern = keys.TRACE_TAG

    value = TextAttribute()


class TraceMetadata(ChildItem):
    """An entry of a trace's metadata."""

    pattern = keys.TRACE_METADATA


class TraceAssessment(ChildItem):
    """The item of one assessment (JSON) that does not fit into its trace's own item."""

    pattern = keys.TRACE_ASSESSMENT


class TracePrompt(ChildItem):
    """The item of one linked prompt version that does not fit into its trace's own item."""

    pattern = keys.TRACE_PROMPT


class TraceSpans(Item):
    """A pack of spans that one request sent: ``data`` is JSON compressed with zlib, one span per
    line."""

    pattern = keys.TRACE_SPANS

    version = IntAttribute()
    trace_id = TextAttribute()
    experiment_id = TextAttribute()
    suffix = TextAttribute()
    """Hash of the request's content."""
    spans = IntAttribute()
    """Number of spans."""
    data = BytesAttribute(null=True)
    nodes = BytesAttribute()
    """The fields of each span that aggregations need, as JSON compressed with zlib."""
    lsi1sk = TextAttribute(null=True)
    """Set until the indexer has processed the pack, if the full-text index covers fields of
    spans."""
    location = TextAttribute(null=True)
    """The file with the spans, if they are too large for ``data`` or are archived."""


class TraceSpansPack(TraceSpans):
    """A pack of spans of a trace that has a first pack already."""

    pattern = keys.TRACE_SPANS_PACK


class TraceRemoval(Item):
    """Traces that a request deleted although the table has none of these ids. The item expires; its
    stream record makes the publisher remove the rows of these traces."""

    pattern = keys.TRACE_REMOVAL

    experiment_id = TextAttribute()
    trace_ids = TextSetAttribute()


class TraceLink(Item):
    """Records that a trace was linked to a run; in the run's partition."""

    pattern = keys.TRACE_LINK

    trace_id = TextAttribute()
    run_id = TextAttribute()


class AssessedTrace(Item):
    """Records that a trace got an assessment that a run made; in the run's partition."""

    pattern = keys.ASSESSED_TRACE

    trace_id = TextAttribute()
    run_id = TextAttribute()
