"""Versions of scorers: one item each, in their experiment's partition."""

from __future__ import annotations

from collections.abc import Sequence

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Check, Delete, Operation, Put, TransactionFailed, table
from mlcore.entities.evaluation.scorers import ScorerVersion, seal_of
from mlcore.entities.experiments import Experiment
from mlcore.ids import new_ulid, now_ms
from mlcore.models.evaluation import ScorerVersion as ScorerItem
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.evaluation import entity_experiments
from mlcore.repos.experiments import experiments


def create(version: ScorerVersion, beside: Sequence[Operation] = ()) -> None:
    """Writes a new version of a scorer, with a digest of all that the version consists of, and the
    item that maps the scorer's id to its experiment. A version is written once. Raises
    WriteConflict if the version exists already, or if a condition in ``beside`` does not hold.

    Args:
        beside: what is written or checked in the same transaction.
    """
    key = _key(version)
    item = ScorerItem(
        PK=key.pk,
        SK=key.sk,
        name=version.name,
        number=version.version,
        scorer_id=version.scorer_id,
        experiment_id=version.experiment_id,
        serialized_scorer=version.serialized_scorer,
        creation_time=version.creation_time,
        seal=seal_of(version),
        version=1,
        updated_at=now_ms(),
    )
    absent = ConditionExpression()
    absent.require_absent(ScorerItem.PK)
    # The reference is written with each version: a deletion of the former ones may have taken it.
    reference = entity_experiments.creation(version.scorer_id, version.experiment_id)
    try:
        table.transact([Put(item.serialize(), absent), reference, *beside], new_ulid())
    except TransactionFailed as failed:
        raise WriteConflict from failed


def with_id(scorer_id: str, workspace: str) -> list[ScorerVersion]:
    """Returns all versions of a scorer, oldest first; none if the workspace has no such scorer.
    Reads the item that maps the id to the experiment, then the experiment's scorers."""
    experiment_id = entity_experiments.experiment_of(scorer_id)
    if experiment_id is None or not experiments.find_existing([experiment_id], workspace):
        return []
    pk = keys.experiment(experiment_id).pk
    versions = map(_version, table.query_all(pk, prefix=keys.scorer_version_prefix()))
    return [version for version in versions if version.scorer_id == scorer_id]


def find(experiment: Experiment, name: str, version: int) -> ScorerVersion | None:
    """Returns one version of a scorer; None if there is none. One consistent GetItem."""
    item = table.get(keys.scorer_version(experiment.experiment_id, name, version))
    return None if item is None else _version(item)


def latest(experiment: Experiment, name: str) -> ScorerVersion | None:
    """Returns the latest version of a scorer; None if there is no scorer of this name. One
    consistent Query."""
    pk = keys.experiment(experiment.experiment_id).pk
    page = table.query(pk, prefix=keys.scorer_version_prefix(name), descending=True, limit=1)
    return _version(page.items[0]) if page.items else None


def is_latest(version: ScorerVersion) -> tuple[Check, Check]:
    """Returns two checks for a transaction: that a version of a scorer is stored as it was read,
    and that the scorer has no next version."""
    key = _key(version)
    return Check(key, _is_stored(version)), _has_no_next(version)


def versions(experiment: Experiment, name: str) -> list[ScorerVersion]:
    """Returns all versions of a scorer, oldest first; one consistent Query per MB."""
    pk = keys.experiment(experiment.experiment_id).pk
    items = table.query_all(pk, prefix=keys.scorer_version_prefix(name))
    return [_version(item) for item in items]


def latest_of_experiment(experiment: Experiment) -> list[ScorerVersion]:
    """Returns the latest version of each scorer, ordered by name. Queries all versions,
    consistently; one Query per MB."""
    pk = keys.experiment(experiment.experiment_id).pk
    latest_by_name: dict[str, ScorerVersion] = {}
    for item in table.query_all(pk, prefix=keys.scorer_version_prefix()):
        version = _version(item)
        latest_by_name[version.name] = version
    return [version for _, version in sorted(latest_by_name.items())]


def delete(experiment: Experiment, name: str, version: int) -> bool:
    """Deletes one version of a scorer; returns whether it existed."""
    # Without a condition, a deletion that is repeated after a lost answer finds nothing.
    stored = ConditionExpression()
    stored.require_exists(ScorerItem.PK)
    try:
        table.delete(keys.scorer_version(experiment.experiment_id, name, version), stored)
    except ConditionFailed:
        return False
    return True


def delete_all(versions: Sequence[ScorerVersion], also: Sequence[Operation] = ()) -> None:
    """Deletes a scorer with all its versions. The latest version is deleted last, in one
    transaction with the item that maps the scorer's id to its experiment and with ``also``; so an
    interrupted call leaves a scorer without its former versions. Raises WriteConflict if a version
    was stored or deleted since they were read, or a condition in ``also`` does not hold.

    Args:
        versions: all versions of the scorer, oldest first.
    """
    *former, latest = versions
    table.batch_write(deletes=[_key(version) for version in former])
    operations = [
        Delete(_key(latest), _is_stored(latest)),
        _has_no_next(latest),
        entity_experiments.deletion(latest.scorer_id),
        *also,
    ]
    try:
        table.transact(operations, new_ulid())
    except TransactionFailed as failed:
        raise WriteConflict from failed


def _key(version: ScorerVersion) -> keys.Key:
    return keys.scorer_version(version.experiment_id, version.name, version.version)


def _is_stored(version: ScorerVersion) -> ConditionExpression:
    """Returns the condition that a version of a scorer is stored as it was read."""
    stored = ConditionExpression()
    stored.require_equal(ScorerItem.scorer_id, version.scorer_id)
    if version.seal is None:
        stored.require_equal(ScorerItem.creation_time, version.creation_time)
    else:
        stored.require_equal(ScorerItem.seal, version.seal)
    return stored


def _has_no_next(version: ScorerVersion) -> Check:
    """Returns the check that the scorer has no version after this one."""
    absent = ConditionExpression()
    absent.require_absent(ScorerItem.PK)
    following = keys.scorer_version(version.experiment_id, version.name, version.version + 1)
    return Check(following, absent)


def _version(raw: Raw) -> ScorerVersion:
    item = ScorerItem.of(raw)
    return ScorerVersion(
        experiment_id=item.experiment_id,
        name=item.name,
        version=item.number,
        scorer_id=item.scorer_id,
        serialized_scorer=item.serialized_scorer,
        creation_time=item.creation_time,
        seal=item.seal,
    )
