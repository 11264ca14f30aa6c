"""Scorers that judge by themselves: all in one partition, which whoever looks for traces reads
whole. There are few, and they seldom change."""

from __future__ import annotations

from collections.abc import Collection

from mlcore.db import keys
from mlcore.db.expression import Condition, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import key_in, table
from mlcore.entities.evaluation.online_scorers import OnlineScorer, Progress
from mlcore.ids import now_ms
from mlcore.models.base import KEY
from mlcore.models.evaluation import OnlineProgress as ProgressItem
from mlcore.models.evaluation import OnlineScorer as OnlineScorerItem
from mlcore.settle import Conflict


def put(config: OnlineScorer) -> None:
    """In place of what the scorer had before."""
    place = keys.online_scorer(config.workspace, config.experiment_id, config.name)
    item = OnlineScorerItem(
        PK=place.pk,
        SK=place.sk,
        config_id=config.config_id,
        workspace=config.workspace,
        experiment_id=config.experiment_id,
        name=config.name,
        scorer_id=config.scorer_id,
        sample_rate=config.sample_rate,
        filter_string=config.filter_string,
        since=config.since,
        version=1,
        updated_at=now_ms(),
    )
    table.put(item.serialize())


def find(workspace: str, experiment_id: str, name: str) -> OnlineScorer | None:
    """One consistent GetItem."""
    raw = table.get(keys.online_scorer(workspace, experiment_id, name))
    return None if raw is None else _config(raw)


def with_ids(workspace: str, scorer_ids: Collection[str]) -> list[OnlineScorer]:
    """Those of the scorers that have one; one consistent Query of the workspace's."""
    prefix = keys.online_scorer_prefix(workspace)
    found = map(_config, table.query_all(_pk(), prefix=prefix))
    return [config for config in found if config.scorer_id in scorer_ids]


def active() -> list[OnlineScorer]:
    """Of all workspaces those that judge anything; one consistent Query for each MB."""
    found = map(_config, table.query_all(_pk(), prefix=keys.online_scorer_prefix()))
    return [config for config in found if config.sample_rate > 0]


def delete(workspace: str, experiment_id: str, name: str) -> None:
    """Of a scorer that is deleted; may be repeated."""
    table.delete(keys.online_scorer(workspace, experiment_id, name))


def forget(workspace: str, experiment_id: str) -> None:
    """All of an experiment that is gone from the workspace."""
    prefix = keys.online_scorer_prefix(workspace, experiment_id)
    found = table.query_all(_pk(), prefix=prefix, attributes=KEY)
    progress = keys.online_progress(workspace, experiment_id)
    table.batch_write(deletes=[*map(key_in, found), progress])


def progress(workspace: str, experiment_id: str) -> Progress | None:
    """One consistent GetItem."""
    raw = table.get(keys.online_progress(workspace, experiment_id))
    if raw is None:
        return None
    item = ProgressItem.of(raw)
    return Progress(item.trace_time, item.trace_id, item.version)


def reach(workspace: str, experiment_id: str, reached: Progress) -> None:
    """Raises Conflict: somebody else has come further."""
    place = keys.online_progress(workspace, experiment_id)
    item = ProgressItem(
        PK=place.pk,
        SK=place.sk,
        trace_time=reached.trace_time,
        trace_id=reached.trace_id,
        version=reached.version + 1,
        updated_at=now_ms(),
    )
    unchanged = Condition()
    unchanged.require_absent_or_equal(ProgressItem.version, reached.version)
    try:
        table.put(item.serialize(), unchanged)
    except ConditionFailed as failed:
        raise Conflict from failed


def _pk() -> str:
    return keys.online_scorer("", "", "").pk


def _config(raw: Raw) -> OnlineScorer:
    item = OnlineScorerItem.of(raw)
    return OnlineScorer(
        config_id=item.config_id,
        workspace=item.workspace,
        experiment_id=item.experiment_id,
        name=item.name,
        scorer_id=item.scorer_id,
        sample_rate=item.sample_rate,
        filter_string=item.filter_string,
        since=item.since,
    )
