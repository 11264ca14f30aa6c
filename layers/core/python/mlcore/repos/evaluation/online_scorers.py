"""Online scorers, which judge new traces automatically: all in one partition that the judge runner
reads whole. They are few and seldom change."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Check, Delete, Put, TransactionFailed, key_of_item, table
from mlcore.entities.evaluation.online_scorers import OnlineScorer, ScoringProgress
from mlcore.ids import new_ulid, now_ms
from mlcore.models.base import KEY
from mlcore.models.evaluation import OnlineProgress as ProgressItem
from mlcore.models.evaluation import OnlineScorer as OnlineScorerItem
from mlcore.optimistic_retry import WriteConflict


def save(config: OnlineScorer, former: OnlineScorer | None, checks: Sequence[Check] = ()) -> None:
    """Writes a scorer's online settings.

    Args:
        former: the settings as they were read; None if there were none.
        checks: conditions on other items, which are checked in the same transaction.

    Raises:
        WriteConflict: the settings were written since ``former`` was read, or a check does not
            hold.
    """
    put = replacement(config, former)
    try:
        if checks:
            table.transact([put, *checks], new_ulid())
        else:
            table.put(put.item, put.condition)
    except (ConditionFailed, TransactionFailed) as failed:
        raise WriteConflict from failed


def replacement(config: OnlineScorer, former: OnlineScorer | None) -> Put:
    """Returns the put of a scorer's online settings. The put fails if the stored settings are not
    ``former`` any more (None: if there are any)."""
    return Put(_item(config), _is_stored(former))


def unchanged(workspace: str, experiment_id: str, name: str, known: OnlineScorer | None) -> Check:
    """Returns a check, for a transaction, that a scorer's stored online settings are still
    ``known`` (None: that there are none)."""
    return Check(keys.online_scorer(workspace, experiment_id, name), _is_stored(known))


def _is_stored(config: OnlineScorer | None) -> ConditionExpression:
    condition = ConditionExpression()
    if config is None:
        condition.require_absent(OnlineScorerItem.PK)
    else:
        condition.require_equal(OnlineScorerItem.config_id, config.config_id)
    return condition


def find(workspace: str, experiment_id: str, name: str) -> OnlineScorer | None:
    """Returns a scorer's online settings; None if it has none. One consistent GetItem."""
    raw = table.get(keys.online_scorer(workspace, experiment_id, name))
    return None if raw is None else _config(raw)


def with_ids(workspace: str, scorer_ids: Collection[str]) -> list[OnlineScorer]:
    """Returns the online settings of the scorers with these ids; scorers without online settings
    are left out. One consistent Query per MB of the workspace's online settings."""
    prefix = keys.online_scorer_prefix(workspace)
    configs = map(_config, table.query_all(_pk(), prefix=prefix))
    return [config for config in configs if config.scorer_id in scorer_ids]


def active() -> list[OnlineScorer]:
    """Returns the online settings, of scorers in all workspaces, whose sample rate is above 0; one
    consistent Query per MB."""
    configs = map(_config, table.query_all(_pk(), prefix=keys.online_scorer_prefix()))
    return [config for config in configs if config.sample_rate > 0]


def deletion(workspace: str, experiment_id: str, name: str) -> Delete:
    """Returns the deletion of a scorer's settings for judging new traces automatically, for the
    transaction that deletes the scorer."""
    return Delete(keys.online_scorer(workspace, experiment_id, name))


def delete_of_experiment(workspace: str, experiment_id: str) -> None:
    """Deletes the online settings of all scorers of an experiment that was deleted or moved, and
    the position up to which its traces were judged."""
    prefix = keys.online_scorer_prefix(workspace, experiment_id)
    items = table.query_all(_pk(), prefix=prefix, attributes=KEY)
    progress = keys.online_progress(workspace, experiment_id)
    table.batch_write(deletes=[*map(key_of_item, items), progress])


def progress(workspace: str, experiment_id: str) -> ScoringProgress | None:
    """Returns the position up to which online scorers have been given an experiment's traces; None
    if they were given none yet. One consistent GetItem."""
    raw = table.get(keys.online_progress(workspace, experiment_id))
    if raw is None:
        return None
    item = ProgressItem.of(raw)
    return ScoringProgress(item.trace_time, item.trace_id, item.version)


def set_progress(workspace: str, experiment_id: str, reached: ScoringProgress) -> None:
    """Stores the position up to which an experiment's traces have been judged. Raises WriteConflict
    if another process has advanced it since it was read."""
    key = keys.online_progress(workspace, experiment_id)
    item = ProgressItem(
        PK=key.pk,
        SK=key.sk,
        trace_time=reached.trace_time,
        trace_id=reached.trace_id,
        version=reached.version + 1,
        updated_at=now_ms(),
    )
    unchanged = ConditionExpression()
    unchanged.require_absent_or_equal(ProgressItem.version, reached.version)
    try:
        table.put(item.serialize(), unchanged)
    except ConditionFailed as failed:
        raise WriteConflict from failed


def _item(config: OnlineScorer) -> Raw:
    key = keys.online_scorer(config.workspace, config.experiment_id, config.name)
    item = OnlineScorerItem(
        PK=key.pk,
        SK=key.sk,
        config_id=config.config_id,
        workspace=config.workspace,
        experiment_id=config.experiment_id,
        name=config.name,
        scorer_id=config.scorer_id,
        sample_rate=config.sample_rate,
        filter_string=config.filter_string,
        since=config.since,
        owner=config.owner,
        owner_id=config.owner_id,
        endpoint_id=config.endpoint_id,
        seal=config.seal,
        version=1,
        updated_at=now_ms(),
    )
    return item.serialize()


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
        owner=item.owner,
        owner_id=item.owner_id,
        endpoint_id=item.endpoint_id,
        seal=item.seal,
    )
