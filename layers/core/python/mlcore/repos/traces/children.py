"""The maps of a trace item, and the child items for map entries that the item has no room for: TAG,
METADATA, A (assessments) and PROMPT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcore.db import keys
from mlcore.db.attribute_types import TextMapAttribute
from mlcore.db.expression import Raw
from mlcore.models.traces import Trace, TraceAssessment, TraceMetadata, TracePrompt, TraceTag
from mlcore.repos import document


def _tag(item_key: keys.Key, key: str, text: str) -> Raw:
    return TraceTag(PK=item_key.pk, SK=item_key.sk, key=key, value=text).serialize()


def _child(
    model: type[TraceMetadata] | type[TraceAssessment] | type[TracePrompt],
) -> Callable[[keys.Key, str, str], Raw]:
    def child(item_key: keys.Key, key: str, _text: str) -> Raw:
        return model(PK=item_key.pk, SK=item_key.sk, key=key).serialize()

    return child


def _entry(
    attribute: TextMapAttribute[Any],
    prefix: Callable[[str], str],
    key_of: Callable[[str, str, str], keys.Key],
    child: Callable[[keys.Key, str, str], Raw],
) -> document.Map:
    return document.Map(
        attribute,
        document.REPLACE,
        lambda owner: prefix(owner[1]),
        lambda owner, key: key_of(owner[0], owner[1], key),
        child,
        as_text=True,
    )


MAPS: document.Maps = {
    entry.attribute: entry
    for entry in (
        _entry(Trace.tags, keys.trace_tag_prefix, keys.trace_tag, _tag),
        _entry(
            Trace.trace_metadata,
            keys.trace_metadata_prefix,
            keys.trace_metadata,
            _child(TraceMetadata),
        ),
        _entry(
            Trace.assessments,
            keys.trace_assessment_prefix,
            keys.trace_assessment,
            _child(TraceAssessment),
        ),
        _entry(Trace.prompts, keys.trace_prompt_prefix, keys.trace_prompt, _child(TracePrompt)),
    )
}
"""The map attributes of a trace item; the owner of a trace's children is (experiment id, trace
id)."""
