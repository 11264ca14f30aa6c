"""Creates, reads, changes, deactivates and deletes users for a directory (SCIM)."""

from __future__ import annotations

from typing import Any

from mlcore.entities.scim import ScimUser
from mlcore.entities.users import User
from mlcore.http import Request, Response
from mlcore.repos.users import scim_users, sessions, users
from mlcore.repos.users.scim_users import E_MAIL, EXTERNAL_ID, UserNameTaken
from users.deletion import delete_everything_of
from users.scim import responses
from users.scim.errors import ScimError, invalid_filter, invalid_value, missing, taken
from users.scim.filters import AttributeEquals, parse_filter
from users.scim.messages import ScimRequest
from users.scim.user_attributes import Attributes, of_body, patched


def create_user(message: ScimRequest, request: Request) -> Response:
    """Creates a user, who has no password and no rights of their own."""
    sent = of_body(message.body)
    name = sent.get("userName", "")
    if not name.strip():
        raise invalid_value("'userName' must be set.")
    user = User(0, name, "", is_admin=False, role_ids={}, is_active=sent.get("active", True))
    new_user = _with(ScimUser(user, None, {}, 0, None, None), sent)
    try:
        made = scim_users.create(new_user)
    except UserNameTaken:
        raise taken(f"There is a user with the userName {name!r}.") from None
    return responses.created(responses.user(made, request), "scim_id", message, request)


def get_user(message: ScimRequest, request: Request) -> Response:
    entity = scim_users.find(message.scim_id)
    if entity is None:
        raise missing("User", message.scim_id)
    return responses.one(responses.user(entity, request), message, request)


def list_users(message: ScimRequest, request: Request) -> Response:
    """Lists users by name, or those that a filter selects."""
    if not message.filter:
        total, entities = scim_users.page(message.start - 1, message.limit)
    else:
        matching = _matching(parse_filter(message.filter))
        total = len(matching)
        entities = matching[message.start - 1 :][: message.limit]
    resources = [responses.user(entity, request) for entity in entities]
    return responses.page(resources, total, message, request)


def replace_user(message: ScimRequest, request: Request) -> Response:
    """Replaces a user's SCIM attributes (PUT). If ``active`` is omitted, it keeps its value."""
    sent = of_body(message.body)

    def edited(before: Attributes) -> Attributes:
        return {"active": before["active"], **sent}

    return _change(message, request, edited)


def patch_user(message: ScimRequest, request: Request) -> Response:
    """Changes attributes of a SCIM user as the operations of a PATCH request say."""
    return _change(message, request, lambda before: patched(before, message.operations))


def delete_user(message: ScimRequest, request: Request) -> Response:
    """Deletes a user with rights, API keys and sign-in sessions. A repeated request gets 404."""
    entity = scim_users.find(message.scim_id)
    if entity is None:
        raise missing("User", message.scim_id)
    responses.check_version(message, entity.version)
    _check_other(entity.user, request)
    # First, so that the user is refused from here on even if the request is interrupted.
    scim_users.deactivate(entity.user)
    profile = users.find_profile(entity.user.username)
    if profile is not None and profile.user.user_id == entity.user.user_id:
        delete_everything_of(profile, by_directory=True)
    return responses.nothing()


def _change(message: ScimRequest, request: Request, edited: Any) -> Response:
    def edit(before: ScimUser) -> ScimUser:
        responses.check_version(message, before.version)
        after = edited(_attributes(before))
        name = after.get("userName", "")
        if name.lower() != before.user.username.lower():
            raise ScimError(
                400,
                "'userName' cannot change: rights and runs belong to the name. Delete the user and "
                "create another one.",
                "mutability",
            )
        changed = _with(before, after)
        if before.user.is_active and not changed.user.is_active:
            _check_other(before.user, request)
        if changed.user.is_active and not before.user.is_active:
            # An earlier session must not become valid again.
            sessions.end_all(before.user.username)
        return changed

    try:
        stored = scim_users.update(message.scim_id, edit)
    except UserNameTaken as error:
        raise taken(f"There is another spelling of the userName {error}.") from None
    if stored is None:
        raise missing("User", message.scim_id)
    if not stored.user.is_active:
        sessions.end_all(stored.user.username)
    return responses.one(responses.user(stored, request), message, request)


def _check_other(user: User, request: Request) -> None:
    """Refuses to lock the caller out. Raises ScimError."""
    if user.username == request.caller().username:
        raise ScimError(403, "Callers cannot deactivate or delete themselves.")


def _attributes(entity: ScimUser) -> Attributes:
    attributes = {
        "userName": entity.user.username,
        "externalId": entity.external_id,
        "active": entity.user.is_active,
        **entity.attributes,
    }
    return {name: value for name, value in attributes.items() if value is not None}


def _with(entity: ScimUser, attributes: Attributes) -> ScimUser:
    """Returns the user with the external id, the flag ``active`` and the other attributes from a
    request."""
    further = {k: v for k, v in attributes.items() if k in ("displayName", "name", "emails")}
    return entity._replace(
        user=entity.user._replace(is_active=attributes.get("active", True)),
        external_id=attributes.get("externalId"),
        attributes=further,
    )


def _matching(conditions: list[AttributeEquals]) -> list[ScimUser]:
    """Returns the users that meet all conditions. One condition must be on an indexed attribute,
    otherwise raises ScimError."""
    for condition in conditions:
        candidates = _candidates(condition)
        if candidates is not None:
            return [
                candidate
                for candidate in candidates
                if all(_meets(candidate, other) for other in conditions)
            ]
    raise invalid_filter(
        "A filter of users needs a comparison of userName, externalId, emails.value or id."
    )


def _candidates(condition: AttributeEquals) -> list[ScimUser] | None:
    """Returns the users that meet a condition on an indexed attribute; None if the attribute is not
    indexed."""
    value = condition.value
    if condition.attribute not in ("username", "id", "externalid", "emails", "emails.value"):
        return None
    if not isinstance(value, str) or not value:
        return []
    if condition.attribute == "username":
        named = scim_users.find_named(value)
        return [] if named is None else [named]
    if condition.attribute == "id":
        return scim_users.find_many([value])
    attribute = EXTERNAL_ID if condition.attribute == "externalid" else E_MAIL
    return scim_users.find_by(attribute, value)


def _meets(entity: ScimUser, condition: AttributeEquals) -> bool:
    attribute, value, where = condition
    if attribute in ("id", "externalid"):
        return value == (entity.scim_id if attribute == "id" else entity.external_id)
    if attribute in ("emails", "emails.value"):
        wanted = dict([*where, ("value", value)])
        entries = entity.attributes.get("emails", ())
        return any(all(_same(e.get(n), v) for n, v in wanted.items()) for e in entries)
    if where:
        raise invalid_filter(f"A filter cannot select entries of '{attribute}'.")
    if attribute == "active":
        return value == entity.user.is_active
    if attribute == "username":
        return _same(entity.user.username, value)
    if attribute == "displayname":
        return _same(entity.attributes.get("displayName"), value)
    raise invalid_filter(f"A filter cannot compare '{attribute}'.")


def _same(stored: Any, value: Any) -> bool:
    if isinstance(stored, str) and isinstance(value, str):
        return stored.lower() == value.lower()
    return isinstance(stored, bool) and stored == value
