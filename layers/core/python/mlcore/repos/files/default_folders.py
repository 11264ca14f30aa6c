"""Computes the keys of the default folders of experiments in the artifact store, from the
deployment's ``ARTIFACT_ROOT`` and the workspace; reads no table.

An experiment for which nobody chose a location has its files in ``<ARTIFACT_ROOT>/<its id>``, or in
``<ARTIFACT_ROOT>/workspaces/<workspace>/<its id>``. Other locations of experiments are in the list
of locations (:mod:`.location_list`).
"""

from __future__ import annotations

from mlcore import errors
from mlcore.artifacts.paths import WORKSPACES, covers
from mlcore.artifacts.paths import join as key_below
from mlcore.artifacts.storage_keys import locate
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.environment import settings
from mlcore.limits.artifact_locations import join


def key_of(location: str, workspace: str, experiment_id: str = "") -> str | None:
    """Returns the key in the artifact store of a location (a URI or path); None if it lies outside
    our store.

    An experiment that was moved to another workspace keeps its default folder, so its key may lie
    in the former workspace.
    """
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
    return key if is_default_folder(key, experiment_id) else None


def roots(workspace: str) -> list[str]:
    """Returns the keys below which experiments of a workspace have their default folders: two for
    the default workspace, with and without its workspace prefix."""
    root = settings().artifact_root
    prefixes = [join(root, f"{WORKSPACES}/{workspace}")]
    if workspace == DEFAULT_WORKSPACE:
        prefixes.append(root)
    root_keys = []
    for location in prefixes:
        try:
            root_keys.append(locate(location, workspace))
        except errors.InvalidParameterValue:
            continue
    return root_keys


def workspace_of(key: str) -> str:
    """Returns the workspace to whose folder of the artifact store a key belongs."""
    first, _, rest = key.partition("/")
    name = rest.partition("/")[0]
    return name if first == WORKSPACES and name else DEFAULT_WORKSPACE


def is_default_folder(key: str, experiment_id: str) -> bool:
    """Whether a key of the artifact store is the default folder of an experiment, below a root of
    the workspace that the key names. Then the list of locations needs no entry for the
    experiment."""
    return any(key == key_below(root, experiment_id) for root in roots(workspace_of(key)))


def folder_above(key: str) -> tuple[str, str] | None:
    """Returns (id, key) of the experiment whose default folder contains a key of the artifact
    store; the experiment need not exist. None if the key lies in no such folder."""
    for root in roots(workspace_of(key)):
        if key != root and covers(root, key):
            segment = key[len(root) :].lstrip("/").partition("/")[0]
            if segment != WORKSPACES:
                return segment, key_below(root, segment)
    return None


def holds_folders(key: str) -> bool:
    """Whether the default folders of future experiments would lie below a key of the artifact
    store."""
    names = {workspace_of(key), DEFAULT_WORKSPACE}
    return any(covers(key, root) for name in names for root in roots(name)) or key == WORKSPACES
