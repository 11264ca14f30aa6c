"""Schedules of issue detection, one item for each experiment that has a schedule. All are in one
partition, whose LSI2 orders them by the time at which they are due. So the query for due schedules
reads no other items."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Delete, Put, table
from mlcore.entities.evaluation.detection_schedule import ConfirmedSchedule
from mlcore.ids import now_ms
from mlcore.models.evaluation import DetectionSchedule as ScheduleItem
from mlcore.optimistic_retry import WriteConflict


def find(workspace: str, experiment_id: str) -> ConfirmedSchedule | None:
    """Returns the confirmed schedule of an experiment's issue detection; None if there is none. One
    consistent GetItem."""
    raw = table.get(keys.detection_schedule(workspace, experiment_id))
    return None if raw is None else _of_item(raw)


def due(now: int, most: int) -> list[ConfirmedSchedule]:
    """Returns at most ``most`` schedules of issue detection, of all workspaces, that are due at
    ``now`` (ms since the epoch), the longest due first; one consistent Query of LSI2."""
    page = table.query(
        keys.detection_schedule("", "").pk,
        index="LSI2",
        between=keys.lsi2_detection_schedules_until(now),
        limit=most,
    )
    return list(map(_of_item, page.items))


def put(confirmed: ConfirmedSchedule) -> None:
    """Writes a schedule of issue detection. Raises WriteConflict if it was written or removed since
    it was read."""
    write = replacement(confirmed)
    try:
        table.put(write.item, write.condition)
    except ConditionFailed as failed:
        raise WriteConflict from failed


def replacement(confirmed: ConfirmedSchedule) -> Put:
    """Returns the put of a schedule of issue detection, for a transaction. The put fails if the
    schedule was written or removed since it was read."""
    key = keys.detection_schedule(confirmed.workspace, confirmed.experiment_id)
    item = ScheduleItem(
        PK=key.pk,
        SK=key.sk,
        lsi2sk=keys.lsi2_detection_schedule(
            confirmed.fire_time, confirmed.workspace, confirmed.experiment_id
        ),
        workspace=confirmed.workspace,
        experiment_id=confirmed.experiment_id,
        schedule=confirmed.schedule_text,
        trace_filter=confirmed.filter_text,
        owner=confirmed.owner,
        owner_id=confirmed.owner_id,
        last_fire_time=confirmed.last_fire_time,
        fire_time=confirmed.fire_time,
        version=confirmed.version + 1,
        updated_at=now_ms(),
    )
    return Put(item.serialize(), _unchanged(confirmed))


def removal(confirmed: ConfirmedSchedule) -> Delete:
    """Returns the deletion of a schedule of issue detection, for a transaction. The deletion fails
    if the schedule was written or deleted since it was read."""
    key = keys.detection_schedule(confirmed.workspace, confirmed.experiment_id)
    return Delete(key, _unchanged(confirmed))


def remove(confirmed: ConfirmedSchedule) -> None:
    """Deletes a schedule of issue detection; does nothing if it was written since it was read."""
    deletion = removal(confirmed)
    try:
        table.delete(deletion.key, deletion.condition)
    except ConditionFailed:
        return


def remove_of_experiment(workspace: str, experiment_id: str) -> None:
    """Deletes an experiment's schedule of issue detection. Idempotent."""
    table.delete(keys.detection_schedule(workspace, experiment_id))


def _unchanged(confirmed: ConfirmedSchedule) -> ConditionExpression:
    condition = ConditionExpression()
    if confirmed.version:
        condition.require_equal(ScheduleItem.version, confirmed.version)
    else:
        condition.require_absent(ScheduleItem.PK)
    return condition


def _of_item(raw: Raw) -> ConfirmedSchedule:
    item = ScheduleItem.of(raw)
    return ConfirmedSchedule(
        workspace=item.workspace,
        experiment_id=item.experiment_id,
        schedule_text=item.schedule,
        filter_text=item.trace_filter,
        owner=item.owner,
        last_fire_time=item.last_fire_time,
        fire_time=item.fire_time,
        version=item.version,
        owner_id=item.owner_id,
    )
