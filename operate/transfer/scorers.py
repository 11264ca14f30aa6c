"""Transfers scorers with their versions from an MLflow server to the product's table, but without
their settings for judging new traces automatically.
"""

from __future__ import annotations

from uuid import NAMESPACE_OID, uuid5

from evaluation import gateway_scorers
from mlcore import errors
from mlcore.db.table import table
from mlcore.entities.evaluation.scorers import ScorerVersion
from mlcore.entities.experiments import Experiment
from mlcore.limits.evaluation.scorers import check_payload
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.evaluation import entity_experiments
from mlcore.repos.evaluation import scorers as scorer_versions
from mlcore.repos.experiments import experiments
from operate.transfer.mlflow_client import Json
from operate.transfer.source_reader import API_3, SourceReader, empty_if_unsupported
from operate.transfer.transfer_item import Content, TransferItem


def names(source: SourceReader, experiment_id: str) -> list[str]:
    """Returns the names of an active experiment's scorers; [] for an MLflow server before 3.4."""
    pages = source.server.pages(
        "GET", f"{API_3}/scorers/list", "scorers", experiment_id=experiment_id
    )
    return [scorer["scorer_name"] for scorer in empty_if_unsupported(pages)]


def read(source: SourceReader, experiment_id: str, name: str, target_id: str) -> Content:
    """Returns the content of a scorer, with all its versions, as the source server has it.

    Args:
        experiment_id: the experiment's id on the server.
        target_id: the id of the corresponding experiment at the target. The scorer's id is derived
            from it if the server, being old, returns none.
    """
    listed = source.server.get(f"{API_3}/scorers/versions", experiment_id=experiment_id, name=name)
    return _content([version(scorer, target_id) for scorer in listed.get("scorers", ())])


def item(source: SourceReader, experiment_id: str, name: str, target: Experiment) -> TransferItem:
    """Returns the item that transfers a scorer with its versions. Writing it raises
    ResourceConflict if the table has another scorer of this name.

    Args:
        experiment_id: the experiment's id on the server from which the scorer is read.
        target: the corresponding experiment of the table.
    """

    def want() -> Content:
        return read(source, experiment_id, name, target.experiment_id)

    def have() -> Content | None:
        existing = scorer_versions.versions(target, name)
        return (
            _content(gateway_scorers.with_endpoint_names(existing, source.workspace))
            if existing
            else None
        )

    def write(want: Content, existing: Content | None) -> None:
        if existing is not None and existing["scorer_id"] != want["scorer_id"]:
            raise errors.ResourceConflict("The target has another scorer of this name.")
        experiments.get(target.experiment_id, source.workspace)
        present = {} if existing is None else existing["versions"]
        new = [
            ScorerVersion(
                experiment_id=target.experiment_id,
                name=name,
                version=number,
                scorer_id=want["scorer_id"],
                serialized_scorer=content["serialized_scorer"],
                creation_time=content["creation_time"],
            )
            for number, content in sorted(want["versions"].items())
            if number not in present
        ]
        if new:
            _add(new, source.workspace)

    return TransferItem(
        "scorer",
        f"{name!r} of experiment {target.name!r}",
        want,
        have,
        write,
        identity=identity(target.experiment_id, name),
    )


def identity(experiment_id: str, name: str) -> str:
    """Returns a text that identifies a scorer by its experiment's id in this product's table and
    its name."""
    return f"{experiment_id}/{name}"


def _add(versions: list[ScorerVersion], workspace: str) -> None:
    """Writes new versions of a scorer. The reference to the scorer is written first, so that an
    existing version can be found; the newest version is written last, after the scorer is bound to
    its endpoint."""
    kept = []
    for version in versions:
        data = check_payload(version.serialized_scorer)
        kept.append(gateway_scorers.to_stored(version.serialized_scorer, data, workspace))
    newest = versions[-1]
    table.put(entity_experiments.creation(newest.scorer_id, newest.experiment_id).item)
    if kept[-1].endpoint_id is not None:
        gateway_scorers.bind_endpoint(newest, kept[-1].endpoint_id, workspace)
    for version, judge in zip(versions, kept, strict=True):
        try:
            scorer_versions.create(version._replace(serialized_scorer=judge.serialized_scorer))
        except WriteConflict as conflict:
            raise errors.ResourceConflict(
                "Somebody registered it at the target meanwhile: import again."
            ) from conflict


def version(fields: Json, experiment_id: str) -> ScorerVersion:
    """Converts a scorer version of the source server to an entity of an experiment in the table."""
    return ScorerVersion(
        experiment_id=experiment_id,
        name=fields["scorer_name"],
        version=int(fields["scorer_version"]),
        # Old servers do not return it.
        scorer_id=fields.get("scorer_id")
        or str(uuid5(NAMESPACE_OID, identity(experiment_id, fields["scorer_name"]))),
        serialized_scorer=fields["serialized_scorer"],
        creation_time=int(fields["creation_time"]),
    )


def _content(versions: list[ScorerVersion]) -> Content:
    return {
        "scorer_id": versions[-1].scorer_id if versions else "",
        "versions": {
            version.version: {
                "serialized_scorer": version.serialized_scorer,
                "creation_time": version.creation_time,
            }
            for version in versions
        },
    }
