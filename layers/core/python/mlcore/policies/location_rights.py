"""Decides who may choose, read or change a location (path) in the artifact store, by the
experiments whose files are stored there.

A location gives no right by itself: to reach files through an experiment, a trace or a model
version, a caller also needs the right on each experiment in whose storage the files are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from mlcore import errors
from mlcore.artifacts.paths import WORKSPACES, covers
from mlcore.artifacts.skill_uploads import identity_below, segments_below
from mlcore.artifacts.storage_keys import locate, root_of, scheme
from mlcore.auth.permissions import EXPERIMENT, SKILL
from mlcore.auth.requirements import Requirement
from mlcore.models.logged_models import LoggedModel
from mlcore.policies.access import Access
from mlcore.repos.experiments import experiments
from mlcore.repos.files import default_folders, location_list
from mlcore.repos.files.location_list import LocationClaim
from mlcore.repos.logged_models import logged_models
from mlcore.repos.runs.core import runs

_ULID: Final = re.compile(r"[0-9A-Za-z]{26}")
EXPERIMENTS: Final = re.compile(rf"{_ULID.pattern}|[0-9]+")
RUN_FOLDERS: Final = re.compile(rf"{_ULID.pattern}|[0-9A-Fa-f]{{32}}")
PROXY_SCHEME: Final = "mlflow-artifacts"
_RUN_FILES: Final = "/artifacts"
"""End of the path of a run's folder."""


class ExperimentStorage(NamedTuple):
    """Where an experiment's artifact files are stored: ``path`` is the prefix of their keys."""

    experiment_id: str
    path: str

    def segments_below(self, key: str) -> list[str]:
        """Returns the segments of a file's key that follow the storage's prefix."""
        return [part for part in key[len(self.path) :].split("/") if part]


def storages_around(key: str, *, tree: bool = False) -> list[ExperimentStorage]:
    """Returns the experiment storages that contain a key: that of the experiment whose id the key
    begins with, whether the experiment exists or not, and those of experiments for which a location
    was chosen. Queries run in parallel; a BatchGetItem follows if chosen locations overlap the key.

    Args:
        tree: also return the storages below the key.
    """
    own_storage = default_storage(key)
    storages = [] if own_storage is None else [own_storage]
    claims = [
        claim
        for claim in location_list.overlapping([key])
        if claim.experiment_id is not None and (tree or covers(claim.path, key))
    ]
    existing_holders = location_list.existing_holders(claims) if claims else set()
    claims = [claim for claim in claims if claim.holder in existing_holders]
    for claim in claims:
        if claim.experiment_id is not None and claim.run_id is None:
            storages.append(ExperimentStorage(claim.experiment_id, claim.path))
    return _with_moved_runs(_without_sharers(list(dict.fromkeys(storages)), key), claims, key)


def _with_moved_runs(
    storages: list[ExperimentStorage], claims: Iterable[LocationClaim], key: str
) -> list[ExperimentStorage]:
    """Adds the storages of moved runs. In the folder of a moved run the run's experiment counts
    instead of those in whose storage the folder lies."""
    for claim in claims:
        if claim.experiment_id is None or claim.run_id is None:
            continue
        if not covers(claim.path, key):
            storages = [*storages, ExperimentStorage(claim.experiment_id, claim.path)]
            continue
        around = claim.path.removesuffix(_RUN_FILES).rpartition("/")[0]
        storages = [
            *(storage for storage in storages if not covers(storage.path, claim.path)),
            ExperimentStorage(claim.experiment_id, around),
        ]
    return storages


def default_storage(key: str) -> ExperimentStorage | None:
    """Returns the default storage of the experiment whose id the key begins with; None if the key
    begins with no id. The storage may still contain files after new experiments were given another
    root."""
    claimed = default_folders.folder_above(key)
    if claimed is not None and EXPERIMENTS.fullmatch(claimed[0]):
        return ExperimentStorage(_id_of_folder(claimed[0]), claimed[1])
    segments = key.split("/")
    id_index = 2 if segments[0] == WORKSPACES else 0
    if len(segments) > id_index and EXPERIMENTS.fullmatch(segments[id_index]):
        path = "/".join(segments[: id_index + 1])
        return ExperimentStorage(_id_of_folder(segments[id_index]), path)
    return None


def _id_of_folder(name: str) -> str:
    """Returns the experiment id that a folder's name means, whatever the case of its letters,
    because a laptop's file system may not be case-sensitive."""
    return name.upper() if _ULID.fullmatch(name) else name.lower()


def _without_sharers(storages: list[ExperimentStorage], key: str) -> list[ExperimentStorage]:
    """If several experiments share a prefix, keeps for a run's or model's folder only the
    experiment to which the run or model belongs. Returns the remaining storages."""
    shared = {
        storage.path
        for storage in storages
        if sum(other.path == storage.path for other in storages) > 1
    }
    for path in shared:
        segments = ExperimentStorage("", path).segments_below(key)
        owner = None
        if segments and RUN_FOLDERS.fullmatch(segments[0]):
            owner = runs.locate(_id_of_folder(segments[0]))
        elif segments[:1] == ["models"] and len(segments) > 1:
            (item,) = logged_models.find([segments[1]], default_folders.workspace_of(key))
            owner = None if item is None else LoggedModel.of(item).experiment_id
        if any(storage == ExperimentStorage(owner or "", path) for storage in storages):
            storages = [
                storage
                for storage in storages
                if storage.path != path or storage.experiment_id == owner
            ]
    return storages


def may_on_storages(access: Access, storages: Iterable[ExperimentStorage], action: str) -> bool:
    """Whether the caller may do the action on the experiments that own these storages (folders
    of files)."""
    return all(
        access.allows(Requirement(EXPERIMENT, storage.experiment_id, action))
        for storage in storages
    )


def check_choice(access: Access, location: str) -> None:
    """Checks that a caller may choose the location for a new experiment. An administrator may
    choose any.

    Raises:
        PermissionDenied: at, above or below the location there are, or will be, files of another
            experiment, a model version or the server, and the caller may not manage them.
        InvalidParameterValue: the location is another workspace's, or not a path.
    """
    if access.is_admin or root_of(location) is None:
        return
    key = locate(location, access.workspace)
    if segments_below(key) is not None:
        raise _permission_denied(location)
    own_storage = default_storage(key)
    is_managed = own_storage is not None and may_on_storages(access, [own_storage], "manage")
    if default_folders.holds_folders(key) or (own_storage is not None and not is_managed):
        raise _permission_denied(location)
    foreign_claims = []
    for claim in location_list.overlapping([key]):
        if claim.experiment_id is None:
            foreign_claims += [] if is_managed else [claim]
        elif may_on_storages(
            access, [ExperimentStorage(claim.experiment_id, claim.path)], "manage"
        ):
            is_managed = is_managed or covers(claim.path, key)
        else:
            foreign_claims.append(claim)
    if foreign_claims and location_list.existing_holders(foreign_claims):
        raise _permission_denied(location)


def may_on_skill_files(access: Access, key: str, action: str) -> bool:
    """Whether the caller may do the action on the skill files at a key; True if no skills are
    stored there. Folders that contain several skills are for administrators only."""
    segments = segments_below(key)
    if segments is None or access.is_admin:
        return True
    identity = identity_below(segments)
    return identity is not None and access.allows(Requirement(SKILL, identity.resource_id, action))


def may_use_outer_storages(access: Access, experiment_ids: Iterable[str], action: str) -> bool:
    """Whether the caller may act on the storages of *other* experiments in which the given
    experiments' files lie. One BatchGetItem; more reads only for chosen locations."""
    for _, key in location_list.of_experiments(experiment_ids):
        if not may_on_skill_files(access, key, action):
            return False
        outer_storages = [storage for storage in storages_around(key) if storage.path != key]
        if not may_on_storages(access, outer_storages, action):
            return False
    return True


def may_read(access: Access, location: str, *, own: str = "") -> bool:
    """Whether the caller may read what is at and below a location that a client has named; True
    where the server reads nothing. Where future experiments' storage will lie, only administrators
    may.

    Args:
        own: a location that the caller is known to be allowed to read.
    """
    if root_of(location) is None:
        return True  # not in this server's store: the server reads nothing there
    try:
        key = locate(location, access.workspace)
    except errors.InvalidParameterValue:
        return True
    if own and default_folders.key_of(own, access.workspace) == key:
        return True
    if default_folders.holds_folders(key) and not access.is_admin:
        return False
    if not may_on_skill_files(access, key, "read"):
        return False
    return may_on_storages(access, storages_around(key, tree=True), "read")


def may_name(access: Access, location: str) -> bool:
    """Whether the caller may store a location of files as the source of a model version. The caller
    must be allowed to read the files there, and the location must not lie in the default storage of
    an experiment that does not exist yet, since this experiment's future owner could not deny the
    access."""
    if not may_read(access, location):
        return False
    key = default_folders.key_of(location, access.workspace)
    own_storage = None if key is None else default_storage(key)
    return (
        own_storage is None
        or experiments.find(own_storage.experiment_id, access.workspace) is not None
    )


def may_read_source(access: Access, source: str) -> bool:
    """Whether a caller who may read a model version may also read the files of its ``source``: yes
    for the artifact proxy's scheme, because such a source is checked when a version gets it. Any
    other source in this server's store needs the right to read it."""
    return scheme(source) == PROXY_SCHEME or may_read(access, source)


def _permission_denied(location: str) -> errors.PermissionDenied:
    return errors.PermissionDenied(
        f"'artifact_location' '{location}' is, holds or lies in a place for files of another "
        "experiment, a model version or the server itself that you may not manage. Choose another "
        "location, or none."
    )
