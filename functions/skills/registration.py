"""Registers versions of skills: one from a remote source, one with uploaded files, or several from
one git repository."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from mlcore import errors, ids
from mlcore.auth.permissions import SKILL
from mlcore.auth.requirements import NOT_DENIED, Requirement
from mlcore.db.table import Operation
from mlcore.entities.skills import (
    ACTIVE,
    GIT,
    MLFLOW,
    Skill,
    SkillIdentity,
    SkillSource,
    SkillVersion,
    VersionState,
)
from mlcore.http import Request
from mlcore.limits import skills as limits
from mlcore.limits.skill_sources import check_type, remote_source
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos import skills as repository
from mlcore.responses import skills as responses
from skills import archive, uploaded_files
from skills import messages as m
from skills.registration_body import ARCHIVE_SLACK, RegisterSkillVersion
from skills.skills import identity_of, new_skill


def register_skill_version(message: RegisterSkillVersion, request: Request) -> dict[str, Any]:
    """Creates a version of a skill, and the skill if it does not exist."""
    identity = identity_of(message)
    limits.check_first_status(message.status)
    limits.check_digest(message.digest)
    check_type(message.source_type)
    if message.source is None:
        if message.archive is None:
            raise errors.InvalidParameterValue(
                "A registration without a 'source' uploads the skill content and requires a "
                "multipart/form-data body with a 'content' part. To register a remote skill, set "
                "'source' to its git, oci, or zip location."
            )
        return _register_upload(identity, message, request)
    if message.archive is not None:
        raise errors.InvalidParameterValue(
            "A registration with a remote 'source' must use an application/json body; it cannot "
            "also carry uploaded content. Omit 'source' to upload content instead."
        )
    source = remote_source(
        message.source, message.source_type, message.ref, message.subpath, message.digest
    )
    return _create(identity, source, message.status, request)


def _register_upload(
    identity: SkillIdentity, message: RegisterSkillVersion, request: Request
) -> dict[str, Any]:
    """Checks and stores the files, then creates the version that names them."""
    for field in ("source_type", "ref", "subpath"):
        if getattr(message, field) is not None:
            raise errors.InvalidParameterValue(
                f"'{field}' does not apply to uploaded content; the whole uploaded tree is the "
                "skill and the server records where it stored it."
            )
    most = limits.max_content_bytes() + ARCHIVE_SLACK
    if len(message.archive) > most:
        raise errors.InvalidParameterValue(
            f"The uploaded skill content exceeds the size limit of {most} bytes."
        )
    uploaded = archive.read(message.archive)
    if message.digest not in (None, uploaded.digest):
        raise errors.InvalidParameterValue(
            "'digest' does not match the uploaded content: expected "
            f"{uploaded.digest}, got {message.digest}."
        )
    path = uploaded_files.new_path(identity)
    _write_files(request.workspace, path, uploaded.files)
    try:
        source = SkillSource(MLFLOW, f"mlflow-artifacts:/{path}", None, None, uploaded.digest)
        return _create(identity, source, message.status, request)
    except errors.MlflowError as error:
        if error.status < 500:  # otherwise the version may exist
            uploaded_files.remove(request.workspace, path)
        raise


def _write_files(workspace: str, path: str, files: Mapping[str, bytes]) -> None:
    """Stores the files of a version that is not yet created. If the store is not available, removes
    what was stored and raises RequestLimitExceeded, because clients repeat a request that creates
    something only after that error."""
    try:
        uploaded_files.write(workspace, path, files)
    except errors.MlflowError as error:
        with contextlib.suppress(errors.MlflowError):  # files that remain are not referenced
            uploaded_files.remove(workspace, path)
        if isinstance(error, errors.TemporarilyUnavailable):
            raise errors.RequestLimitExceeded(error.message) from error
        raise


def _create(
    identity: SkillIdentity, source: SkillSource, status: str, request: Request
) -> dict[str, Any]:
    def attempt() -> dict[str, Any]:
        stored = repository.find(request.workspace, identity)
        _check_right(identity, stored, request)
        skill, version = _with_version(
            stored or new_skill(identity, request), source, status, request
        )
        also = request.granting(SKILL, identity.resource_id) if stored is None else []
        repository.write(skill, puts=[version], also=also)
        return responses.version(version, skill)

    return retry_on_conflict("skill", attempt)


def bulk_register_skills(message: m.BulkRegisterSkills, request: Request) -> dict[str, Any]:
    """Registers several skills of one git repository. Creates missing skills, and a new version of
    each skill that has no version with the given source. Returns the versions in the order of the
    request."""
    sources = _bulk_sources(message)
    status = message.skills[0].get("status", ACTIVE)

    def attempt() -> dict[str, Any]:
        stored = repository.find_many(request.workspace, list(sources))
        for identity, skill in stored.items():
            _check_right(identity, skill, request)
        versions = _existing_versions(stored, sources)
        groups: list[Sequence[Operation]] = []
        creates = False
        for identity, source in sources.items():
            if identity in versions:
                continue
            before = stored[identity]
            skill, version = _with_version(
                before or new_skill(identity, request), source, status, request
            )
            creates = creates or before is None
            also = request.granting(SKILL, identity.resource_id) if before is None else []
            groups.append([*repository.writing(skill, [version]), *also])
            versions[identity] = (skill, version)
        repository.write_all(request.workspace, groups, creates=creates)
        answers = [
            responses.version(version, skill)
            for skill, version in (versions[identity] for identity in sources)
        ]
        return {"skill_versions": answers}

    return retry_on_conflict("skill", attempt)


def _bulk_sources(message: m.BulkRegisterSkills) -> dict[SkillIdentity, SkillSource]:
    """Returns the checked source of each skill. Raises InvalidParameterValue."""
    organization = message.organization
    for fields in message.skills:
        limits.check_identity(organization, fields["name"])
    status = message.skills[0].get("status", ACTIVE)
    resolved = []
    for fields in message.skills:
        limits.check_first_status(fields.get("status", ACTIVE))
        limits.check_digest(fields["digest"])
        check_type(fields.get("source_type"))
        if fields.get("status", ACTIVE) != status:
            raise errors.InvalidParameterValue(
                "Bulk registration requires the same status for every Skill."
            )
        source = remote_source(
            fields["source"],
            fields.get("source_type"),
            fields.get("ref"),
            fields.get("subpath"),
            fields["digest"],
        )
        resolved.append((SkillIdentity(organization, fields["name"]), source))
    sources: dict[SkillIdentity, SkillSource] = {}
    first = resolved[0][1]
    for identity, source in resolved:
        if source.source_type != GIT:
            raise errors.InvalidParameterValue(
                "Bulk registration requires a Git source and digest for every Skill."
            )
        if identity in sources:
            raise errors.InvalidParameterValue(f"Duplicate Skill name: {identity.name!r}.")
        if (source.source, source.ref) != (first.source, first.ref):
            raise errors.InvalidParameterValue(
                "Bulk registration requires the same Git repository and ref for every Skill."
            )
        sources[identity] = source
    return sources


def _existing_versions(
    stored: dict[SkillIdentity, Skill | None], sources: dict[SkillIdentity, SkillSource]
) -> dict[SkillIdentity, tuple[Skill, SkillVersion]]:
    """Returns for each skill its newest version with the requested source, if it has one."""
    candidates = []
    for identity, skill in stored.items():
        fingerprint = sources[identity].fingerprint()
        numbers = [
            number
            for number, state in (skill.versions.items() if skill else ())
            if state.fingerprint == fingerprint
        ]
        if skill is not None and numbers:
            candidates.append((skill, max(numbers)))
    versions = repository.find_versions(candidates)
    return {
        skill.identity: (skill, version)
        for (skill, _), version in zip(candidates, versions, strict=True)
        if version is not None and version.source == sources[skill.identity]
    }


def _with_version(
    skill: Skill, source: SkillSource, status: str, request: Request
) -> tuple[Skill, SkillVersion]:
    """Returns a skill with a new version, and that version."""
    number = limits.check_version(skill.last_number + 1)
    now, username = ids.now_ms(), request.username()
    state = VersionState(status, source.source_type, source.fingerprint())
    version = SkillVersion(
        workspace=request.workspace,
        identity=skill.identity,
        number=number,
        source=source,
        tags={},
        created_by=username,
        last_updated_by=username,
        created_at=now,
        last_updated_at=now,
        status=status,
    )
    return (
        skill._replace(versions={**skill.versions, number: state}, last_number=number),
        version,
    )


def _check_right(identity: SkillIdentity, stored: Skill | None, request: Request) -> None:
    """Checks with the skill's current state that the caller may register a version: since the first
    check another request may have created or deleted the skill. Raises ResourceConflict."""
    access = request.access
    if access is None or access.is_admin:
        return
    if stored is None:
        action, change = NOT_DENIED, "no longer exists; this registration expected to update it."
    else:
        action, change = "update", "already exists; this registration expected to create it."
    may_create = stored is not None or access.may_create()
    if not may_create or not access.allows(Requirement(SKILL, identity.resource_id, action)):
        raise errors.ResourceConflict(f"Skill '{identity.name}' {change}")
