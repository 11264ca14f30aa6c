"""Items of traces."""

from __future__ import annotations

from pynamodb.attributes import UnicodeAttribute

from mlcore.db import keys
from mlcore.db.attributes import IntAttribute, TextMapAttribute
from mlcore.models.base import ChildItem, IndexedItem, Item


class Trace(IndexedItem):
    """A trace's info."""

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
    bytes = IntAttribute(null=True)
    overflow = UnicodeAttribute(null=True)


class TraceReference(Item):
    """Where a trace is."""

    pattern = keys.TRACE_REF

    trace_id = UnicodeAttribute()
    experiment_id = UnicodeAttribute()


class TraceTag(ChildItem):
    """A tag of a trace."""

    pattern = keys.TRACE_TAG

    value = UnicodeAttribute()


class TraceSpans(Item):
    """The spans as JSON, or (``location``) the object that holds them."""

    pattern = keys.TRACE_SPANS

    spans = UnicodeAttribute(null=True)
    location = UnicodeAttribute(null=True)
