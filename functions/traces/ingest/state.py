"""What a trace shows: made of what was told about it and of what its spans tell.

Either may come first, in any order and any number of times; the trace shows the same in the end.
What was told about the trace counts before what its spans tell.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from mlcore.entities.experiments import Experiment
from mlcore.repos.traces.traces import Change, Info, StoredTrace
from traces.conventions.names import ARTIFACT_LOCATION_TAG, IN_STORE, SPANS_LOCATION_TAG
from traces.ingest import facts
from traces.ingest.facts import Facts

UNDECIDED = ("IN_PROGRESS", "STATE_UNSPECIFIED")
Texts = Mapping[str, str]


class Given(NamedTuple):
    """What was told about a trace itself. A time is in milliseconds."""

    request_time: int
    execution_duration: int | None = None
    state: str = "IN_PROGRESS"
    client_request_id: str | None = None
    request_preview: str | None = None
    response_preview: str | None = None

    @property
    def text(self) -> str:
        told = {name: value for name, value in self._asdict().items() if value is not None}
        return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def given_of(info: Info) -> Given | None:
    return None if info.given is None else Given(**json.loads(info.given))


def info(given: Given | None, told: Facts | None, first_pack: str | None) -> Info:
    """What is shown of a trace about which something is known."""
    root = told.root if told else None
    text = given.text if given else None
    if given is None:
        given = Given(told.start if told else 0)
    duration = given.execution_duration
    if duration is None and told and told.end:
        duration = told.end - given.request_time
    return Info(
        request_time=given.request_time,
        execution_duration=duration,
        state=root.state if root and given.state in UNDECIDED else given.state,
        client_request_id=given.client_request_id,
        request_preview=_first(given.request_preview, root.request if root else None),
        response_preview=_first(given.response_preview, root.response if root else None),
        given=text,
        facts=told.text if told else None,
        first_pack=first_pack,
    )


def with_given(trace: StoredTrace, given: Given, tags: Texts, metadata: Texts) -> Change:
    """The trace after something was told about it."""
    told = facts.parse(trace.info.facts)
    if told:
        told = masked(told, tags, metadata)
    sets = {
        "tags": _changed(trace.document.texts("tags"), tags),
        "trace_metadata": _changed(trace.document.texts("trace_metadata"), metadata),
    }
    return Change(info(given, told, trace.info.first_pack), sets)


def with_facts(trace: StoredTrace, told: Facts, first_pack: str | None) -> Change | None:
    """The trace after spans came; None if it is so already.

    Args:
        told: the facts of all spans so far.
    """
    before = facts.parse(trace.info.facts)
    tags = trace.document.texts("tags")
    metadata = trace.document.texts("trace_metadata")
    hidden = {*told.masked}
    for present, was, now in (
        (tags, before.tag_texts() if before else {}, told.tag_texts()),
        (metadata, before.metadata_texts() if before else {}, told.metadata_texts()),
    ):
        hidden |= {key for key in now if key in present and key not in was}
    told = told._replace(masked=tuple(sorted(hidden)))
    shown = info(given_of(trace.info), told, first_pack)
    sets = {
        "tags": _changed(tags, {**_shown(told.tag_texts(), hidden), SPANS_LOCATION_TAG: IN_STORE}),
        "trace_metadata": _changed(metadata, _shown(told.metadata_texts(), hidden)),
    }
    if shown == trace.info and not any(sets.values()):
        return None
    return Change(shown, sets)


def masked(told: Facts, tags: Texts, metadata: Texts) -> Facts:
    """The facts after these tags and metadata were set or deleted otherwise."""
    hidden = {*told.masked, *(told.tag_texts().keys() & tags.keys())}
    hidden |= told.metadata_texts().keys() & metadata.keys()
    return told._replace(masked=tuple(sorted(hidden)))


def first_maps(told: Facts, experiment: Experiment, trace_id: str) -> dict[str, Texts]:
    """Tags and metadata of a trace of which only spans have come."""
    tags = {
        **artifact_location(experiment, trace_id),
        **told.tag_texts(),
        SPANS_LOCATION_TAG: IN_STORE,
    }
    return {"tags": tags, "trace_metadata": told.metadata_texts()}


def artifact_location(experiment: Experiment, trace_id: str) -> dict[str, str]:
    """The tag that says where clients keep the files of a trace."""
    root = experiment.artifact_location
    end = min((at for at in map(root.find, "?#") if at >= 0), default=len(root))
    head, tail = root[:end], root[end:]
    head = head if head.endswith(":/") else head.rstrip("/") + "/"
    return {ARTIFACT_LOCATION_TAG: f"{head}traces/{trace_id}/artifacts{tail}"}


def _first(one: str | None, other: str | None) -> str | None:
    return other if one is None else one


def _shown(texts: Texts, hidden: set[str]) -> dict[str, str]:
    return {key: text for key, text in texts.items() if key not in hidden}


def _changed(present: Texts, wanted: Texts) -> dict[str, str]:
    return {key: text for key, text in wanted.items() if present.get(key) != text}
