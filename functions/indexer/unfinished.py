"""What a write that was cut short left of a run's metrics, and its completion.

A request that logs metrics writes the run item and the points of its history side by side, and
answers when both are there. If it dies in between, the latest value of a metric has no point in the
history, or the history has points that are later than the latest value. Readers take the first for
whole and the second for nothing (:mod:`mlcore.repos.runs.latest_points`). Both sides say enough to
complete the other; see ``docs/adr/0025``.

The records of points tell of the latter: points that their run does not know when the records come
are completed then. The former is completed for whoever reads the history. Whoever verifies or
rebuilds an experiment reads the whole history of its runs. All of that may happen at any time,
beside writers, more than once; a write that is under way looks like one that was cut short, and
completing it changes nothing of what it will write.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from indexer import history_items
from mlcore.db import keys
from mlcore.db.expression import Condition, Raw
from mlcore.db.keys import Key
from mlcore.db.table import Check, Put, TransactionFailed, key_in, table
from mlcore.entities.metrics import Metric, recency
from mlcore.ids import new_ulid
from mlcore.models.base import Item
from mlcore.models.runs import Run
from mlcore.repos.document import Owner
from mlcore.repos.experiments import experiments
from mlcore.repos.runs import history, marks, points, runs
from mlcore.repos.runs import writes as run_writes
from mlcore.repos.runs.latest_points import same
from mlcore.repos.runs.runs import StoredRun
from mlcore.repos.settings import ttl_policy


class Left(NamedTuple):
    """What is to be done for a run."""

    latest: Mapping[str, Metric]
    """Points of history that are later than the latest value of their metric."""
    points: Sequence[Metric]
    """Latest values that are no point of their history."""


NOTHING = Left({}, [])


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """Of records of runs and of their points: raises the latest values that points have overtaken.
    Runs that have no record beside their points, or none that is new enough, are read in one
    BatchGetItem, with their points: those of a request that was refused have been taken away.

    Points that change nothing of a run that was followed, such as those of a request sent twice,
    leave no mark; nobody else would pack them."""
    logged: dict[Owner, dict[Key, Raw]] = {}
    known: dict[Owner, Raw] = {}
    for record in records:
        image: Raw | None = record.get("NewImage")
        if image is None:
            continue
        if Item.of(image).type == keys.RUN.name:
            item = Run.of(image)
            known[item.experiment_id, item.run_id] = image
        else:
            place = key_in(image)
            logged.setdefault(keys.run_of(place), {})[place] = image
    behind = [
        run
        for run, found in logged.items()
        if _overtaken(known.get(run), _greatest(found.values()))
    ]
    places = [place for run in behind for place in logged[run]]
    read = table.batch_get([*(keys.run(*run) for run in behind), *places])
    there = dict(zip(places, read[len(behind) :], strict=True))
    for run, now in zip(behind, read, strict=False):
        if now is None:
            continue
        batches = logged[run]
        greatest = _still_logged(run, batches, {place: there[place] for place in batches})
        if _overtaken(now, greatest):
            _raise_latest(run, greatest)
        else:
            known[run] = now
    followed = {run for run in logged if run in known and not marks.since(Run.of(known[run]))}
    history_items.pack_runs(sorted(followed), read=True)


def _still_logged(
    run: Owner, batches: Mapping[Key, Raw], there: Mapping[Key, Raw | None]
) -> dict[str, Metric]:
    """The latest points of some batches that the history of their run still has.

    A batch that is gone was packed, or refused and then removed. Its record, which may come again,
    does not tell which; the packs do. Points that are in a file by now count as followed.

    Args:
        there: the items that are at the places of the batches now.
    """
    found = list(_greatest(item for item in there.values() if item is not None).values())
    for place in (place for place, item in there.items() if item is None):
        for key, point in _greatest([batches[place]]).items():
            found += [one for one in _packed(run, key) if same(one, point)]
    return points.latest_of(found)


def _packed(run: Owner, key: str) -> Iterator[Metric]:
    """The points of a metric that are in packs: one Query."""
    place = keys.run(*run)
    prefix = keys.run_metric_history_prefix(run[1], key)
    for item in table.query_all(place.pk, prefix=prefix, attributes=history.PACK_ATTRIBUTES):
        yield from history.points_of_pack(item, key)


def _greatest(batches: Iterable[Raw]) -> dict[str, Metric]:
    """The latest point of each metric."""
    return points.latest_of(
        point
        for batch in batches
        for series in history.batch_points(batch).values()
        for point in series
    )


def _overtaken(item: Raw | None, greatest: Mapping[str, Metric]) -> bool:
    """Whether points may be later than what a run says: what its item has no room for is not
    looked at here."""
    if item is None:
        return True
    run = Run.of(item)
    texts = run.metrics or {}
    known = {key: points.parse_latest(key, texts[key]) for key in greatest if key in texts}
    return bool(later(greatest, known))


def left(run: Owner) -> Left:
    """Reads a run and its whole history, a page at a time; writes nothing.

    The run is read before the history to know which points must be there, and after it to know
    which latest values must have been written: what is complete never looks unfinished.
    """
    before = _read(run)
    if before is None:
        return NOTHING
    known = runs.metrics(before.document)
    greatest, held = _summary(known, history.of_run(*run))
    after = _read(run)
    if after is None:
        return NOTHING
    # Where history expires, a point may rightly be gone before its value.
    expires = ttl_policy.kept("metric_history") is not None
    missing = [] if expires else [point for key, point in known.items() if key not in held]
    return Left(later(greatest, runs.metrics(after.document)), missing)


def complete(run: Owner) -> Left:
    """Writes what is missing on either side; what was missing. Nothing is written for a run that is
    gone. A run that was deleted meanwhile is completed like any other, so that it is whole when it
    is restored."""
    found = left(run)
    if found.latest:
        _raise_latest(run, found.latest)
    if found.points:
        _add_points(run, found.points)
    return found


def later(greatest: Mapping[str, Metric], known: Mapping[str, Metric]) -> dict[str, Metric]:
    """Those points of ``greatest`` that MLflow's rule makes the latest values."""
    return {
        key: point
        for key, point in greatest.items()
        if key not in known or recency(point) > recency(known[key])
    }


def _summary(
    known: Mapping[str, Metric], logged: Iterable[Metric]
) -> tuple[dict[str, Metric], set[str]]:
    """The latest point of each metric, and the metrics whose known value was among the points."""
    greatest: dict[str, Metric] = {}
    held: set[str] = set()
    for point in logged:
        best = greatest.get(point.key)
        if best is None or recency(point) > recency(best):
            greatest[point.key] = point
        if point.key in known and same(point, known[point.key]):
            held.add(point.key)
    return greatest, held


def _read(run: Owner) -> StoredRun | None:
    item, meta = table.batch_get([keys.run(*run), keys.experiment(run[0])])
    if item is None or meta is None:
        return None
    return runs.of_item(item, experiments.of_item(meta).experiment)


def _raise_latest(run: Owner, latest: Mapping[str, Metric]) -> None:
    """As the request would have done it: with a mark, and never below what is there."""
    read = _read(run)
    if read is None:
        return

    def decide(read: StoredRun) -> tuple[dict[str, dict[str, str]], tuple[()]]:
        wanted = later(latest, runs.metrics(read.document))
        return {"metrics": {key: points.latest_text(one) for key, one in wanted.items()}}, ()

    run_writes.write(read, decide, any_stage=True)


def _add_points(run: Owner, missing: Sequence[Metric]) -> None:
    """As batches, of whose records the system tables learn, too. Only while the run is there: the
    removal of a run takes its history away."""
    experiment_id, run_id = run
    there = Condition()
    there.require_exists(Run.PK)
    check = Check(keys.run(experiment_id, run_id), there)
    for batch in history.batches(experiment_id, run_id, missing):
        with contextlib.suppress(TransactionFailed):
            table.transact([check, Put(batch)], token=new_ulid())
