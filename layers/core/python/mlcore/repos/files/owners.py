"""Decides which files may be removed with something that is gone: those that nothing else can name.
Every remover asks here, and removes nothing by itself.

* The folder of a run, a logged model or a trace is named by its id, so it is theirs, wherever their
  experiment keeps its files; unless a run, model or trace of another experiment has it in its own.
* An experiment's own place (``<root>/<its id>``) is its own, too, unless another chose it as well.
* A place that somebody chose is an experiment's as a whole only while no other experiment has files
  around it. Otherwise what is in it goes one by one.
* Of what goes, everything stays that lies at or below the location of another experiment, or of a
  version of a registered model.

Where this cannot be told, files stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mlcore import artifacts
from mlcore.artifacts.paths import INTERNAL, WORKSPACES, covers
from mlcore.artifacts.paths import below as key_below
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.limits.locations import below
from mlcore.models.experiments import Experiment
from mlcore.models.logged_models import LoggedModel
from mlcore.models.runs import Run
from mlcore.observability import logger
from mlcore.repos.files import locations

FOLDERS = {"models", "traces"}


class Area(NamedTuple):
    """A key with all that is below it, but for what is at or below ``keep``."""

    key: str
    keep: tuple[str, ...] = ()


class Part(NamedTuple):
    """A run, a logged model or a trace that is gone or going, or (``part_id`` is empty) an
    experiment with all that is in it."""

    experiment_id: str
    part_id: str
    location: str
    workspace: str


def of_run(experiment_id: str, item: Raw, workspace: str) -> Part:
    run = Run.of(item)
    return Part(experiment_id, run.run_id, run.artifact_uri, workspace)


def of_logged_model(experiment_id: str, item: Raw, workspace: str) -> Part:
    model = LoggedModel.of(item)
    return Part(experiment_id, model.model_id, model.artifact_location, workspace)


def of_trace(item: Raw, trace_id: str) -> Part:
    """Where the server has its files: their tag is the clients' to set."""
    experiment = Experiment.of(item)
    location = below(experiment.artifact_location, f"traces/{trace_id}")
    return Part(experiment.experiment_id, trace_id, location, experiment.workspace)


def of_experiment(item: Raw) -> Part:
    found = Experiment.of(item)
    return Part(found.experiment_id, "", found.artifact_location, found.workspace)


def areas(parts: Sequence[Part]) -> list[Area | None]:
    """What may be removed with each of some parts; None for nothing. Queries side by side, then a
    BatchGetItem for each hundred who may have files there."""
    wanted = [_key(part) for part in parts]
    found = [key for key in wanted if key is not None]
    if not found:
        return [None] * len(parts)
    others = _Others(found)
    return [
        None if key is None else others.area(part, key)
        for part, key in zip(parts, wanted, strict=True)
    ]


def is_here(part: Part) -> bool:
    """Whether files of a part would be in our store at all."""
    return locations.key_of(part.location, part.workspace, part.experiment_id) is not None


def _key(part: Part) -> str | None:
    """The key of a part's folder, None if it is not in our store, or is no folder of its own."""
    key = locations.key_of(part.location, part.workspace, part.experiment_id)
    if not key or key.partition("/")[0] == INTERNAL:
        return None
    if locations.holds_own_places(key):
        _stays(part, "it has the places of other experiments")
        return None
    if not part.part_id:
        return key
    segments = key.split("/")
    if segments[-1] != part.part_id and segments[-2:] != [part.part_id, "artifacts"]:
        _stays(part, "the folder is not named by its id")
        return None
    return key


class _Others:
    """Who else has files around some keys."""

    def __init__(self, file_keys: Sequence[str]) -> None:
        self._listed = locations.are_listed()
        self._claims = locations.overlapping(file_keys)
        own = filter(None, map(locations.own_place_above, file_keys))
        self._there = locations.there(self._claims, dict(own))

    def area(self, part: Part, key: str) -> Area | None:
        if not self._listed:
            _stays(part, "locations of earlier versions are not listed yet")
            return None
        for path, owner in self._around(part, key):
            if part.part_id or locations.is_own_place(key, part.experiment_id):
                if self._is_named(path, owner, key, part.part_id or part.experiment_id):
                    _stays(part, f"files of {owner or 'a model version'} are there")
                    return None
            else:
                _stays(part, f"it is in the place of {owner or 'a model version'}")
                return None
        inside = {path for path, _ in self._claimed(part) if path != key and covers(key, path)}
        return Area(key, tuple(sorted(inside)))

    def _claimed(self, part: Part) -> list[tuple[str, str | None]]:
        """Paths of others that are there, with the experiment's id; None for a version."""
        return [
            (claim.path, claim.experiment_id)
            for claim in self._claims
            if claim.holder in self._there and claim.experiment_id != part.experiment_id
        ]

    def _around(self, part: Part, key: str) -> list[tuple[str, str | None]]:
        """Of those, who has a key in its place."""
        found = [one for one in self._claimed(part) if covers(one[0], key)]
        own = locations.own_place_above(key)
        mine = own is None or own[0] == part.experiment_id
        if own is not None and not mine and keys.experiment(own[0]) in self._there:
            found.append((own[1], own[0]))
        return found

    def _is_named(self, path: str, owner: str | None, key: str, own_id: str) -> bool:
        """Whether another who has a folder in its place can name files in it."""
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
    """What may be removed with a workspace: all but the files of experiments that have left it."""
    root, spans = f"{WORKSPACES}/{name}", artifacts.internal(name, "traces")
    found = []
    if locations.are_listed():
        claims = [one for one in locations.overlapping([root]) if covers(root, one.path)]
        there = locations.there(claims)
        keep = {claim.path for claim in claims if claim.holder in there}
        for place in {root, *locations.roots(name)}:
            keep |= _of_experiments(place)
        found.append(Area(root, tuple(sorted(keep))))
    else:
        logger.warning("files stay", extra={"key": root, "why": "locations are not listed yet"})
    kept = tuple(sorted(_of_experiments(spans)))
    return [*found, Area(artifacts.internal(name, "").rstrip("/"), kept)]


def internal(experiment_id: str, workspace: str, trace_id: str = "") -> Area:
    """Span files, which only the product names: of an experiment, or of one of its traces."""
    path = f"traces/{experiment_id}/{trace_id}" if trace_id else f"traces/{experiment_id}"
    return Area(artifacts.internal(workspace, path))


def history(experiment_id: str, run_id: str = "") -> Area:
    """Files with the history of a run, or of all runs of an experiment."""
    return Area(artifacts.history_folder(experiment_id, run_id))


def _of_experiments(folder: str) -> set[str]:
    """Folders directly below one that are named like an experiment that is there."""
    names = [entry.name for entry in artifacts.store().list(folder) if entry.size is None]
    items = table.batch_get([keys.experiment(name) for name in names])
    return {
        key_below(folder, name) for name, item in zip(names, items, strict=True) if item is not None
    }


def remove(parts: Sequence[Part]) -> bool:
    """Removes the files of parts, whenever they were written; False if some may not go."""
    found = areas(parts)
    remove_areas(area for area in found if area is not None)
    return all(
        area is not None and not area.keep
        for part, area in zip(parts, found, strict=True)
        if is_here(part)
    )


def remove_areas(areas: Iterable[Area]) -> None:
    """Removes files as decided."""
    for area in areas:
        artifacts.store().delete_tree(area.key, area.keep)


def _stays(part: Part, why: str) -> None:
    logger.warning("files stay", extra={"location": part.location, "why": why})
