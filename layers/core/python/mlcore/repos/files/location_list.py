"""The list of locations: which experiments and model versions, and which runs that were moved, keep
files outside the default folder of their experiment.

An experiment whose files lie in its default folder (:mod:`.default_folders`) needs no entry in the
list. Every other location in our artifact store gets an entry, in the transaction
that creates the experiment or version; the entry counts while that experiment or version exists.
When the deployment's ``ARTIFACT_ROOT`` changes, experiments below the former root get entries as
well (:mod:`mlcore.repos.removal.former_root_locations`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple

from mlcore.artifacts.paths import covers
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import Put, key_of_item, table
from mlcore.entities.experiments import Experiment
from mlcore.environment import settings
from mlcore.ids import now_ms
from mlcore.models.base import Item
from mlcore.models.experiments import Experiment as ExperimentItem
from mlcore.models.locations import Location, LocationList
from mlcore.models.registry import ModelHome, ModelVersion, RegisteredModel
from mlcore.process_cache import ProcessCache
from mlcore.repos.files import default_folders

DELETED_VERSION: Final = "Deleted_Internal"


class LocationClaim(NamedTuple):
    """An entry of the list of artifact locations: an experiment, a model version or a moved run has
    files below ``path``."""

    path: str
    holder: Key
    """The item of the experiment (of a moved run: its experiment) or of the version."""
    experiment_id: str | None
    run_id: str | None = None
    """The run whose folder the path is, if the run was moved to the experiment."""


def of_experiment(experiment_id: str, location: str, workspace: str) -> list[Put]:
    """Returns the put of an experiment's entry in the list of locations, for the transaction that
    creates the experiment; empty if the location is its default folder or outside our store."""
    key = default_folders.key_of(location, workspace, experiment_id)
    if key is None or default_folders.is_default_folder(key, experiment_id):
        return []
    return [Put(_entry(key, experiment_id, experiment_id=experiment_id))]


def of_moved(experiment_id: str, location: str, workspace: str) -> list[Put]:
    """Returns the put of an experiment's entry in the list of locations, for the transaction that
    moves it to another workspace: its files stay where they are, which is not its default folder
    any more. Empty if they lie outside our store."""
    key = default_folders.key_of(location, workspace, experiment_id)
    return [] if not key else [Put(_entry(key, experiment_id, experiment_id=experiment_id))]


def of_moved_run(run_id: str, location: str, experiment_id: str, workspace: str) -> list[Put]:
    """Returns the put of the entry for a run's files in the list of locations, for the transaction
    that moves the run to an experiment: the files stay where they are. Empty if they lie outside
    our store."""
    key = default_folders.key_of(location, workspace)
    if key is None:
        return []
    return [Put(_entry(key, f"run.{run_id}", experiment_id=experiment_id, run_id=run_id))]


def remove_run_entry(run_id: str, location: str, experiment_id: str, workspace: str) -> None:
    """Removes the entry for a run's files from the list of locations, because the run is removed.
    Does nothing if the files lie in the default folder of the run's experiment: then the entry, if
    there is one, has no effect."""
    key = default_folders.key_of(location, workspace)
    own = None if key is None else default_folders.folder_above(key)
    if key is not None and (own is None or own[0] != experiment_id):
        table.delete(keys.location(key, f"run.{run_id}"))


def of_version(
    home: str, incarnation: str, version: int, location: str, workspace: str
) -> list[Put]:
    """Returns the put of a model version's entry in the list of locations, for the transaction that
    creates the version; empty if its files lie outside our store.

    Args:
        home: the partition of the model's versions.
        incarnation: the id of the model among successive models of its name.
        location: the URI or path of the version's files.
    """
    key = default_folders.key_of(location, workspace)
    if key is None:
        return []
    return [Put(_entry(key, f"{incarnation}.{version}", home=home, model_version=version))]


def of_experiments(experiment_ids: Iterable[str]) -> list[tuple[str, str]]:
    """Returns (id, key of the location) of those of the experiments whose artifact location is in
    the deployment's artifact store but is not their default folder. One BatchGetItem per hundred.
    """
    locations = []
    for item in table.batch_get([keys.experiment(each) for each in dict.fromkeys(experiment_ids)]):
        if item is None:
            continue
        experiment = ExperimentItem.of(item)
        experiment_id = experiment.experiment_id
        key = default_folders.key_of(
            experiment.artifact_location, experiment.workspace, experiment_id
        )
        if key is not None and not default_folders.is_default_folder(key, experiment_id):
            locations.append((experiment_id, key))
    return locations


def enter_imported(experiment: Experiment, location: str) -> None:
    """Puts an artifact location of an imported experiment into the list of artifact locations,
    unless it lies within the experiment's own location or outside our store."""
    item_key = default_folders.key_of(
        experiment.artifact_location, experiment.workspace, experiment.experiment_id
    )
    key = default_folders.key_of(location, experiment.workspace)
    if key is not None and not (item_key is not None and covers(item_key, key)):
        table.put(_entry(key, experiment.experiment_id, experiment_id=experiment.experiment_id))


def remove_entry(experiment_id: str, location: str, workspace: str) -> None:
    """Removes a deleted experiment's entry for its location from the list of file locations.
    Entries for a default folder (:func:`of_moved`) or an imported location stay; they have no
    effect, because their experiment does not exist."""
    for entry in of_experiment(experiment_id, location, workspace):
        table.delete(key_of_item(entry.item))


def overlapping(paths: Iterable[str]) -> list[LocationClaim]:
    """Returns the claims (entries of the list of locations) on each of the paths, on paths above it
    and on paths below it, including claims whose experiment or version no longer exists. Sends
    Queries in parallel: for each path one per segment, one for the root, and one for the paths
    below it."""
    wanted = list(dict.fromkeys(paths))
    prefixes: dict[str, None] = {}
    for path in wanted:
        prefixes.update(dict.fromkeys(keys.locations_above(path)))
        below_it = keys.locations_below(path)
        if below_it is not None:
            prefixes[below_it] = None
    pk = keys.LOCATION.pk.text
    calls = [partial(_listed, pk, prefix) for prefix in prefixes]
    overlapping_claims: dict[tuple[str, Key], LocationClaim] = {}
    for claims in table.parallel(calls):
        for claim in claims:
            if any(covers(claim.path, path) or covers(path, claim.path) for path in wanted):
                overlapping_claims[claim.path, claim.holder] = claim
    return list(overlapping_claims.values())


def existing_holders(
    claims: Sequence[LocationClaim], experiment_ids: Iterable[str] = ()
) -> set[Key]:
    """Returns the keys of those items that still exist: the experiments and model versions that
    ``claims`` (entries of the list of locations) name, and the experiments ``experiment_ids``. A
    soft-deleted experiment exists; a deleted version does not.

    One BatchGetItem per hundred, and another for the registered models of versions.
    """
    homes = {claim.holder.pk for claim in claims if claim.experiment_id is None}
    places = [claim.holder for claim in claims]
    places += map(keys.experiment, experiment_ids)
    places += map(keys.model_home, homes)
    read = dict(zip(places, table.batch_get(places), strict=True))
    owners = [item for home in homes if (item := read[keys.model_home(home)]) is not None]
    models = table.batch_get([keys.model_at(ModelHome.of(item).model_pk) for item in owners])
    named = {RegisteredModel.of(model).incarnation for model in models if model is not None}
    return {
        location_key
        for location_key, item in read.items()
        if item is not None
        and (
            Item.of(item).type == keys.EXPERIMENT.name
            or (is_version(item) and ModelVersion.of(item).incarnation in named)
        )
    }


def is_version(item: Raw) -> bool:
    """Whether a DynamoDB item is a model version that is not deleted."""
    version = ModelVersion.of(item)
    return version.type == keys.MODEL_VERSION.name and version.current_stage != DELETED_VERSION


def _listed(pk: str, prefix: str) -> list[LocationClaim]:
    return [_claim(item) for item in table.query_all(pk, prefix=prefix)]


def _claim(item: Raw) -> LocationClaim:
    entry = Location.of(item)
    if entry.home is not None and entry.model_version is not None:
        return LocationClaim(entry.path, keys.model_version(entry.home, entry.model_version), None)
    experiment_id = entry.experiment_id or ""
    return LocationClaim(entry.path, keys.experiment(experiment_id), experiment_id, entry.run_id)


def _entry(
    path: str,
    holder: str,
    *,
    experiment_id: str | None = None,
    home: str | None = None,
    model_version: int | None = None,
    run_id: str | None = None,
) -> Raw:
    key = keys.location(path, holder)
    item = Location(
        PK=key.pk,
        SK=key.sk,
        path=path,
        experiment_id=experiment_id,
        home=home,
        model_version=model_version,
        run_id=run_id,
        updated_at=now_ms(),
        version=1,
    )
    return item.serialize()


# ------------------------------------------------------------------ completeness


def is_complete() -> bool:
    """Whether the list of locations has every experiment whose files lie outside
    ``<ARTIFACT_ROOT>/<its id>`` under the current ``ARTIFACT_ROOT``. One consistent GetItem; none
    once this process has found the list complete."""
    cache_key = (settings().table_name, settings().artifact_root)
    if cache_key not in _complete:
        item = table.get(keys.location_list())
        if item is None or LocationList.of(item).root != settings().artifact_root:
            return False
        _complete.put(cache_key, True)
    return True


def set_complete(*, for_all_processes: bool) -> None:
    """Records that the list of locations (of artifacts outside their default folders) is complete
    for the current ``ARTIFACT_ROOT``.

    Args:
        for_all_processes: whether to write an item that all processes read. If False, only this
            process knows it.
    """
    _complete.put((settings().table_name, settings().artifact_root), True)
    if not for_all_processes:
        return
    key = keys.location_list()
    item = LocationList(
        PK=key.pk, SK=key.sk, root=settings().artifact_root, updated_at=now_ms(), version=1
    )
    table.put(item.serialize())


_complete: ProcessCache[tuple[str, str], bool] = ProcessCache("complete list of locations")
