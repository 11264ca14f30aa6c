"""Skills, their versions, and where the content of a version is."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from hashlib import blake2b
from typing import Any, Final, NamedTuple

Json = dict[str, Any]

DRAFT: Final = "draft"
ACTIVE: Final = "active"
DEPRECATED: Final = "deprecated"
DELETED: Final = "deleted"
STATUSES: Final = (DRAFT, ACTIVE, DEPRECATED, DELETED)

GIT: Final = "git"
OCI: Final = "oci"
ZIP: Final = "zip"
MLFLOW: Final = "mlflow"
"""The type of a source whose content was uploaded to this server."""

LATEST: Final = "latest"
"""The reserved alias that means the greatest active version, or the greatest of all if none is
active."""


class SkillIdentity(NamedTuple):
    """Organization and name of a skill, unique in its workspace. ``organization`` is "" for
    none."""

    organization: str
    name: str

    @property
    def resource_id(self) -> str:
        """The text by which grants and paths of files name the skill: ``name`` or
        ``@organization/name``."""
        return f"@{self.organization}/{self.name}" if self.organization else self.name


class SkillSource(NamedTuple):
    """The source of the content of a version of a skill. ``digest`` is the SHA-256 of its files."""

    source_type: str
    source: str
    ref: str | None
    subpath: str | None
    digest: str | None

    def fingerprint(self) -> str:
        """Returns a short hash of this source of a skill version. A skill's item stores the hash of
        each version's source, so that versions with the same source are found without reading the
        versions."""
        content = json.dumps(self, separators=(",", ":")).encode()
        return urlsafe_b64encode(blake2b(content, digest_size=9).digest()).decode()


class VersionState(NamedTuple):
    """What a skill's item stores about each version: status, source type and hash of the source."""

    status: str
    source_type: str
    fingerprint: str


class Skill(NamedTuple):
    """A skill. ``versions`` has no deleted versions; ``last_number`` is the greatest number ever
    given to a version."""

    workspace: str
    identity: SkillIdentity
    description: str | None
    icons: list[Json] | None
    tags: dict[str, str]
    aliases: dict[str, int]
    versions: dict[int, VersionState]
    last_number: int
    created_by: str | None
    last_updated_by: str | None
    created_at: int
    last_updated_at: int
    revision: int = 0
    """Revision of the stored item; 0 before it is stored."""
    is_moved: bool = False
    """Whether it is in another workspace, and here are only versions that are to be deleted."""


class SkillVersion(NamedTuple):
    workspace: str
    identity: SkillIdentity
    number: int
    source: SkillSource
    tags: dict[str, str]
    created_by: str | None
    last_updated_by: str | None
    created_at: int
    last_updated_at: int
    status: str
    revision: int = 0


def latest_version(skill: Skill) -> int | None:
    """Returns the number of the skill version to which the alias ``latest`` resolves; None if the
    skill has no versions."""
    candidates = [(state.status == ACTIVE, number) for number, state in skill.versions.items()]
    return max(candidates)[1] if candidates else None
