"""Assessments of a trace as its item stores them: a map of JSON texts by id."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Final

from mlcore.entities.traces import Assessment
from mlcore.ids import now_us

MOST_ARRIVALS: Final = 16_000
"""Maximum bytes of the attribute ``arrivals``."""


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


def arriving(ids: Iterable[str]) -> dict[str, int]:
    """Returns times for assessments that come now (microseconds since the epoch), by id, which keep
    the order of the ids."""
    return dict(zip(ids, count(now_us())))


def after(arrivals: str | None, new: Mapping[str, int], removed: Iterable[str] = ()) -> str | None:
    """Returns the attribute ``arrivals`` of a trace's item after a write. An assessment that is
    written again keeps its place. If the text becomes too long, the assessments that came first are
    left out of it.

    They are not in the assessments' texts: 0.1.0 takes a repeated request for another one if the
    text differs.

    Args:
        arrivals: the attribute as it is.
        new: when new assessments came (microseconds since the epoch), by id.
        removed: the ids of deleted assessments.
    """
    known: dict[str, int] = {} if arrivals is None else json.loads(arrivals)
    gone = set(removed)
    entries = {key: time for key, time in {**new, **known}.items() if key not in gone}
    if entries == known:
        return arrivals
    latest = sorted(entries, key=lambda key: (entries[key], key))
    while latest:
        text = json.dumps({key: entries[key] for key in latest}, separators=(",", ":"))
        if len(text) <= MOST_ARRIVALS:
            return text
        del latest[: max(1, len(latest) // 8)]
    return None


def in_order(texts: Mapping[str, str], arrivals: str | None) -> tuple[Assessment, ...]:
    """Returns all assessments of a trace from their stored texts, in the order in which they came:
    the times that clients give them may be equal, or of any order.

    Args:
        arrivals: the attribute of the trace's item. An assessment that it lacks has the place of
            its time of creation: the server made it, or 0.1.0 stored it.
    """
    known: dict[str, int] = {} if arrivals is None else json.loads(arrivals)

    def place(assessment: Assessment) -> tuple[int, int, str]:
        created = assessment.create_time
        arrived = known.get(assessment.assessment_id, created * 1_000)
        return arrived, created, assessment.assessment_id

    return tuple(sorted(map(parse, texts.values()), key=place))
