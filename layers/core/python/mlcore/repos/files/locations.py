"""Where files are kept, and the list of those who keep them somewhere else than in a folder that is
named by their own id.

An experiment without a location of its choice has ``<root>/<its id>``: that is its **own place**,
which needs no entry. Every other location that lies in our store is entered in the transaction
that makes its holder, and counts as long as the holder is there. What was made before there was a
list is entered once (:mod:`mlcore.repos.files.former_locations`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple

from mlcore import errors
from mlcore.artifacts.locations import locate
from mlcore.artifacts.paths import WORKSPACES, covers
from mlcore.artifacts.paths import below as key_below
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import Put, key_in, table
from mlcore.entities.experiments import Experiment
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.environment import settings
from mlcore.ids import now_ms
from mlcore.limits.locations import below
from mlcore.memory import Memory
from mlcore.models.base import Item
from mlcore.models.experiments import Experiment as ExperimentItem
from mlcore.models.locations import Location, LocationList
from mlcore.models.registry import ModelHome, ModelVersion, RegisteredModel

DELETED_VERSION: Final = "Deleted_Internal"


class Claim(NamedTuple):
    """An entry of the list: an experiment, or a model version, names files below ``path``."""

    path: str
    holder: Key
    """The item of the experiment or of the version."""
    experiment_id: str | None


def key_of(location: str, workspace: str, experiment_id: str = "") -> str | None:
    """The key of a location in our store; None if it is elsewhere. The own place of an experiment
    stays where it was when its workspace changed."""
    try:
        return locate(location, workspace)
    except errors.InvalidParameterValue:
        pass
    path = location.partition(f"{WORKSPACES}/")[2]
    former = path.partition("/")[0]
    if not experiment_id or not former or former == workspace:
        return None
    try:
        key = locate(location, former)
    except errors.InvalidParameterValue:
        return None
    return key if is_own_place(key, experiment_id) else None


def roots(workspace: str) -> list[str]:
    """The keys below which experiments of a workspace have their own places. The default
    workspace's are two: with and without workspaces."""
    root = settings().artifact_root
    told = [below(root, f"{WORKSPACES}/{workspace}")]
    if workspace == DEFAULT_WORKSPACE:
        told.append(root)
    found = []
    for location in told:
        try:
            found.append(locate(location, workspace))
        except errors.InvalidParameterValue:
            continue
    return found


def workspace_of(key: str) -> str:
    """The workspace whose files a key is among."""
    first, _, rest = key.partition("/")
    name = rest.partition("/")[0]
    return name if first == WORKSPACES and name else DEFAULT_WORKSPACE


def is_own_place(key: str, experiment_id: str) -> bool:
    return any(key == key_below(root, experiment_id) for root in roots(workspace_of(key)))


def own_place_above(key: str) -> tuple[str, str] | None:
    """(id, key) of the experiment in whose own place a key would lie, whether it is there or
    not."""
    for root in roots(workspace_of(key)):
        if key != root and covers(root, key):
            segment = key[len(root) :].lstrip("/").partition("/")[0]
            if segment != WORKSPACES:
                return segment, key_below(root, segment)
    return None


def holds_own_places(key: str) -> bool:
    """Whether experiments that nobody has made yet have their own places below a key."""
    names = {workspace_of(key), DEFAULT_WORKSPACE}
    return any(covers(key, root) for name in names for root in roots(name)) or key == WORKSPACES


# ------------------------------------------------------------------ entries


def of_experiment(experiment_id: str, location: str, workspace: str) -> list[Put]:
    """What belongs into the transaction that makes an experiment: nothing in its own place."""
    key = key_of(location, workspace, experiment_id)
    if key is None or is_own_place(key, experiment_id):
        return []
    return [Put(_entry(key, experiment_id, experiment_id=experiment_id))]


def of_moved(experiment_id: str, location: str, workspace: str) -> list[Put]:
    """What belongs into the transaction that takes an experiment out of a workspace: its files stay
    where they are."""
    key = key_of(location, workspace, experiment_id)
    return [] if not key else [Put(_entry(key, experiment_id, experiment_id=experiment_id))]


def of_version(
    home: str, incarnation: str, version: int, location: str, workspace: str
) -> list[Put]:
    """What belongs into the transaction that makes a model version."""
    key = key_of(location, workspace)
    if key is None:
        return []
    return [Put(_entry(key, f"{incarnation}.{version}", home=home, model_version=version))]


def of_experiments(experiment_ids: Iterable[str]) -> list[tuple[str, str]]:
    """(id, key) of those experiments that have chosen a place in our store; one BatchGetItem for
    each hundred."""
    found = []
    for item in table.batch_get([keys.experiment(each) for each in dict.fromkeys(experiment_ids)]):
        if item is None:
            continue
        experiment = ExperimentItem.of(item)
        experiment_id = experiment.experiment_id
        key = key_of(experiment.artifact_location, experiment.workspace, experiment_id)
        if key is not None and not is_own_place(key, experiment_id):
            found.append((experiment_id, key))
    return found


def enter(experiment: Experiment, location: str) -> None:
    """Enters what of an experiment lies outside of its place: as an import brings it."""
    place = key_of(experiment.artifact_location, experiment.workspace, experiment.experiment_id)
    key = key_of(location, experiment.workspace)
    if key is not None and not (place is not None and covers(place, key)):
        table.put(_entry(key, experiment.experiment_id, experiment_id=experiment.experiment_id))


def forget(experiment_id: str, location: str, workspace: str) -> None:
    """Takes an experiment that is gone from the list."""
    for entry in of_experiment(experiment_id, location, workspace):
        table.delete(key_in(entry.item))


def overlapping(paths: Iterable[str]) -> list[Claim]:
    """Entries at, above or below any of some keys; whether their holders are there is not asked.
    Queries side by side: one for each segment."""
    wanted = list(dict.fromkeys(paths))
    prefixes: dict[str, None] = {}
    for path in wanted:
        prefixes.update(dict.fromkeys(keys.locations_above(path)))
        below_it = keys.locations_below(path)
        if below_it is not None:
            prefixes[below_it] = None
    pk = keys.LOCATION.pk.text
    calls = [partial(_listed, pk, prefix) for prefix in prefixes]
    found: dict[tuple[str, Key], Claim] = {}
    for claims in table.parallel(calls):
        for claim in claims:
            if any(covers(claim.path, path) or covers(path, claim.path) for path in wanted):
                found[claim.path, claim.holder] = claim
    return list(found.values())


def there(claims: Sequence[Claim], experiment_ids: Iterable[str] = ()) -> set[Key]:
    """Which holders of entries, and which of some other experiments, are there, also where they
    were deleted and can be restored. One BatchGetItem for each hundred; another for the models of
    versions."""
    homes = {claim.holder.pk for claim in claims if claim.experiment_id is None}
    places = [claim.holder for claim in claims]
    places += map(keys.experiment, experiment_ids)
    places += map(keys.model_home, homes)
    read = dict(zip(places, table.batch_get(places), strict=True))
    owners = [item for home in homes if (item := read[keys.model_home(home)]) is not None]
    models = table.batch_get([keys.model_at(ModelHome.of(item).model_pk) for item in owners])
    named = {RegisteredModel.of(model).incarnation for model in models if model is not None}
    return {
        place
        for place, item in read.items()
        if item is not None
        and (
            Item.of(item).type == keys.EXPERIMENT.name
            or (is_version(item) and ModelVersion.of(item).incarnation in named)
        )
    }


def is_version(item: Raw) -> bool:
    """Whether an item is a model version that was not deleted."""
    version = ModelVersion.of(item)
    return version.type == keys.MODEL_VERSION.name and version.current_stage != DELETED_VERSION


def _listed(pk: str, prefix: str) -> list[Claim]:
    return [_claim(item) for item in table.query_all(pk, prefix=prefix)]


def _claim(item: Raw) -> Claim:
    entry = Location.of(item)
    if entry.home is not None and entry.model_version is not None:
        return Claim(entry.path, keys.model_version(entry.home, entry.model_version), None)
    experiment_id = entry.experiment_id or ""
    return Claim(entry.path, keys.experiment(experiment_id), experiment_id)


def _entry(
    path: str,
    holder: str,
    *,
    experiment_id: str | None = None,
    home: str | None = None,
    model_version: int | None = None,
) -> Raw:
    place = keys.location(path, holder)
    item = Location(
        PK=place.pk,
        SK=place.sk,
        path=path,
        experiment_id=experiment_id,
        home=home,
        model_version=model_version,
        updated_at=now_ms(),
        version=1,
    )
    return item.serialize()


# ------------------------------------------------------------------ what was there before the list


def are_listed() -> bool:
    """Whether the list has everything. One consistent GetItem until it has."""
    place = (settings().table_name, settings().artifact_root)
    if place not in _complete:
        item = table.get(keys.location_list())
        if item is None or LocationList.of(item).root != settings().artifact_root:
            return False
        _complete.put(place, True)
    return True


def set_listed(*, remember: bool) -> None:
    """From now on :func:`are_listed`, for this process or for all."""
    _complete.put((settings().table_name, settings().artifact_root), True)
    if not remember:
        return
    place = keys.location_list()
    item = LocationList(
        PK=place.pk, SK=place.sk, root=settings().artifact_root, updated_at=now_ms(), version=1
    )
    table.put(item.serialize())


_complete: Memory[tuple[str, str], bool] = Memory("complete list of locations")
