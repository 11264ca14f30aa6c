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


def is_repetition(known: str, new: Assessment) -> bool:
    """Returns whether a new assessment is the stored one, apart from the time of its arrival."""
    return text(parse(known)._replace(arrived=None)) == text(new._replace(arrived=None))


def in_known_places(new: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """Returns the texts of new assessments by id; those that replace a stored one have its place
    in the order."""
    return {
        assessment_id: text(parse(made)._replace(arrived=parse(known[assessment_id]).arrived))
        if assessment_id in known
        else made
        for assessment_id, made in new.items()
    }


def in_order(texts: Mapping[str, str]) -> tuple[Assessment, ...]:
    """Returns all assessments of a trace from their stored texts, in the order in which they were
    stored: the times that clients give them may be equal, or of any order."""
    return tuple(sorted(map(parse, texts.values()), key=_place))


def _place(assessment: Assessment) -> tuple[int, int, str]:
    created = assessment.create_time
    arrived = created * 1_000 if assessment.arrived is None else assessment.arrived
    return arrived, created, assessment.assessment_id
