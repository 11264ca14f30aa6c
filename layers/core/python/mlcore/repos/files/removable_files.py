"""Decides which files may be removed with a deleted item: those that no other item refers to. Code
that removes artifacts with their owner asks this module first.

- The folder of a run, logged model or trace is named by its id and belongs to it, wherever its
  experiment keeps files; unless the folder contains a run, model or trace of another experiment.
- An experiment's default folder (``<root>/<its id>``) belongs to it, unless another experiment
  chose the same location.
- A location that the creator of an experiment chose belongs to the experiment as a whole only while
  no other experiment has files above or below it. Otherwise the folders of its runs, models and
  traces are removed one by one.
- All other files at or below the location of another experiment or of a model version are kept.

In doubt, files are kept, and a warning is logged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mlcore import artifacts
from mlcore.artifacts.paths import INTERNAL, WORKSPACES, covers, key_in_workspace
from mlcore.artifacts.paths import join as key_below
from mlcore.artifacts.skill_uploads import segments_below
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.limits.artifact_locations import join
from mlcore.models.experiments import Experiment
from mlcore.models.logged_models import LoggedModel
from mlcore.models.runs import Run
from mlcore.observability import logger
from mlcore.repos.files import default_folders, location_list

FOLDERS = {"models", "traces"}


class Area(NamedTuple):
    """Files of the artifact store to remove: a key and everything below it, except what is at or
    below a key of ``keep``."""

    key: str
    keep: tuple[str, ...] = ()


class FileOwner(NamedTuple):
    """A run, logged model or trace that is or will be deleted, with the location of its files; with
    an empty ``part_id``, a whole experiment."""

    experiment_id: str
    part_id: str
    location: str
    workspace: str


def of_run(experiment_id: str, item: Raw, workspace: str) -> FileOwner:
    run = Run.of(item)
    return FileOwner(experiment_id, run.run_id, run.artifact_uri, workspace)


def of_logged_model(experiment_id: str, item: Raw, workspace: str) -> FileOwner:
    model = LoggedModel.of(item)
    return FileOwner(experiment_id, model.model_id, model.artifact_location, workspace)


def of_trace(item: Raw, trace_id: str) -> FileOwner:
    """Returns a trace as the owner of files that are to be removed. The location of the files is
    the one that the server assigns; the location tag, which clients may change, is ignored.

    Args:
        item: the item of the trace's experiment.
    """
    experiment = Experiment.of(item)
    location = join(experiment.artifact_location, f"traces/{trace_id}")
    return FileOwner(experiment.experiment_id, trace_id, location, experiment.workspace)


def of_experiment(item: Raw) -> FileOwner:
    experiment = Experiment.of(item)
    return FileOwner(
        experiment.experiment_id, "", experiment.artifact_location, experiment.workspace
    )


def areas(parts: Sequence[FileOwner]) -> list[Area | None]:
    """Returns for each part (a run, logged model, trace or experiment) which files may be removed
    with it; None for no files. Queries in parallel, then one BatchGetItem per hundred possible
    other owners."""
    wanted = [_key(part) for part in parts]
    store_keys = [key for key in wanted if key is not None]
    if not store_keys:
        return [None] * len(parts)
    others = _Others(store_keys)
    return [
        None if key is None else others.area(part, key)
        for part, key in zip(parts, wanted, strict=True)
    ]


def is_here(part: FileOwner) -> bool:
    """Whether the artifact location of ``part`` (a run, logged model, trace or experiment) lies in
    this deployment's artifact store."""
    return default_folders.key_of(part.location, part.workspace, part.experiment_id) is not None


def _key(part: FileOwner) -> str | None:
    """Returns the key of a part's folder; None if it lies outside our store, is not named by the
    part's id, or holds folders of other experiments or files of skills."""
    key = default_folders.key_of(part.location, part.workspace, part.experiment_id)
    if not key or key.partition("/")[0] == INTERNAL:
        return None
    if default_folders.holds_folders(key):
        _stays(part, "it has the places of other experiments")
        return None
    if segments_below(key) is not None:
        _stays(part, "the files of skills are there")
        return None
    if not part.part_id:
        return key
    segments = key.split("/")
    if segments[-1] != part.part_id and segments[-2:] != [part.part_id, "artifacts"]:
        _stays(part, "the folder is not named by its id")
        return None
    return key


class _Others:
    """The existing experiments and model versions that have files at, above or below some keys of
    the artifact store."""

    def __init__(self, file_keys: Sequence[str]) -> None:
        self._listed = location_list.is_complete()
        self._claims = location_list.overlapping(file_keys)
        own = filter(None, map(default_folders.folder_above, file_keys))
        self._there = location_list.existing_holders(self._claims, dict(own))

    def area(self, part: FileOwner, key: str) -> Area | None:
        if not self._listed:
            _stays(part, "locations below a former ARTIFACT_ROOT are not listed yet")
            return None
        for path, owner in self._around(part, key):
            if part.part_id or default_folders.is_default_folder(key, part.experiment_id):
                if self._is_named(path, owner, key, part.part_id or part.experiment_id):
                    _stays(part, f"files of {owner or 'a model version'} are there")
                    return None
            else:
                _stays(part, f"it is in the place of {owner or 'a model version'}")
                return None
        inside = {path for path, _ in self._claimed(part) if path != key and covers(key, path)}
        return Area(key, tuple(sorted(inside)))

    def _claimed(self, part: FileOwner) -> list[tuple[str, str | None]]:
        """Returns (path, experiment id) of the other existing owners of files; the id is None for a
        model version."""
        return [
            (claim.path, claim.experiment_id)
            for claim in self._claims
            if claim.holder in self._there and claim.experiment_id != part.experiment_id
        ]

    def _around(self, part: FileOwner, key: str) -> list[tuple[str, str | None]]:
        """Returns (path, experiment id) of those other owners whose location contains a key."""
        around = [owner for owner in self._claimed(part) if covers(owner[0], key)]
        own = default_folders.folder_above(key)
        mine = own is None or own[0] == part.experiment_id
        if own is not None and not mine and keys.experiment(own[0]) in self._there:
            around.append((own[1], own[0]))
        return around

    def _is_named(self, path: str, owner: str | None, key: str, own_id: str) -> bool:
        """Whether another experiment, whose location contains ``key``, has an item of its own that
        refers to files there."""
        if owner is None or path == key:
            return True
        first, *rest = key[len(path) :].lstrip("/").split("/")
        second = rest[0] if rest else ""
        if (second if first in FOLDERS else first) == own_id:
            return False
        places = [keys.run(owner, first)]
        if first == "models":
            places.append(keys.logged_model(owner, second))
        if first == "traces":
            places.append(keys.trace(owner, second))
        return any(item is not None for item in table.batch_get(places))


# ------------------------------------------------------------------ workspaces, own files


def of_workspace(name: str) -> list[Area]:
    """Returns the folders of the artifact store that may be deleted with a workspace, each with the
    paths below it to keep: those of experiments that were moved out of the workspace."""
    root, spans = f"{WORKSPACES}/{name}", artifacts.internal_key(name, "traces")
    folders = []
    if location_list.is_complete():
        claims = [
            location_claim
            for location_claim in location_list.overlapping([root])
            if covers(root, location_claim.path)
        ]
        there = location_list.existing_holders(claims)
        keep = {claim.path for claim in claims if claim.holder in there}
        for location in {root, *default_folders.roots(name)}:
            keep |= _of_experiments(location)
        folders.append(Area(root, tuple(sorted(keep))))
    else:
        logger.warning("files stay", extra={"key": root, "why": "locations are not listed yet"})
    kept = tuple(sorted(_of_experiments(spans)))
    return [*folders, Area(artifacts.internal_key(name, "").rstrip("/"), kept)]


def of_skill_upload(workspace: str, path: str) -> Area | None:
    """Returns the area (store key) of the files that were uploaded for one version of a skill; None
    if the files must stay, because an experiment or a model version has a location around them."""
    key = key_in_workspace(path, workspace)
    claims = location_list.overlapping([key])
    holders = location_list.existing_holders(claims) if claims else set()
    places = [claim.path for claim in claims if claim.holder in holders]
    if any(covers(location, key) for location in places):
        logger.warning("files stay", extra={"key": key, "why": "they are in another place"})
        return None
    return Area(key, tuple(sorted(places)))


def internal(experiment: Raw, trace_id: str = "") -> list[Area]:
    """Returns the folders (areas of the artifact store) with the span files of an experiment, or of
    one of its traces: one for each workspace in which the experiment was, and that of archived
    spans, which is in no workspace's folder. Only the product writes and reads these files."""
    item = Experiment.of(experiment)
    path = f"traces/{item.experiment_id}" + (f"/{trace_id}" if trace_id else "")
    former = sorted(item.former_workspaces or ())
    roots = dict.fromkeys((item.workspace, DEFAULT_WORKSPACE, *former))
    return [Area(artifacts.internal_key(root, path)) for root in roots]


def history(experiment_id: str, run_id: str = "") -> Area:
    """Returns the folder in the artifact store with the metric history files of a run or, without
    ``run_id``, of all runs of an experiment."""
    return Area(artifacts.history_folder(experiment_id, run_id))


def _of_experiments(folder: str) -> set[str]:
    """Returns the keys of those subfolders of a folder whose name is the id of an existing
    experiment."""
    names = [entry.name for entry in artifacts.store().list(folder) if entry.size is None]
    items = table.batch_get([keys.experiment(name) for name in names])
    return {
        key_below(folder, name) for name, item in zip(names, items, strict=True) if item is not None
    }


def remove(parts: Sequence[FileOwner]) -> bool:
    """Removes the files of deleted runs, models, traces or experiments, whatever the age of the
    files. Returns False if some files had to be kept because other items may refer to them."""
    removable = areas(parts)
    remove_areas(area for area in removable if area is not None)
    return all(
        area is not None and not area.keep
        for part, area in zip(parts, removable, strict=True)
        if is_here(part)
    )


def remove_areas(areas: Iterable[Area]) -> None:
    """Deletes the files of each area from the artifact store: those at its ``key`` and below,
    except those that ``keep`` names."""
    for area in areas:
        artifacts.store().delete_tree(area.key, area.keep)


def _stays(part: FileOwner, why: str) -> None:
    logger.warning("files stay", extra={"location": part.location, "why": why})
