"""Reads, changes and deletes versions of skills, and sets and deletes their tags."""

from __future__ import annotations

from typing import Any

from mlcore import errors, ids
from mlcore.entities.skills import DELETED, Skill, SkillIdentity, SkillVersion, latest_version
from mlcore.http import Request
from mlcore.limits import skills as limits
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos import skills as repository
from mlcore.responses import skills as responses
from skills import messages as m
from skills import skills


def get_skill_version(message: m.NamedVersion, request: Request) -> dict[str, Any]:
    skill, version = _load(skills.identity_of(message), message.version, request)
    return responses.version(version, skill)


def get_version_by_alias(message: m.NamedAlias, request: Request) -> dict[str, Any]:
    identity = skills.identity_of(message)
    if limits.is_latest(message.alias):
        skill: Skill | None = skills.load(identity, request, skills.named(identity))
        number = None if skill is None else latest_version(skill)
        missing = f"No resolved latest version found for skill '{identity.name}'"
    else:
        limits.check_alias(message.alias)
        skill = repository.find(request.workspace, identity)
        number = None if skill is None else skill.aliases.get(message.alias)
        missing = f"Alias '{message.alias}' not found for skill '{identity.name}'"
    if skill is None or number is None:
        raise errors.ResourceDoesNotExist(missing)
    (version,) = repository.find_versions([(skill, number)])
    if version is None:
        raise _missing_version(identity, number)
    return responses.version(version, skill)


def update_skill_version(message: m.UpdateSkillVersion, request: Request) -> dict[str, Any]:
    """Changes the status of a skill's version; a request without a status changes nothing."""
    identity = skills.identity_of(message)
    limits.check_version(message.version)
    if not message.has("status"):
        skill, version = _load(identity, message.version, request)
        return responses.version(version, skill)
    if message.status is None:
        raise errors.InvalidParameterValue(
            "status cannot be null; omit the field to leave it unchanged"
        )

    def attempt() -> dict[str, Any]:
        skill, version = _load(identity, message.version, request)
        return _change_status(skill, version, message.status, request)

    return retry_on_conflict("skill version", attempt)


def delete_skill_version(message: m.NamedVersion, request: Request) -> dict[str, Any]:
    """Deletes a version of a skill and the aliases that name it. Its number is not used again, and
    its files stay until the skill is deleted."""
    identity = skills.identity_of(message)

    def attempt() -> dict[str, Any]:
        skill, version = _load(identity, message.version, request)
        _change_status(skill, version, DELETED, request)
        return {}

    return retry_on_conflict("skill version", attempt)


def set_skill_version_tag(message: m.SetSkillVersionTag, request: Request) -> dict[str, Any]:
    identity = skills.identity_of(message)
    limits.check_version(message.version)
    limits.check_tag(message.key, message.value)

    def attempt() -> dict[str, Any]:
        _, version = _load(identity, message.version, request)
        if version.tags.get(message.key) != message.value:
            tags = {**version.tags, message.key: message.value}
            repository.write_version(version._replace(tags=tags))
        return {}

    return retry_on_conflict("skill version", attempt)


def delete_skill_version_tag(message: m.DeleteSkillVersionTag, request: Request) -> dict[str, Any]:
    identity = skills.identity_of(message)
    number = limits.check_version(message.version)
    limits.check_tag(message.key)

    def attempt() -> dict[str, Any]:
        _, version = repository.find_with_version(request.workspace, identity, number)
        if version is None or message.key not in version.tags:
            raise errors.ResourceDoesNotExist(
                f"Tag '{message.key}' not found on Skill version '{identity.name}' "
                f"version '{number}'"
            )
        tags = skills.without_key(version.tags, message.key)
        repository.write_version(version._replace(tags=tags))
        return {}

    return retry_on_conflict("skill version", attempt)


def _load(identity: SkillIdentity, number: int, request: Request) -> tuple[Skill, SkillVersion]:
    """Reads a version that is not deleted, and its skill. Raises ResourceDoesNotExist."""
    limits.check_version(number)
    skill, version = repository.find_with_version(request.workspace, identity, number)
    if skill is None or version is None:
        raise _missing_version(identity, number)
    return skill, version


def _missing_version(identity: SkillIdentity, number: int) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(
        f"Skill version '{identity.name}' version '{number}' not found"
    )


def _change_status(
    skill: Skill, version: SkillVersion, status: str, request: Request
) -> dict[str, Any]:
    """Writes a version with a new status, together with its skill, which has the status; returns
    the version's JSON."""
    limits.check_transition(version.status, status)
    version = version._replace(
        status=status, last_updated_by=request.username(), last_updated_at=ids.now_ms()
    )
    states = dict(skill.versions)
    state = states.pop(version.number)
    aliases = skill.aliases
    if status == DELETED:
        aliases = {alias: number for alias, number in aliases.items() if number != version.number}
    else:
        states[version.number] = state._replace(status=status)
    skill = skill._replace(versions=states, aliases=aliases)
    repository.write(skill, puts=[version])
    return responses.version(version, skill)
