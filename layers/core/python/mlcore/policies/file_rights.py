"""Whose files a place in the store has, and so who may choose, read or change it.

A location gives no right by itself. Whoever reaches files through an experiment, a trace or a model
version must also be allowed what is asked by the experiment in whose place they lie.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from mlcore import errors
from mlcore.artifacts.locations import locate, root_of, scheme
from mlcore.artifacts.paths import WORKSPACES, covers
from mlcore.auth.permissions import EXPERIMENT
from mlcore.auth.requirements import Requirement
from mlcore.models.logged_models import LoggedModel
from mlcore.policies.access import Access
from mlcore.repos.experiments import experiments
from mlcore.repos.files import locations
from mlcore.repos.logged_models import logged_models
from mlcore.repos.runs import runs

EXPERIMENTS: Final = re.compile(r"[0-9A-Z]{26}|[0-9]+")
RUN_FOLDERS: Final = re.compile(r"[0-9A-Z]{26}|[0-9a-f]{32}")
PROXY_SCHEME: Final = "mlflow-artifacts"


class Place(NamedTuple):
    """An experiment, and the key below which its files lie."""

    experiment_id: str
    path: str

    def rest(self, key: str) -> list[str]:
        """The segments of a key below the place."""
        return [part for part in key[len(self.path) :].split("/") if part]


def around(key: str, *, tree: bool = False) -> list[Place]:
    """In whose places a key lies: the experiment by whose id it is named, whether that is there or
    not, and those that chose a place. Queries side by side; a BatchGetItem where something was
    found.

    Args:
        tree: also the places below the key.
    """
    own = own_place(key)
    places = [] if own is None else [own]
    claims = [
        claim
        for claim in locations.overlapping([key])
        if claim.experiment_id is not None and (tree or covers(claim.path, key))
    ]
    there = locations.there(claims) if claims else set()
    for claim in claims:
        if claim.experiment_id is not None and claim.holder in there:
            places.append(Place(claim.experiment_id, claim.path))
    return _named(list(dict.fromkeys(places)), key)


def own_place(key: str) -> Place | None:
    """The place of the experiment by whose id a key is named; also where new experiments have
    theirs elsewhere by now."""
    own = locations.own_place_above(key)
    if own is not None and EXPERIMENTS.fullmatch(own[0]):
        return Place(*own)
    segments = key.split("/")
    named = 2 if segments[0] == WORKSPACES else 0
    if len(segments) > named and EXPERIMENTS.fullmatch(segments[named]):
        return Place(segments[named], "/".join(segments[: named + 1]))
    return None


def _named(places: list[Place], key: str) -> list[Place]:
    """Where experiments share one place, a folder in it is that one's whose run or model it is."""
    shared = {place.path for place in places if sum(one.path == place.path for one in places) > 1}
    for path in shared:
        rest = Place("", path).rest(key)
        owner = None
        if rest and RUN_FOLDERS.fullmatch(rest[0]):
            owner = runs.locate(rest[0])
        elif rest[:1] == ["models"] and len(rest) > 1:
            (item,) = logged_models.find([rest[1]], locations.workspace_of(key))
            owner = None if item is None else LoggedModel.of(item).experiment_id
        if any(place == Place(owner or "", path) for place in places):
            places = [one for one in places if one.path != path or one.experiment_id == owner]
    return places


def may(access: Access, places: Iterable[Place], action: str) -> bool:
    return all(
        access.allows(Requirement(EXPERIMENT, each.experiment_id, action)) for each in places
    )


def check_choice(access: Access, location: str) -> None:
    """Before an experiment is made at a location: an administrator may choose any.

    Raises:
        PermissionDenied: somebody else's files are, or will be, at, above or below it.
        InvalidParameterValue: it is another workspace's, or no path.
    """
    if access.is_admin or root_of(location) is None:
        return
    key = locate(location, access.workspace)
    own = own_place(key)
    managed = own is not None and may(access, [own], "manage")
    if locations.holds_own_places(key) or (own is not None and not managed):
        raise _refused(location)
    others = []
    for claim in locations.overlapping([key]):
        if claim.experiment_id is None:
            others += [] if managed else [claim]
        elif may(access, [Place(claim.experiment_id, claim.path)], "manage"):
            managed = managed or covers(claim.path, key)
        else:
            others.append(claim)
    if others and locations.there(others):
        raise _refused(location)


def may_through(access: Access, experiment_ids: Iterable[str], action: str) -> bool:
    """Whether the places of experiments, where those lie in others' places, may be used. One
    BatchGetItem; more only for chosen locations."""
    for _, key in locations.of_experiments(experiment_ids):
        others = [one for one in around(key) if one.path != key]
        if not may(access, others, action):
            return False
    return True


def may_read(access: Access, location: str, *, own: str = "") -> bool:
    """Whether files at and below a location that a client chose may be read. Nobody but
    administrators reads at a location that holds the own places of experiments still to come.

    Args:
        own: a location that the caller may read already.
    """
    if root_of(location) is None:
        return True  # not ours: nothing is read there
    try:
        key = locate(location, access.workspace)
    except errors.InvalidParameterValue:
        return True
    if own and locations.key_of(own, access.workspace) == key:
        return True
    if locations.holds_own_places(key) and not access.is_admin:
        return False
    return may(access, around(key, tree=True), "read")


def may_name(access: Access, location: str) -> bool:
    """As :func:`may_read`, where the location is kept: the place of an experiment that is not there
    yet must not be chosen before its owner can deny it."""
    if not may_read(access, location):
        return False
    key = locations.key_of(location, access.workspace)
    own = None if key is None else own_place(key)
    return own is None or experiments.find(own.experiment_id, access.workspace) is not None


def may_read_source(access: Access, source: str) -> bool:
    """Whether the files of a model version may be read by who may read the version. A proxied
    source was compared with the run or model that it belongs to when the version was made; any
    other that we keep must be readable itself."""
    return scheme(source) == PROXY_SCHEME or may_read(access, source)


def _refused(location: str) -> errors.PermissionDenied:
    return errors.PermissionDenied(
        f"'artifact_location' '{location}' is, holds or lies in a place for files of another "
        "experiment, a model version or the server itself that you may not manage. Choose another "
        "location, or none."
    )
