"""Creates, reads, changes and deletes groups of users for a SCIM directory. Members of a group have
the roles that the setting ``sign_in_roles`` gives to the group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from mlcore.db.table import Check
from mlcore.entities.scim import ScimGroup
from mlcore.http import Request, Response
from mlcore.repos.users import claim_roles, scim_groups, scim_users
from mlcore.repos.users.scim_groups import GroupNameTaken, NoSuchMember
from users.scim import responses
from users.scim.errors import ScimError, invalid_filter, invalid_value, missing, taken
from users.scim.filters import AttributeEquals, parse_filter
from users.scim.group_attributes import GroupChange, of_body, of_operations
from users.scim.messages import ScimRequest

Rules = Sequence[Mapping[str, Any]]
"""The rules of the setting ``sign_in_roles``."""


def create_group(message: ScimRequest, request: Request) -> Response:
    """Creates a group of users with its members. If the creation is interrupted, a repeated request
    gets 409, and the SCIM client finds the group by its name and adds the members."""
    change = of_body(message.body)
    name, external_id = change.display_name or "", change.external_id or None
    _check_users(change)

    def write(rules: Rules, unchanged: Check) -> ScimGroup:
        role_ids = claim_roles.role_ids_of_group(name, external_id, rules)
        return scim_groups.create(name, external_id, role_ids, [unchanged])

    try:
        group = claim_roles.with_rules_for_groups(write)
    except GroupNameTaken:
        raise taken(f"There is a group with the displayName {name!r}.") from None
    _change_members(group.group_id, change)
    resource = _resource(group.group_id, message, request)
    return responses.created(resource, "group_id", message, request)


def get_group(message: ScimRequest, request: Request) -> Response:
    return _answer(message.scim_id, message, request)


def list_groups(message: ScimRequest, request: Request) -> Response:
    """Lists all SCIM groups, the oldest first, or only those that the request's filter selects."""
    groups = _matching(parse_filter(message.filter)) if message.filter else scim_groups.find_all()
    page = groups[message.start - 1 :][: message.limit]
    resources = _resources(page, message, request)
    return responses.page(resources, len(groups), message, request)


def replace_group(message: ScimRequest, request: Request) -> Response:
    """Replaces the name, the external id and the members of a SCIM group of users."""
    _change(message, of_body(message.body))
    return _answer(message.scim_id, message, request)


def patch_group(message: ScimRequest, request: Request) -> Response:
    """Changes a SCIM group. The response (204) has no body, as the members could make it large."""
    _change(message, of_operations(message.operations))
    return responses.nothing()


def delete_group(message: ScimRequest, request: Request) -> Response:
    """Deletes a SCIM group: its members lose its roles at once. A repeated request gets 404, and
    completes an interrupted deletion."""
    group = scim_groups.find(message.scim_id)
    if group is None:
        scim_groups.delete_memberships(message.scim_id)
        raise missing("Group", message.scim_id)
    responses.check_version(message, group.version)
    scim_groups.delete(group)
    return responses.nothing()


def _change(message: ScimRequest, change: GroupChange) -> None:
    """Changes a group and its members. If it is interrupted, a repeated request completes it.
    Raises ScimError."""
    _check_users(change)

    def edit(rules: Rules, before: ScimGroup) -> ScimGroup:
        responses.check_version(message, before.version)
        name, external_id = before.display_name, before.external_id
        if change.display_name is not None:
            name = change.display_name
        if change.external_id is not None:
            external_id = change.external_id or None
        role_ids = claim_roles.role_ids_of_group(name, external_id, rules)
        return before._replace(display_name=name, external_id=external_id, role_ids=role_ids)

    def write(rules: Rules, unchanged: Check) -> ScimGroup | None:
        return scim_groups.update(message.scim_id, partial(edit, rules), [unchanged])

    try:
        group = claim_roles.with_rules_for_groups(write)
    except GroupNameTaken as error:
        raise taken(f"There is a group with the displayName '{error}'.") from None
    if group is None:
        raise missing("Group", message.scim_id)
    _change_members(message.scim_id, change)


def _change_members(group_id: str, change: GroupChange) -> None:
    removed = set(change.removed)
    if not change.keeps_members:
        removed = set(scim_groups.members(group_id)) - change.added.keys()
    try:
        exists = not change.added or scim_groups.add_members(group_id, change.added)
    except NoSuchMember as error:
        raise invalid_value(f"There is no user with the id '{error}'.") from None
    if exists and removed:
        exists = scim_groups.remove_members(group_id, sorted(removed))
    if not exists:
        raise missing("Group", group_id)


def _check_users(change: GroupChange) -> None:
    """Checks, before anything is written, that new members are users. Raises ScimError."""
    if not change.added:
        return
    users = {user.scim_id for user in scim_users.find_many(change.added)}
    unknown = [scim_id for scim_id in change.added if scim_id not in users]
    if unknown:
        raise invalid_value(f"There is no user with the id '{unknown[0]}'.")


def _get(message: ScimRequest) -> ScimGroup:
    group = scim_groups.find(message.scim_id)
    if group is None:
        raise missing("Group", message.scim_id)
    return group


def _answer(group_id: str, message: ScimRequest, request: Request) -> Response:
    return responses.one(_resource(group_id, message, request), message, request)


def _resource(group_id: str, message: ScimRequest, request: Request) -> responses.Resource:
    group = scim_groups.find(group_id)
    if group is None:
        raise missing("Group", group_id)
    (resource,) = _resources([group], message, request)
    return resource


def _resources(
    groups: Sequence[ScimGroup], message: ScimRequest, request: Request
) -> list[responses.Resource]:
    """Returns the JSON of groups. Members are read only if the request asks for them."""
    if responses.is_wanted("members", message):
        members = scim_groups.members_of_each([group.group_id for group in groups])
    else:
        members = [[] for _ in groups]
    return [
        responses.group(group, scim_ids, request)
        for group, scim_ids in zip(groups, members, strict=True)
    ]


def _matching(conditions: list[AttributeEquals]) -> list[ScimGroup]:
    """Returns the groups that meet all conditions. One condition must be on an indexed attribute,
    otherwise raises ScimError."""
    for condition in conditions:
        groups = _candidates(condition)
        if groups is not None:
            for other in conditions:
                groups = _meeting(groups, other)
            return groups
    raise invalid_filter(
        "A filter of groups needs a comparison of displayName, externalId, id or members.value."
    )


def _candidates(condition: AttributeEquals) -> list[ScimGroup] | None:
    """Returns the groups that meet a condition on an indexed attribute; None if the attribute is
    not indexed."""
    attribute, value, _ = condition
    if attribute not in ("displayname", "externalid", "id", "members", "members.value"):
        return None
    if not isinstance(value, str) or not value:
        return []
    if attribute == "externalid":
        return scim_groups.find_by_external_id(value)
    if attribute in ("members", "members.value"):
        return scim_groups.find_of_member(value)
    group = scim_groups.find(value) if attribute == "id" else scim_groups.find_named(value)
    return [] if group is None else [group]


def _meeting(groups: list[ScimGroup], condition: AttributeEquals) -> list[ScimGroup]:
    attribute, value, _ = condition
    if not isinstance(value, str):
        return []
    if attribute in ("members", "members.value"):
        holding = scim_groups.have_member([group.group_id for group in groups], value)
        return [group for group in groups if group.group_id in holding]
    if attribute == "displayname":
        return [group for group in groups if group.display_name.lower() == value.lower()]
    if attribute == "externalid":
        return [group for group in groups if group.external_id == value]
    if attribute == "id":
        return [group for group in groups if group.group_id == value]
    raise ScimError(400, f"A filter cannot compare '{attribute}'.", "invalidFilter")
