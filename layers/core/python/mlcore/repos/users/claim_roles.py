"""Finds the roles that the setting ``sign_in_roles`` gives for the claims of a sign-in, or for the
attributes of a group that a directory provisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from mlcore import errors
from mlcore.auth.claims import values_of
from mlcore.auth.permissions import Grant
from mlcore.db.failures import AdditionalOperationFailed
from mlcore.db.table import Check
from mlcore.entities.users import Role
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.environment import workspaces_enabled
from mlcore.limits.sign_in import DIRECTORY, E_MAIL_DOMAIN
from mlcore.observability import logger
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos.settings import sign_in
from mlcore.repos.users import roles, scim_groups
from mlcore.repos.workspaces import workspaces

T = TypeVar("T")

_DESCRIPTION: Final = "Given by the groups of people who sign in"


class Rights(NamedTuple):
    """The roles, and whether a person is an administrator, that the rules of the setting
    ``sign_in_roles`` give to one person."""

    role_ids: frozenset[int]
    is_admin: bool


def rights_of(
    claims: Mapping[str, Any], issuer_name: str, rules: Sequence[Mapping[str, Any]]
) -> Rights:
    """Returns the rights that the rules of the setting ``sign_in_roles`` give for verified claims.
    A missing role whose permissions a rule lists is created if its workspace exists; an existing
    one gets exactly these permissions."""
    matching = [rule for rule in rules if _matches(rule, claims, issuer_name)]
    role_ids = {role.role_id for rule in matching if "role" in rule for role in _role_of(rule)}
    return Rights(frozenset(role_ids), any(rule.get("administrator") is True for rule in matching))


def role_ids_of_group(
    display_name: str, external_id: str | None, rules: Sequence[Mapping[str, Any]]
) -> tuple[int, ...]:
    """Returns the ids of the roles that rules of the setting ``sign_in_roles`` give to members of a
    group of the directory. Rules for token issuers are ignored. A missing role whose permissions a
    rule lists is created if its workspace exists; an existing one gets exactly these permissions.
    """
    claims = {"displayName": display_name, "externalId": external_id}
    own = [rule for rule in rules if rule.get("issuer") == DIRECTORY]
    return tuple(sorted(rights_of(claims, DIRECTORY, own).role_ids))


def with_rules_for_groups(write: Callable[[Sequence[Mapping[str, Any]], Check], T]) -> T:
    """Calls ``write`` with the present rules of the setting ``sign_in_roles``, and a check that
    they are still the same, which the transaction that gives roles to a group must contain. Calls
    it again if they are not: a group must not keep a role that a rule has given no longer. Returns
    the result of ``write``."""

    def attempt() -> T:
        rules, unchanged = sign_in.role_rules_to_apply()
        try:
            return write(rules, unchanged)
        except AdditionalOperationFailed as failed:
            raise WriteConflict from failed

    return retry_on_conflict("list of rules", attempt)


def apply_to_groups() -> None:
    """Sets the roles of all groups of the SCIM directory by the present rules of the setting
    ``sign_in_roles``. Writes only groups whose roles change."""

    def write(rules: Sequence[Mapping[str, Any]], unchanged: Check) -> None:
        for group in scim_groups.find_all():
            role_ids = role_ids_of_group(group.display_name, group.external_id, rules)
            scim_groups.set_roles(group.group_id, role_ids, [unchanged])

    with_rules_for_groups(write)


def _matches(rule: Mapping[str, Any], claims: Mapping[str, Any], issuer_name: str) -> bool:
    if rule.get("issuer", issuer_name) != issuer_name:
        return False
    if rule["claim"] == E_MAIL_DOMAIN:
        return e_mail_domain(claims) == str(rule["value"]).lower()
    return rule["value"] in values_of(claims, rule["claim"])


def e_mail_domain(claims: Mapping[str, Any]) -> str:
    """Returns the domain of the person's e-mail address in lower case; "" if there is no address or
    the issuer says that it is not verified."""
    address = claims.get("email")
    if not isinstance(address, str) or claims.get("email_verified") in (False, "false"):
        return ""
    name, _, domain = address.rpartition("@")
    return domain.lower() if name else ""


def _role_of(rule: Mapping[str, Any]) -> Iterator[Role]:
    name, workspace = rule["role"], rule.get("workspace", DEFAULT_WORKSPACE)
    role = roles.find_named(workspace, name)
    described = rule.get("permissions")
    is_possible = not workspaces_enabled() or workspaces.find(workspace) is not None
    if role is None and described and is_possible:
        try:
            role = roles.create(name, workspace, _DESCRIPTION, in_existing=workspaces_enabled())
        except roles.RoleNameTaken:
            role = roles.find_named(workspace, name)
        except errors.ResourceDoesNotExist:  # the deletion of the workspace has begun
            role = None
    if role is None:
        logger.warning("a rule of sign-in names no role", extra={"role": name})
        return
    if described:
        _match_permissions(role, [Grant(*_fields(fields)) for fields in described])
    yield role


def _fields(grant: Mapping[str, str]) -> tuple[str, str, str]:
    return grant["resource_type"], grant["resource_pattern"], grant["permission"]


def _match_permissions(role: Role, wanted: Sequence[Grant]) -> None:
    """Adds, changes and removes permissions of a role until it has exactly the wanted ones."""
    levels = {grant[:2]: grant.permission for grant in wanted}
    for held in role.permissions:
        level = levels.pop(held.grant[:2], None)
        if level != held.grant.permission:
            roles.replace_permission(held.permission_id, level)
    for (resource_type, pattern), level in levels.items():
        try:
            roles.add_permission(role.role_id, Grant(resource_type, pattern, level))
        except roles.PermissionExists:  # another sign-in was first
            continue
