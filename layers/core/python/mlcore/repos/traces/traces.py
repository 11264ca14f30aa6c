"""Traces: the trace item, which is the source of truth, and the ``TRACE#`` item that maps its id to
its experiment.

The trace item holds the trace's info (MLflow's term), and as maps its tags, metadata, assessments
and linked prompts. Each write here requires the version on which it was decided, because its info
is computed from values that clients sent and from its spans, which arrive in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from mlcore import artifacts, reserved_tags
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Delete, Put, TransactionFailed, key_of_item, table
from mlcore.entities.experiments import Experiment
from mlcore.entities.traces import Trace
from mlcore.ids import new_ulid, now_ms
from mlcore.limits.traces import check_experiment
from mlcore.models.base import KEY
from mlcore.models.traces import Trace as TraceItem
from mlcore.models.traces import TraceReference, TraceSpans
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.process_cache import ProcessCache
from mlcore.repos import document, document_writes
from mlcore.repos.document import Document
from mlcore.repos.experiments import experiments
from mlcore.repos.settings import redaction as redaction_setting
from mlcore.repos.settings import ttl_policy
from mlcore.repos.traces import assessments as trace_assessments
from mlcore.repos.traces import children as trace_children
from mlcore.repos.traces import item_attributes, redaction
from mlcore.repos.traces import marks as trace_marks
from mlcore.repos.traces.redaction import Maps

_places: ProcessCache[str, str] = ProcessCache("place of a trace")
"""Experiment ids by trace id; an entry is stale only after the trace was deleted."""


NONE_ARRIVED: Final[Mapping[str, int]] = {}


class Info(NamedTuple):
    """The attributes of a trace item that are not maps. ``given`` is the JSON that a client sent
    about the trace, ``facts`` the JSON of what its spans say (:mod:`mlcore.spans.trace_state`)."""

    request_time: int
    execution_duration: int | None
    state: str
    client_request_id: str | None = None
    request_preview: str | None = None
    response_preview: str | None = None
    given: str | None = None
    facts: str | None = None
    first_pack: str | None = None


class TraceChange(NamedTuple):
    """A write of a trace: its new info, texts to set by map and key, (map, key) pairs to remove."""

    info: Info
    sets: Mapping[str, Mapping[str, str]]
    removals: Sequence[tuple[str, str]] = ()
    arrivals: Mapping[str, int] = NONE_ARRIVED
    """When the client's new assessments came (microseconds since the epoch), by id."""


class StoredTrace(NamedTuple):
    """A trace that was read, with its experiment."""

    experiment: Experiment
    document: Document
    item: TraceItem
    """The document's item, as the model declares it."""

    @property
    def trace_id(self) -> str:
        return self.document.owner[1]

    @property
    def info(self) -> Info:
        item = self.item
        return Info(
            item.request_time,
            item.execution_duration,
            item.state,
            item.client_request_id,
            item.request_preview,
            item.response_preview,
            item.given,
            item.facts,
            item.first_pack,
        )


def find(trace_id: str, workspace: str) -> StoredTrace | None:
    """Returns a workspace's trace; None if missing. One round trip if its experiment is cached."""
    return find_many([trace_id], workspace)[0]


def find_many(trace_ids: Sequence[str], workspace: str) -> list[StoredTrace | None]:
    """Returns a workspace's traces in the ids' order, None if missing; normally two round trips,
    and a Query for each map that overflowed."""
    located = _locate(trace_ids)
    traces = _read([(located[trace_id], trace_id) for trace_id in trace_ids if trace_id in located])
    lost = [trace_id for trace_id in located if traces.get(trace_id) is None]
    if lost:  # deleted, and perhaps created again in another experiment
        for trace_id in lost:
            _places.pop(trace_id)
        again = _locate(lost)
        moved = [(owner, name) for name, owner in again.items() if owner != located[name]]
        traces.update(_read(moved))
    return [_visible(traces.get(trace_id), workspace) for trace_id in trace_ids]


def find_or_place(
    trace_id: str, experiment_id: str, workspace: str
) -> tuple[Experiment | None, StoredTrace | None]:
    """Returns (experiment, trace) for a request that may create the trace: None if it is missing;
    both are None without such an experiment. One round trip; more for another experiment's trace.

    Raises:
        InvalidParameterValue: another experiment, of any workspace, has a trace with this id.
    """
    known = _places.get(trace_id) or experiment_id
    policy_keys = ttl_policy.unread_keys()
    reference, meta, item, elsewhere, *settings = table.batch_get(
        [
            keys.trace_ref(trace_id),
            keys.experiment(experiment_id),
            keys.trace(known, trace_id),
            keys.experiment(known),
            *(*policy_keys, *redaction_setting.unread_keys()),
        ]
    )
    ttl_policy.learn(settings[: len(policy_keys)])
    redaction_setting.learn(settings[len(policy_keys) :])
    experiment = experiments.entity_of(experiment_id, meta, workspace)
    read: StoredTrace | None = None
    if item is not None and elsewhere is not None:
        read = of_item(item, experiments.of_item(elsewhere).experiment)
    elif item is None and reference is not None:
        other = TraceReference.of(reference).experiment_id
        if other != known:
            read = _read([(other, trace_id)]).get(trace_id)
    if experiment is None:
        return None, None
    if read is not None:
        check_experiment(trace_id, read.experiment.experiment_id, experiment_id)
    return experiment, read


def of_item(item: Raw, experiment: Experiment) -> StoredTrace:
    view = TraceItem.of(item)
    owner = (experiment.experiment_id, view.trace_id)
    return StoredTrace(experiment, document.load(item, owner, trace_children.MAPS), view)


def create(
    trace_id: str,
    experiment: Experiment,
    info: Info,
    maps: Maps,
    further: Iterable[Raw] = (),
    arrivals: Mapping[str, int] = NONE_ARRIVED,
) -> Trace | None:
    """Creates a trace's item, the item that maps its id to its experiment, and ``further`` items in
    one transaction. Map values that do not fit into the trace's item are written before. Redacts
    all but ``further``. Returns the trace; None if it exists: then the caller must read it.

    Args:
        arrivals: when its assessments came (microseconds since the epoch), by id.
    """
    experiment_id = experiment.experiment_id
    info, maps = redaction.redacted_parts(experiment, info, maps)
    attributes, children = document.initial((experiment_id, trace_id), trace_children.MAPS, maps)
    key = keys.trace(experiment_id, trace_id)
    gsi1pk, gsi1sk = keys.gsi1_trace(trace_id, experiment_id)
    model = TraceItem(
        PK=key.pk,
        SK=key.sk,
        gsi1pk=gsi1pk,
        gsi1sk=gsi1sk,
        lsi1sk=trace_marks.of_new(trace_id),
        trace_id=trace_id,
        experiment_id=experiment_id,
        request_time=info.request_time,
        state=info.state,
        arrivals=trace_assessments.after(None, arrivals),
        updated_at=now_ms(),
        version=1,
    )
    item = {**model.serialize(), **attributes}
    name = maps.get("tags", {}).get(reserved_tags.TRACE_NAME)
    session = maps.get("trace_metadata", {}).get(reserved_tags.TRACE_SESSION)
    for attribute, value in item_attributes.values(trace_id, info, name, session):
        if value is not None:
            item[attribute.attr_name] = attribute.raw(value)
    reference = keys.trace_ref(trace_id)
    location = TraceReference(
        PK=reference.pk,
        SK=reference.sk,
        trace_id=trace_id,
        experiment_id=experiment_id,
        updated_at=now_ms(),
        version=1,
    )
    end = ttl_policy.expires_at("traces")
    item, children = (
        ttl_policy.with_expiry(item, end),
        [ttl_policy.with_expiry(c, end) for c in children],
    )
    table.batch_write(children)
    absent = ConditionExpression()
    absent.require_absent(TraceItem.PK)
    here = ConditionExpression()
    here.require_absent_or_equal(TraceReference.experiment_id, experiment_id)
    rest = [Put(item, absent), *map(Put, further)]
    try:
        table.transact([Put(location.serialize(), here), *rest], token=new_ulid())
    except TransactionFailed as failed:
        existing = failed.items.get(0)
        if existing is None or len(failed.items) > 1:
            return None
        # Either the trace is in another experiment, or its deletion there was interrupted.
        former = TraceReference.of(existing).experiment_id
        same = ConditionExpression()
        same.require_equal(TraceReference.experiment_id, former)
        gone = Delete(keys.trace(former, trace_id), absent)
        try:
            table.transact([Put(location.serialize(), same), gone, *rest], token=new_ulid())
        except TransactionFailed:
            return None
    _places.put(trace_id, experiment_id)
    return _shown(trace_id, experiment, info, maps, model.arrivals)


def write(
    trace: StoredTrace, decide: Callable[[StoredTrace], TraceChange | None]
) -> StoredTrace | None:
    """Redacts and writes a change of a trace; calls ``decide`` again after each write conflict.

    Args:
        decide: returns the change of the current trace, None for none; raises if it is forbidden.

    Returns the trace as it was before the write; None if it was deleted.
    """
    current = trace

    def attempt() -> StoredTrace | None:
        nonlocal current
        change = decide(current)
        if change is None:
            return current
        try:
            _send(current, redaction.redacted_change(current, change))
        except ConditionFailed as failed:
            item = failed.item or table.get(current.document.key)
            if item is None:
                return None
            current = of_item(item, current.experiment)
            raise WriteConflict from failed
        return current

    return retry_on_conflict("trace", attempt)


def delete(records: Sequence[StoredTrace]) -> None:
    """Deletes traces: child items such as spans first, then the trace items, then the items that
    map ids to experiments. An interrupted deletion is completed by repeating it."""
    table.parallel([partial(_delete_children, trace) for trace in records])
    table.batch_write(deletes=[trace.document.key for trace in records])
    table.batch_write(deletes=[keys.trace_ref(trace.trace_id) for trace in records])
    for trace in records:
        _places.pop(trace.trace_id)


def entity(trace: StoredTrace) -> Trace:
    maps = {name: trace.document.texts(name) for name in trace_children.MAPS}
    return _shown(trace.trace_id, trace.experiment, trace.info, maps, trace.item.arrivals)


def after(trace: StoredTrace, change: TraceChange) -> Trace:
    """Returns a trace as it would be after a change, whose texts are redacted; writes nothing."""
    change = redaction.redacted_change(trace, change)
    maps = {
        name: {**trace.document.texts(name), **change.sets.get(name, {})}
        for name in trace_children.MAPS
    }
    for name, key in change.removals:
        maps[name].pop(key, None)
    arrivals = _arrivals_after(trace, change)
    return _shown(trace.trace_id, trace.experiment, change.info, maps, arrivals)


def _shown(
    trace_id: str, experiment: Experiment, info: Info, maps: Maps, arrivals: str | None
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
        assessments=trace_assessments.in_order(maps.get("assessments", {}), arrivals),
        prompts=tuple(sorted(maps.get("prompts", ()))),
    )


def _send(trace: StoredTrace, change: TraceChange) -> None:
    """Writes a change of a trace. Raises ConditionFailed if it was written since it was read."""
    name = _after(trace, change, "tags", reserved_tags.TRACE_NAME)
    session = _after(trace, change, "trace_metadata", reserved_tags.TRACE_SESSION)

    item = trace.document.item
    mark = trace_marks.after(item, change.sets, change.removals, change.info.client_request_id)

    def complete(update: Update) -> None:
        for attribute, value in item_attributes.values(trace.trace_id, change.info, name, session):
            raw = None if value is None else attribute.raw(value)
            if raw != item.get(attribute.attr_name):
                update.set_or_remove(attribute, value)
        if mark is not None:
            update.set(TraceItem.lsi1sk, mark)
        arrivals = _arrivals_after(trace, change)
        if arrivals != trace.item.arrivals:
            update.set_or_remove(TraceItem.arrivals, arrivals)

    document_writes.write(trace.document, change.sets, change.removals, complete, exclusive=True)


def _arrivals_after(trace: StoredTrace, change: TraceChange) -> str | None:
    removed = [key for name, key in change.removals if name == "assessments"]
    known = trace.document.texts("assessments") if change.arrivals else {}
    new = {key: time for key, time in change.arrivals.items() if key not in known}
    return trace_assessments.after(trace.item.arrivals, new, removed)


def _after(trace: StoredTrace, change: TraceChange, name: str, key: str) -> str | None:
    """Returns the value of a map's key after a write; None if it has none."""
    present = None if (name, key) in change.removals else trace.document.texts(name).get(key)
    return change.sets.get(name, {}).get(key, present)


def _locate(trace_ids: Iterable[str]) -> dict[str, str]:
    """Returns the experiment ids of existing traces by trace id, and caches them."""
    unknown = [trace_id for trace_id in dict.fromkeys(trace_ids) if trace_id not in _places]
    for item in table.batch_get([keys.trace_ref(trace_id) for trace_id in unknown]):
        if item is not None:
            reference = TraceReference.of(item)
            _places.put(reference.trace_id, reference.experiment_id)
    return {
        trace_id: experiment_id
        for trace_id in trace_ids
        if (experiment_id := _places.get(trace_id)) is not None
    }


def _read(places: Sequence[tuple[str, str]]) -> dict[str, StoredTrace | None]:
    """Returns traces of any workspace by id, from (experiment id, trace id) pairs."""
    experiment_ids = list(dict.fromkeys(experiment_id for experiment_id, _ in places))
    wanted = [keys.trace(*identity) for identity in places]
    items = table.batch_get([*wanted, *map(keys.experiment, experiment_ids)])
    metas = zip(experiment_ids, items[len(wanted) :], strict=True)
    owners = {id_: experiments.of_item(meta).experiment for id_, meta in metas if meta is not None}
    traces: dict[str, StoredTrace | None] = {}
    for (experiment_id, trace_id), item in zip(places, items[: len(wanted)], strict=True):
        owner = owners.get(experiment_id)
        traces[trace_id] = None if item is None or owner is None else of_item(item, owner)
    return traces


def _delete_children(trace: StoredTrace) -> None:
    items = list(
        table.query_all(
            trace.document.key.pk,
            prefix=keys.trace_prefix(trace.trace_id),
            attributes=[*KEY, TraceSpans.location],
        )
    )
    for child in items:
        location = TraceSpans.of(child).location
        if location is not None:
            artifacts.store().delete(location)
    table.batch_write(deletes=map(key_of_item, items))


def _visible(trace: StoredTrace | None, workspace: str) -> StoredTrace | None:
    return None if trace is None or trace.experiment.workspace != workspace else trace
