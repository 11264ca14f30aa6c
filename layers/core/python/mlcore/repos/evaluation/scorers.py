"""Versions of scorers: one item each in the partition of their experiment."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.expression import Condition, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Put, TransactionFailed, table
from mlcore.entities.evaluation.scorers import ScorerVersion
from mlcore.entities.experiments import Experiment
from mlcore.ids import new_ulid, now_ms
from mlcore.models.base import KEY
from mlcore.models.evaluation import ScorerVersion as ScorerItem
from mlcore.repos.evaluation import entity_refs
from mlcore.repos.experiments import experiments
from mlcore.repos.removal import remains
from mlcore.settle import Conflict


def create(version: ScorerVersion) -> None:
    """Raises Conflict: the version is there already."""
    place = keys.scorer_version(version.experiment_id, version.name, version.version)
    item = ScorerItem(
        PK=place.pk,
        SK=place.sk,
        name=version.name,
        number=version.version,
        scorer_id=version.scorer_id,
        experiment_id=version.experiment_id,
        serialized_scorer=version.serialized_scorer,
        creation_time=version.creation_time,
        version=1,
        updated_at=now_ms(),
    )
    absent = Condition()
    absent.require_absent(ScorerItem.PK)
    try:
        if version.version > 1:
            table.put(item.serialize(), absent)
        else:
            leading = entity_refs.put(version.scorer_id, version.experiment_id)
            table.transact([Put(item.serialize(), absent), leading], new_ulid())
    except (ConditionFailed, TransactionFailed) as failed:
        raise Conflict from failed


def with_id(scorer_id: str, workspace: str) -> list[ScorerVersion]:
    """All versions that have an id, oldest first. A consistent GetItem tells the experiment; for a
    scorer of an earlier version of this server, which has no such item, all are looked at."""
    experiment_id = entity_refs.experiment_of(scorer_id)
    ids = experiments.ids_of_workspace(workspace) if experiment_id is None else [experiment_id]
    for experiment in experiments.known(list(ids), workspace):
        pk = keys.experiment(experiment.experiment_id).pk
        versions = map(_version, table.query_all(pk, prefix=keys.scorer_version_prefix()))
        found = [version for version in versions if version.scorer_id == scorer_id]
        if found:
            return found
    return []


def find(experiment: Experiment, name: str, version: int) -> ScorerVersion | None:
    """One consistent GetItem."""
    item = table.get(keys.scorer_version(experiment.experiment_id, name, version))
    return None if item is None else _version(item)


def latest(experiment: Experiment, name: str) -> ScorerVersion | None:
    """One consistent Query."""
    pk = keys.experiment(experiment.experiment_id).pk
    page = table.query(pk, prefix=keys.scorer_version_prefix(name), descending=True, limit=1)
    return _version(page.items[0]) if page.items else None


def versions(experiment: Experiment, name: str) -> list[ScorerVersion]:
    """Oldest first; one consistent Query."""
    pk = keys.experiment(experiment.experiment_id).pk
    found = table.query_all(pk, prefix=keys.scorer_version_prefix(name))
    return [_version(item) for item in found]


def latest_of_experiment(experiment: Experiment) -> list[ScorerVersion]:
    """The latest version of each scorer, by name; one consistent Query of all versions."""
    pk = keys.experiment(experiment.experiment_id).pk
    found: dict[str, ScorerVersion] = {}
    for item in table.query_all(pk, prefix=keys.scorer_version_prefix()):
        version = _version(item)
        found[version.name] = version
    return [version for _, version in sorted(found.items())]


def delete(experiment: Experiment, name: str, version: int) -> bool:
    """Whether it was there."""
    return table.delete(keys.scorer_version(experiment.experiment_id, name, version)) is not None


def delete_all(experiment: Experiment, name: str, scorer_id: str) -> None:
    """With what leads from its id to it. May be repeated."""
    table.delete(entity_refs.gone(scorer_id).key)
    pk = keys.experiment(experiment.experiment_id).pk
    prefix = keys.scorer_version_prefix(name)
    remains.delete(table.query_all(pk, prefix=prefix, attributes=KEY))


def _version(raw: Raw) -> ScorerVersion:
    item = ScorerItem.of(raw)
    return ScorerVersion(
        experiment_id=item.experiment_id,
        name=item.name,
        version=item.number,
        scorer_id=item.scorer_id,
        serialized_scorer=item.serialized_scorer,
        creation_time=item.creation_time,
    )
