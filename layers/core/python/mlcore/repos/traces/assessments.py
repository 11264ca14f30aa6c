"""Assessments of a trace as its item stores them: a map of JSON texts by id."""

from __future__ import annotations

import json
from collections.abc import Mapping

from mlcore.entities.traces import Assessment


def text(assessment: Assessment) -> str:
    """Returns an assessment as the JSON text that its trace's item stores. Attributes that are None
    are left out, except the value."""
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
    """Returns all assessments of a trace from their stored texts, in the order in which they were
    made."""
    assessments = map(parse, texts.values())
    return tuple(
        sorted(
            assessments, key=lambda assessment: (assessment.create_time, assessment.assessment_id)
        )
    )
