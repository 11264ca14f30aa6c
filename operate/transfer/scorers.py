"""Scorers with their versions, from the server to the table; not whether they judge by
themselves."""

from __future__ import annotations

from uuid import NAMESPACE_OID, uuid5

from evaluation import judges
from mlcore import errors
from mlcore.db.table import table
from mlcore.entities.evaluation.scorers import ScorerVersion
from mlcore.entities.experiments import Experiment
from mlcore.limits.evaluation.scorers import check_payload
from mlcore.repos.evaluation import entity_refs
from mlcore.repos.evaluation import scorers as scorer_versions
from mlcore.repos.experiments import experiments
from mlcore.settle import Conflict
from operate.transfer.item import Content, Item
from operate.transfer.rest import Json
from operate.transfer.source import API_3, Source, known


def names(source: Source, experiment_id: str) -> list[str]:
    """Of the scorers of an active experiment; none of a server before 3.4."""
    asked = source.server.pages(
        "GET", f"{API_3}/scorers/list", "scorers", experiment_id=experiment_id
    )
    return [told["scorer_name"] for told in known(asked)]


def item(source: Source, experiment_id: str, name: str, target: Experiment) -> Item:
    """
    Args:
        experiment_id: the server's.
        target: the experiment of the table that stands for it.
    """

    def want() -> Content:
        told = source.server.get(
            f"{API_3}/scorers/versions", experiment_id=experiment_id, name=name
        )
        return _content([version(one, target.experiment_id) for one in told.get("scorers", ())])

    def have() -> Content | None:
        found = scorer_versions.versions(target, name)
        return _content(judges.shown(found, source.workspace)) if found else None

    def write(want: Content, found: Content | None) -> None:
        if found is not None and found["scorer_id"] != want["scorer_id"]:
            raise errors.ResourceConflict("The target has another scorer of this name.")
        experiments.get(target.experiment_id, source.workspace)
        present = {} if found is None else found["versions"]
        new = [
            ScorerVersion(
                experiment_id=target.experiment_id,
                name=name,
                version=number,
                scorer_id=want["scorer_id"],
                serialized_scorer=one["serialized_scorer"],
                creation_time=one["creation_time"],
            )
            for number, one in sorted(want["versions"].items())
            if number not in present
        ]
        if new:
            _add(new, source.workspace)

    return Item(
        "scorer",
        f"{name!r} of experiment {target.name!r}",
        want,
        have,
        write,
        identity=identity(target.experiment_id, name),
    )


def identity(experiment_id: str, name: str) -> str:
    """
    Args:
        experiment_id: the table's.
    """
    return f"{experiment_id}/{name}"


def _add(versions: list[ScorerVersion], workspace: str) -> None:
    """What leads to the scorer comes first, so that a version that is there can be found; the
    newest version comes last, for its endpoint is the one that the scorer is bound to."""
    kept = []
    for version in versions:
        data = check_payload(version.serialized_scorer)
        kept.append(judges.judge(version.serialized_scorer, data, workspace))
    newest = versions[-1]
    table.put(entity_refs.put(newest.scorer_id, newest.experiment_id).item)
    if kept[-1].endpoint_id is not None:
        judges.bind(newest, kept[-1].endpoint_id, workspace)
    for version, judge in zip(versions, kept, strict=True):
        try:
            scorer_versions.create(version._replace(serialized_scorer=judge.serialized_scorer))
        except Conflict as conflict:
            raise errors.ResourceConflict(
                "Somebody registered it at the target meanwhile: import again."
            ) from conflict


def version(told: Json, experiment_id: str) -> ScorerVersion:
    """
    Args:
        experiment_id: the table's.
    """
    return ScorerVersion(
        experiment_id=experiment_id,
        name=told["scorer_name"],
        version=int(told["scorer_version"]),
        # Old servers do not tell it.
        scorer_id=told.get("scorer_id")
        or str(uuid5(NAMESPACE_OID, identity(experiment_id, told["scorer_name"]))),
        serialized_scorer=told["serialized_scorer"],
        creation_time=int(told["creation_time"]),
    )


def _content(versions: list[ScorerVersion]) -> Content:
    return {
        "scorer_id": versions[-1].scorer_id if versions else "",
        "versions": {
            one.version: {
                "serialized_scorer": one.serialized_scorer,
                "creation_time": one.creation_time,
            }
            for one in versions
        },
    }
