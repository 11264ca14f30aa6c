"""Traces: the trace item, which is the source of truth, and the ``TRACE#`` item that tells its
experiment.

The trace item carries what MLflow calls a trace's info, and as maps its tags, metadata, assessments
and linked prompts. Every write of it requires the version that it was decided on: what a trace
shows is derived from what was told about it and from its spans, which come in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from mlcore import artifacts, errors
from mlcore.db import keys
from mlcore.db.attributes import integer_of, text_of
from mlcore.db.expression import Condition, Raw, Update, number, string
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Delete, Put, TransactionFailed, back_off, table
from mlcore.entities import Experiment, Trace
from mlcore.ids import new_ulid, now_ms
from mlcore.models.traces import Trace as TraceItem
from mlcore.models.traces import TraceReference
from mlcore.repos import document
from mlcore.repos.document import Document
from mlcore.repos.experiments import experiments
from mlcore.repos.settings import ttl_policy
from mlcore.repos.traces import assessments as trace_assessments
from mlcore.repos.traces import children as trace_children
from mlcore.repos.traces import marks as trace_marks

TRACE_NAME_TAG = "mlflow.traceName"
SESSION = "mlflow.trace.session"
WRITE_ATTEMPTS = 60
LOCATIONS_KEPT = 20_000

_locations: dict[str, str] = {}


class Info(NamedTuple):
    """The attributes of a trace item that are no maps."""

    request_time: int
    execution_duration: int | None
    state: str
    client_request_id: str | None = None
    request_preview: str | None = None
    response_preview: str | None = None
    given: str | None = None
    facts: str | None = None
    first_pack: str | None = None


class Change(NamedTuple):
    """What a write does: info as it will be, texts to set by map, (map, key) pairs to remove."""

    info: Info
    sets: Mapping[str, Mapping[str, str]]
    removals: Sequence[tuple[str, str]] = ()


class Record(NamedTuple):
    """A trace as it was read, together with its experiment."""

    experiment: Experiment
    document: Document

    @property
    def trace_id(self) -> str:
        trace_id: str = self.document.item["trace_id"]["S"]
        return trace_id

    @property
    def info(self) -> Info:
        item = self.document.item
        return Info(
            int(item["request_time"]["N"]),
            integer_of(item, "execution_duration"),
            item["state"]["S"],
            text_of(item, "client_request_id"),
            text_of(item, "request_preview"),
            text_of(item, "response_preview"),
            text_of(item, "given"),
            text_of(item, "facts"),
            text_of(item, "first_pack"),
        )


def find(trace_id: str, workspace: str) -> Record | None:
    """The trace with its experiment; None if there is none in the workspace. One consistent
    BatchGetItem, one GetItem more where the trace has to be located."""
    return find_many([trace_id], workspace)[0]


def find_many(trace_ids: Sequence[str], workspace: str) -> list[Record | None]:
    """As :func:`find`, in the order of the ids; two round trips together."""
    located = _locate(trace_ids)
    found = _read([(located[trace_id], trace_id) for trace_id in trace_ids if trace_id in located])
    lost = [trace_id for trace_id in located if found.get(trace_id) is None]
    if lost:
        # Deleted, and perhaps made anew in another experiment.
        for trace_id in lost:
            _locations.pop(trace_id, None)
        again = _locate(lost)
        moved = [
            (again[lost_id], lost_id) for lost_id in again if again[lost_id] != located[lost_id]
        ]
        found.update(_read(moved))
    return [_visible(found.get(trace_id), workspace) for trace_id in trace_ids]


def find_or_place(trace_id: str, experiment_id: str) -> tuple[Experiment | None, Record | None]:
    """For a trace that may be new: the experiment where it would be made, and the trace wherever it
    is. One round trip unless it is in another experiment."""
    known = _locations.get(trace_id, experiment_id)
    reference, meta, item, elsewhere, *setting = table.batch_get(
        [
            keys.trace_ref(trace_id),
            keys.experiment(experiment_id),
            keys.trace(known, trace_id),
            keys.experiment(known),
            *ttl_policy.asking(),
        ]
    )
    ttl_policy.learn(setting)
    experiment = experiments.found(experiment_id, meta)
    if item is None and reference is not None and reference["experiment_id"]["S"] != known:
        read = _read([(reference["experiment_id"]["S"], trace_id)]).get(trace_id)
        return experiment, read
    owner = experiments.found(known, elsewhere)
    if item is None or owner is None:
        return experiment, None
    return experiment, record(item, owner)


def record(item: Raw, experiment: Experiment) -> Record:
    owner = (experiment.experiment_id, item["trace_id"]["S"])
    return Record(experiment, document.load(item, owner, trace_children.MAPS))


def create(
    trace_id: str,
    experiment: Experiment,
    info: Info,
    maps: Mapping[str, Mapping[str, str]],
    further: Iterable[Raw] = (),
) -> bool:
    """One transaction: the trace, its location, and what else is to appear with it.

    Returns:
        False if the trace is there already: read it and decide again.
    """
    experiment_id = experiment.experiment_id
    attributes, children = document.initial((experiment_id, trace_id), trace_children.MAPS, maps)
    place = keys.trace(experiment_id, trace_id)
    gsi1pk, gsi1sk = keys.gsi1_trace(trace_id, experiment_id)
    model = TraceItem(
        PK=place.pk,
        SK=place.sk,
        gsi1pk=gsi1pk,
        gsi1sk=gsi1sk,
        trace_id=trace_id,
        experiment_id=experiment_id,
        request_time=info.request_time,
        state=info.state,
        updated_at=now_ms(),
        version=1,
    )
    item = {**model.serialize(), **attributes}
    name = maps.get("tags", {}).get(TRACE_NAME_TAG)
    session = maps.get("trace_metadata", {}).get(SESSION)
    shown = _attributes(trace_id, info, name, session)
    shown["lsi1sk"] = trace_marks.of_new(trace_id)
    item.update({key: value for key, value in shown.items() if value})
    reference = keys.trace_ref(trace_id)
    location = TraceReference(
        PK=reference.pk,
        SK=reference.sk,
        trace_id=trace_id,
        experiment_id=experiment_id,
        updated_at=now_ms(),
        version=1,
    )
    end = ttl_policy.until("traces")
    item, children = ttl_policy.marked(item, end), [ttl_policy.marked(c, end) for c in children]
    table.batch_write(children)
    absent = Condition()
    absent.require_absent("PK")
    here = Condition()
    here.require_absent_or_equal("experiment_id", string(experiment_id))
    rest = [Put(item, absent), *map(Put, further)]
    try:
        table.transact([Put(location.serialize(), here), *rest], token=new_ulid())
    except TransactionFailed as failed:
        left = failed.items.get(0)
        if left is None or len(failed.items) > 1:
            return False
        # Either the trace is in another experiment, or its deletion there was cut short.
        former: str = left["experiment_id"]["S"]
        same = Condition()
        same.require_equal("experiment_id", string(former))
        gone = Delete(keys.trace(former, trace_id), absent)
        try:
            table.transact([Put(location.serialize(), same), gone, *rest], token=new_ulid())
        except TransactionFailed:
            return False
    _remember(trace_id, experiment_id)
    return True


def write(read: Record, decide: Callable[[Record], Change | None]) -> Record | None:
    """Changes a trace; decides again whenever another writer came first.

    Args:
        decide: what to change in the trace as it is, None for nothing; raises what forbids it.

    Returns:
        The trace as it was decided on last (not as it is after the write); None if it is gone.
    """
    current = read
    for attempt in range(WRITE_ATTEMPTS):
        change = decide(current)
        if change is None:
            return current
        try:
            _send(current, change)
        except ConditionFailed as failed:
            if failed.item is None or "trace_id" not in failed.item:
                item = table.get(current.document.key)
                if item is None:
                    return None
                current = record(item, current.experiment)
            else:
                current = record(failed.item, current.experiment)
        else:
            return current
        if attempt:
            back_off(attempt)
    raise errors.TemporarilyUnavailable("The trace is busy with other writes. Try again.")


def delete(records: Sequence[Record]) -> None:
    """Spans and other children first, then the traces, then their locations: whoever repeats a
    deletion that was cut short finishes it."""
    table.parallel([partial(_delete_children, read) for read in records])
    table.batch_write(deletes=[read.document.key for read in records])
    table.batch_write(deletes=[keys.trace_ref(read.trace_id) for read in records])
    for read in records:
        _locations.pop(read.trace_id, None)


def entity(read: Record) -> Trace:
    maps = {name: read.document.texts(name) for name in trace_children.MAPS}
    return shown(read.trace_id, read.experiment, read.info, maps)


def after(read: Record, change: Change) -> Trace:
    """The trace as a write leaves it that was decided on it as it was read."""
    maps = {
        name: {**read.document.texts(name), **change.sets.get(name, {})}
        for name in trace_children.MAPS
    }
    for name, key in change.removals:
        maps[name].pop(key, None)
    return shown(read.trace_id, read.experiment, change.info, maps)


def shown(
    trace_id: str, experiment: Experiment, info: Info, maps: Mapping[str, Mapping[str, str]]
) -> Trace:
    return Trace(
        trace_id=trace_id,
        experiment_id=experiment.experiment_id,
        request_time=info.request_time,
        execution_duration=info.execution_duration,
        state=info.state,
        client_request_id=info.client_request_id,
        request_preview=info.request_preview,
        response_preview=info.response_preview,
        trace_metadata=dict(maps.get("trace_metadata", {})),
        tags=dict(maps.get("tags", {})),
        assessments=trace_assessments.in_order(maps.get("assessments", {})),
        prompts=tuple(sorted(maps.get("prompts", ()))),
    )


def _send(read: Record, change: Change) -> None:
    """Raises ConditionFailed."""
    name = _after(read, change, "tags", TRACE_NAME_TAG)
    session = _after(read, change, "trace_metadata", SESSION)

    item = read.document.item
    mark = trace_marks.after(item, change.sets, change.removals, change.info.client_request_id)

    def complete(update: Update) -> None:
        for attribute, value in _attributes(read.trace_id, change.info, name, session).items():
            if value is not None:
                if value != item.get(attribute):
                    update.set(attribute, value)
            elif attribute in item:
                update.remove(attribute)
        if mark is not None:
            update.set("lsi1sk", mark)
        update.require_equal("version", item["version"])

    document.write(read.document, change.sets, change.removals, complete)


def _after(read: Record, change: Change, name: str, key: str) -> str | None:
    """What a map holds after the write."""
    present = None if (name, key) in change.removals else read.document.texts(name).get(key)
    return change.sets.get(name, {}).get(key, present)


def _attributes(
    trace_id: str, info: Info, name: str | None, session: str | None
) -> dict[str, Raw | None]:
    """What a trace's info, name and session are on its item; None for what is not there."""

    def text(value: str | None) -> Raw | None:
        return None if value is None else string(value)

    return {
        "request_time": number(info.request_time),
        "execution_duration": (
            None if info.execution_duration is None else number(info.execution_duration)
        ),
        "state": string(info.state),
        "client_request_id": text(info.client_request_id),
        "request_preview": text(info.request_preview),
        "response_preview": text(info.response_preview),
        "given": text(info.given),
        "facts": text(info.facts),
        "first_pack": text(info.first_pack),
        "name": text(name),
        "lsi2sk": string(keys.lsi2_trace(info.request_time, trace_id)),
        "lsi3sk": string(keys.lsi3_trace(info.state, info.request_time, trace_id)),
        "lsi4sk": None if name is None else string(keys.lsi4_trace(name, trace_id)),
        "lsi5sk": (
            None
            if session is None
            else string(keys.lsi5_trace(session, info.request_time, trace_id))
        ),
    }


def _locate(trace_ids: Iterable[str]) -> dict[str, str]:
    """The experiments of those traces that have been made; they are remembered."""
    unknown = [trace_id for trace_id in dict.fromkeys(trace_ids) if trace_id not in _locations]
    for item in table.batch_get([keys.trace_ref(trace_id) for trace_id in unknown]):
        if item is not None:
            _remember(item["trace_id"]["S"], item["experiment_id"]["S"])
    return {
        trace_id: experiment_id
        for trace_id in trace_ids
        if (experiment_id := _locations.get(trace_id)) is not None
    }


def _read(places: Sequence[tuple[str, str]]) -> dict[str, Record | None]:
    """Traces by id, from (experiment id, trace id) pairs."""
    experiment_ids = list(dict.fromkeys(experiment_id for experiment_id, _ in places))
    wanted = [keys.trace(*place) for place in places]
    items = table.batch_get([*wanted, *map(keys.experiment, experiment_ids)])
    metas = dict(zip(experiment_ids, items[len(wanted) :], strict=True))
    owners = {one: experiments.found(one, meta) for one, meta in metas.items()}
    found: dict[str, Record | None] = {}
    for (experiment_id, trace_id), item in zip(places, items[: len(wanted)], strict=True):
        owner = owners[experiment_id]
        found[trace_id] = None if item is None or owner is None else record(item, owner)
    return found


def _delete_children(read: Record) -> None:
    found = list(
        table.query_all(
            read.document.key.pk,
            prefix=keys.trace_prefix(read.trace_id),
            attributes=["PK", "SK", "location"],
        )
    )
    for child in found:
        if "location" in child:
            artifacts.store().delete(child["location"]["S"])
    table.batch_write(deletes=[keys.Key(child["PK"]["S"], child["SK"]["S"]) for child in found])


def _visible(read: Record | None, workspace: str) -> Record | None:
    return None if read is None or read.experiment.workspace != workspace else read


def _remember(trace_id: str, experiment_id: str) -> None:
    if len(_locations) >= LOCATIONS_KEPT:
        _locations.clear()  # one step, so threads need no lock
    _locations[trace_id] = experiment_id
