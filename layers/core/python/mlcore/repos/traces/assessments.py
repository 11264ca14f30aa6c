"""Assessments as a trace item holds them: JSON by id."""

from __future__ import annotations

import json
from collections.abc import Mapping

from mlcore.entities.traces import Assessment


def text(assessment: Assessment) -> str:
    """What the trace's map holds; attributes that are None are left out, but for the value."""
    fields = {
        name: value
        for name, value in assessment._asdict().items()
        if value is not None or name == "value"
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def parse(text: str) -> Assessment:
    fields = json.loads(text)
    return Assessment(**{name: fields.get(name) for name in Assessment._fields})


def in_order(texts: Mapping[str, str]) -> tuple[Assessment, ...]:
    """All assessments of a trace in the order in which they were made."""
    found = map(parse, texts.values())
    return tuple(sorted(found, key=lambda one: (one.create_time, one.assessment_id)))
