"""Creates, reads, changes and deletes skills, and sets their tags and aliases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mlcore import errors, ids
from mlcore.auth.permissions import SKILL
from mlcore.entities.skills import Skill, SkillIdentity
from mlcore.http import Request
from mlcore.limits import skills as limits
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos import skills
from mlcore.responses import skills as responses
from skills import messages as m

V = TypeVar("V")


def create_skill(message: m.CreateSkill, request: Request) -> dict[str, Any]:
    identity = limits.check_identity(message.organization, message.name)
    skill = new_skill(identity, request)._replace(
        description=message.description, icons=message.icons
    )
    try:
        skills.write(skill, also=request.granting(SKILL, identity.resource_id))
    except WriteConflict as conflict:
        raise errors.ResourceAlreadyExists(
            f"Skill '{identity.name}' already exists in organization '{identity.organization}'"
        ) from conflict
    return responses.skill(skill)


def get_skill(message: m.NamedSkill, request: Request) -> dict[str, Any]:
    return responses.skill(load(identity_of(message), request))


def update_skill(message: m.UpdateSkill, request: Request) -> dict[str, Any]:
    """Sets the fields of a skill that the request has. A field that is null is cleared. Returns the
    changed skill."""
    changes = {
        field: getattr(message, field) for field in ("description", "icons") if message.has(field)
    }

    def change(skill: Skill) -> Skill:
        return skill._replace(
            **changes, last_updated_by=request.username(), last_updated_at=ids.now_ms()
        )

    return responses.skill(update(identity_of(message), request, change))


def delete_skill(message: m.NamedSkill, request: Request) -> dict[str, Any]:
    """Deletes a skill with its versions. Their files are removed afterwards."""
    identity = identity_of(message)

    def attempt() -> dict[str, Any]:
        skill = load(identity, request)
        skills.delete(skill, request.leaving_grants(SKILL, identity.resource_id))
        return {}

    return retry_on_conflict("skill", attempt)


def set_skill_tag(message: m.SetSkillTag, request: Request) -> dict[str, Any]:
    identity = identity_of(message)
    limits.check_tag(message.key, message.value)

    def change(skill: Skill) -> Skill:
        return skill._replace(tags={**skill.tags, message.key: message.value})

    update(identity, request, change, named(identity))
    return {}


def delete_skill_tag(message: m.DeleteSkillTag, request: Request) -> dict[str, Any]:
    identity = identity_of(message)
    limits.check_tag(message.key)
    missing = errors.ResourceDoesNotExist(
        f"Tag '{message.key}' not found on Skill '{identity.name}'"
    )

    def change(skill: Skill) -> Skill:
        if message.key not in skill.tags:
            raise missing
        return skill._replace(tags=without_key(skill.tags, message.key))

    update(identity, request, change, missing)
    return {}


def set_skill_alias(message: m.SetSkillAlias, request: Request) -> dict[str, Any]:
    identity = identity_of(message)
    number = limits.check_version(message.version)
    limits.check_alias(message.alias)
    missing = errors.ResourceDoesNotExist(
        f"Skill version '{identity.name}' version '{number}' not found or is deleted"
    )

    def change(skill: Skill) -> Skill:
        if number not in skill.versions:
            raise missing
        return skill._replace(aliases={**skill.aliases, message.alias: number})

    update(identity, request, change, missing)
    return {}


def delete_skill_alias(message: m.NamedAlias, request: Request) -> dict[str, Any]:
    identity = identity_of(message)
    if limits.is_latest(message.alias):
        raise errors.InvalidParameterValue(
            "The 'latest' alias is resolved automatically and cannot be deleted"
        )
    limits.check_alias(message.alias)
    missing = errors.ResourceDoesNotExist(
        f"Alias '{message.alias}' not found on skill '{identity.name}'"
    )

    def change(skill: Skill) -> Skill:
        if message.alias not in skill.aliases:
            raise missing
        return skill._replace(aliases=without_key(skill.aliases, message.alias))

    update(identity, request, change, missing)
    return {}


def new_skill(identity: SkillIdentity, request: Request) -> Skill:
    """Returns a new skill without versions. It is not stored yet."""
    now, username = ids.now_ms(), request.username()
    return Skill(
        workspace=request.workspace,
        identity=identity,
        description=None,
        icons=None,
        tags={},
        aliases={},
        versions={},
        last_number=0,
        created_by=username,
        last_updated_by=username,
        created_at=now,
        last_updated_at=now,
    )


def identity_of(message: Any) -> SkillIdentity:
    """Returns the organization and name of the skill that a request message names. Raises
    InvalidParameterValue if one of them is malformed."""
    return limits.check_identity(message.organization, message.name)


def load(
    identity: SkillIdentity, request: Request, missing: errors.MlflowError | None = None
) -> Skill:
    """Reads a skill. Raises ``missing``, by default ResourceDoesNotExist, if it does not exist."""
    skill = skills.find(request.workspace, identity)
    if skill is None:
        raise missing or errors.ResourceDoesNotExist(
            f"Skill '{identity.name}' not found in organization '{identity.organization}'"
        )
    return skill


def named(identity: SkillIdentity) -> errors.ResourceDoesNotExist:
    """Returns the error for a missing skill, in the wording that MLflow's server uses in requests
    that set a skill's tag or read its latest version."""
    return errors.ResourceDoesNotExist(
        f"Skill not found (name='{identity.name}', organization='{identity.organization}')"
    )


def update(
    identity: SkillIdentity,
    request: Request,
    change: Callable[[Skill], Skill],
    missing: errors.MlflowError | None = None,
) -> Skill:
    """Reads a skill, applies ``change``, stores the result if it differs, and returns it. A
    concurrent write makes it start over.

    Args:
        missing: raised instead of ResourceDoesNotExist if the skill does not exist.
    """

    def attempt() -> Skill:
        skill = load(identity, request, missing)
        after = change(skill)
        if after != skill:
            skills.write(after)
        return after

    return retry_on_conflict("skill", attempt)


def without_key(entries: dict[str, V], key: str) -> dict[str, V]:
    return {name: value for name, value in entries.items() if name != key}
