"""Paths of the uploaded files of skills: ``skills/[@organization/]name/<32 hex>`` in the store of
their workspace. Only the skill registry writes there.
"""

from __future__ import annotations

import re
from typing import Final

from mlcore.artifacts.paths import WORKSPACES
from mlcore.artifacts.storage_keys import locate, root_of
from mlcore.entities.skills import SkillIdentity
from mlcore.errors import InvalidParameterValue, PermissionDenied

ROOT: Final = "skills"
"""First segment of the paths. :func:`segments_below` ignores its case, because on some file systems
``Skills`` and ``skills`` are the same folder."""

_NAME: Final = re.compile("[a-z0-9.-]+")
_UPLOAD: Final = re.compile(r"mlflow-artifacts:/(skills/(?:@[^/]+/)?[^@/]+/[0-9a-f]{32})")


def upload_path(identity: SkillIdentity, token: str) -> str:
    """Returns the path, within its workspace's files, of a skill's upload: the folder with the
    files of one version.

    Args:
        token: 32 hexadecimal digits that no other upload has.
    """
    return f"{ROOT}/{identity.resource_id}/{token}"


def path_of_upload(source: str) -> str | None:
    """Returns the path of a skill's uploaded files, from the ``source`` of the skill's version;
    None if the source is not an upload to this server."""
    match = _UPLOAD.fullmatch(source)
    return match[1] if match else None


def segments_below(key: str) -> list[str] | None:
    """Returns the segments that follow the folder of a workspace's uploaded skill files
    (``skills/``) in a key of the file store; None for a key outside that folder."""
    segments = [segment for segment in key.split("/") if segment not in ("", ".")]
    if len(segments) >= 2 and segments[0].casefold() == WORKSPACES:
        segments = segments[2:]
    if not segments or segments[0].casefold() != ROOT:
        return None
    return segments[1:]


def identity_below(segments: list[str]) -> SkillIdentity | None:
    """Returns the skill (organization and name) that a path in the folder of all skills belongs to;
    None if the path names no skill.

    Args:
        segments: the path, from :func:`segments_below`.
    """
    organization = ""
    names = [segment.lower() for segment in segments[:2]]
    if names and names[0].startswith("@"):
        organization, *names = names
    if not names or not all(map(_NAME.fullmatch, (organization[1:] or "-", names[0]))):
        return None
    return SkillIdentity(organization[1:], names[0])


def check_location(location: str, workspace: str) -> None:
    """Checks that the location of an experiment's files is not in the folder of uploaded skill
    files. Raises InvalidParameterValue if it is."""
    try:
        key = "" if root_of(location) is None else locate(location, workspace)
    except InvalidParameterValue:
        return  # a path that this server never stores at
    if segments_below(key) is not None:
        raise InvalidParameterValue(
            f"'artifact_location' '{location}' lies among the files of skills. Choose another "
            "location, or none."
        )


def check_not_skill(key: str) -> None:
    """Refuses to write or delete a key below the folder of skills. Raises PermissionDenied."""
    if segments_below(key) is not None:
        raise PermissionDenied("Skill upload content is immutable; register a new version instead")
