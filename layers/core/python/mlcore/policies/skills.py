"""Permission checks for requests about skills. Versions have the grants of their skill. A missing
skill is treated as one without a grant, so that names cannot be probed."""

from __future__ import annotations

from typing import Any

from mlcore import errors
from mlcore.auth.permissions import SKILL
from mlcore.auth.requirements import NOT_DENIED, Requirement
from mlcore.entities.skills import DELETED, SkillIdentity
from mlcore.limits import skills as limits
from mlcore.policies.access import Access
from mlcore.policies.shared_rules import Policy
from mlcore.repos import skills


def on_skill(action: str) -> Policy:
    """Returns the policy that requires the action on a skill."""

    def policy(access: Access, message: Any) -> bool:
        identity = limits.check_identity(message.organization, message.name)
        return access.allows(Requirement(SKILL, identity.resource_id, action))

    return policy


def create(access: Access, message: Any) -> bool:
    if not message.has("name"):
        raise errors.InvalidParameterValue("Skill name must be a string.")
    return _may_create(access, limits.check_identity(message.organization, message.name))


def register(access: Access, message: Any) -> bool:
    """Requires the right to register versions of the skill, and the right to create the skill if it
    is missing."""
    identity = limits.check_identity(message.organization, message.name)
    return _may_register(access, [identity])


def register_all(access: Access, message: Any) -> bool:
    """Requires the right to register versions of each skill that the message lists, and to create
    those that are missing."""
    identities = []
    for fields in message.skills:
        if not isinstance(fields, dict) or not isinstance(fields.get("name"), str):
            raise errors.InvalidParameterValue("Each Skill must be a JSON object with a name.")
        identities.append(limits.check_identity(message.organization, fields["name"]))
    return _may_register(access, identities)


def update_version(access: Access, message: Any) -> bool:
    """Requires the right to update the skill. To delete the version by its status, the caller must
    be allowed to manage the skill, as for deleting it otherwise."""
    return (manage if message.status == DELETED else update)(access, message)


def _may_create(access: Access, identity: SkillIdentity) -> bool:
    return access.may_create() and access.allows(
        Requirement(SKILL, identity.resource_id, NOT_DENIED)
    )


def _may_register(access: Access, identities: list[SkillIdentity]) -> bool:
    stored = skills.find_many(access.workspace, list(dict.fromkeys(identities)))
    return all(
        _may_create(access, identity)
        if skill is None
        else access.allows(Requirement(SKILL, identity.resource_id, "update"))
        for identity, skill in stored.items()
    )


read = on_skill("read")
update = on_skill("update")
manage = on_skill("manage")
