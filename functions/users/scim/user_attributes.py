"""The SCIM attributes of users: their checks, and the operations of SCIM's PATCH on them.

Attributes that the product does not need, such as telephone numbers, addresses and managers, are
accepted but not stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from users.scim.errors import ScimError, invalid_value
from users.scim.filters import Path, Value, parse_path
from users.scim.messages import Operation, lowered

MAX_TEXT: Final = 255
MAX_EMAILS: Final = 20

_NAME_PARTS: Final = {
    part.lower(): part
    for part in (
        *("formatted", "familyName", "givenName", "middleName"),
        *("honorificPrefix", "honorificSuffix"),
    )
}
_EMAIL_PARTS: Final = ("value", "display", "type", "primary")
_TEXTS: Final = {"username": "userName", "externalid": "externalId", "displayname": "displayName"}
"""Attributes that are texts, by their names in lower case."""

Attributes = dict[str, Any]
"""``userName``, ``externalId``, ``active``, ``displayName``, ``name``, ``emails``; an unset
attribute is missing."""


def of_body(body: Mapping[str, Any]) -> Attributes:
    """Returns the SCIM attributes of the user in a request's body, without null and empty ones.
    Raises ScimError if an attribute has a wrong type or form."""
    attributes: Attributes = {}
    for name, value in lowered(body).items():
        if value is None:
            continue
        if name in _TEXTS:
            attributes[_TEXTS[name]] = text_of(name, value)
        elif name == "active":
            attributes["active"] = boolean(name, value)
        elif name == "name":
            attributes["name"] = _name(value)
        elif name == "emails":
            attributes["emails"] = _emails(value)
    return _without_empty(attributes)


def patched(before: Attributes, operations: Sequence[Operation]) -> Attributes:
    """Returns the attributes that a SCIM user has after the operations of a SCIM PATCH request.
    Raises ScimError if an operation is not possible."""
    after = {**before, "emails": [dict(entry) for entry in before.get("emails", ())]}
    after["name"] = dict(before.get("name", {}))
    for operation in operations:
        _apply(after, operation)
    return _without_empty(after)


def _apply(after: Attributes, operation: Operation) -> None:
    op, path, value = operation
    if path is not None:
        _change(after, op, parse_path(path), value)
        return
    if op == "remove":
        raise ScimError(400, "The operation remove needs a path.", "noTarget")
    if not isinstance(value, dict):
        raise invalid_value("An operation without a path needs an object as its value.")
    for name, part in value.items():
        if name.lower() not in ("id", "meta", "schemas"):
            _change(after, op, parse_path(name), part)


def _change(after: Attributes, op: str, path: Path, value: Any) -> None:
    if op == "remove" or value is None:
        _remove(after, path)
    elif path.attribute in _TEXTS and not path.part:
        after[_TEXTS[path.attribute]] = text_of(path.attribute, single(value))
    elif path.attribute == "active" and not path.part:
        after["active"] = boolean("active", single(value))
    elif path.attribute == "name":
        sent = {path.part: value} if path.part else value
        after["name"].update(_name(sent))
    elif path.attribute == "emails":
        _change_emails(after, op, path, value)


def _remove(after: Attributes, path: Path) -> None:
    if path.attribute in ("username", "active"):
        raise ScimError(400, f"'{path.attribute}' cannot be removed.", "mutability")
    if path.attribute in _TEXTS:
        after.pop(_TEXTS[path.attribute], None)
    elif path.attribute == "name":
        if path.part:
            after["name"].pop(_NAME_PARTS.get(path.part, ""), None)
        else:
            after["name"].clear()
    elif path.attribute == "emails":
        chosen = [entry for entry in after["emails"] if _is_chosen(entry, path.where)]
        for entry in chosen:
            if path.part:
                entry.pop(path.part, None)
            else:
                after["emails"].remove(entry)


def _change_emails(after: Attributes, op: str, path: Path, value: Any) -> None:
    emails = after["emails"]
    if not path.where and not path.part:
        sent = _emails(value if isinstance(value, list) else [value])
        kept = emails if op == "add" else []
        emails = [*kept, *(entry for entry in sent if entry not in kept)]
    else:
        new = _email({path.part: value} if path.part else value)
        chosen = [entry for entry in emails if _is_chosen(entry, path.where)]
        if not chosen:
            # Entra ID replaces addresses that it has not added yet.
            chosen = [_email(dict(path.where))]
            emails.append(chosen[0])
        for entry in chosen:
            entry.update(new)
    after["emails"] = _with_one_primary(emails)


def _is_chosen(entry: Mapping[str, Any], where: Sequence[tuple[str, Value]]) -> bool:
    return all(_is_equal(entry.get(name), value) for name, value in where)


def _is_equal(stored: Any, value: Value) -> bool:
    if isinstance(stored, str) and isinstance(value, str):
        return stored.lower() == value.lower()
    return bool(stored) == value if isinstance(value, bool) else stored == value


def text_of(name: str, value: Any) -> str:
    """Returns the value of a SCIM attribute that must be a text. Raises ScimError for another type,
    a long text, or characters that are not printable."""
    if not isinstance(value, str):
        raise invalid_value(f"'{name}' must be a text.")
    if len(value) > MAX_TEXT or not value.isprintable():
        raise invalid_value(f"'{name}' must have at most {MAX_TEXT} printable characters.")
    return value


def boolean(name: str, value: Any) -> bool:
    """Returns the value of a SCIM attribute that must be a boolean; accepts "true" and "false" as
    texts, which Entra ID may send. Raises ScimError for any other value."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise invalid_value(f"'{name}' must be true or false.")


def single(value: Any) -> Any:
    """Returns the only value of a list such as ``[{"value": "x"}]``, as Entra ID may send single
    values; other values unchanged."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        return lowered(value[0]).get("value")
    return value


def _name(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise invalid_value("'name' must be an object.")
    return {
        _NAME_PARTS[part]: text_of(f"name.{part}", text)
        for part, text in lowered(value).items()
        if part in _NAME_PARTS and text is not None
    }


def _emails(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise invalid_value("'emails' must be a list.")
    return _with_one_primary([_email(entry) for entry in value])


def _email(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        value = {"value": value}
    if not isinstance(value, dict):
        raise invalid_value("An entry of 'emails' must be an object.")
    entry: dict[str, Any] = {}
    for part, sent in lowered(value).items():
        if part == "primary" and sent is not None:
            entry[part] = boolean("emails.primary", sent)
        elif part in _EMAIL_PARTS and sent is not None:
            entry[part] = text_of(f"emails.{part}", sent)
    return entry


def _with_one_primary(emails: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Checks the number of addresses. Of several primary ones, only the last stays primary."""
    if len(emails) > MAX_EMAILS:
        raise invalid_value(f"A user has at most {MAX_EMAILS} 'emails'.")
    primary = [entry for entry in emails if entry.get("primary")]
    for entry in primary[:-1]:
        entry["primary"] = False
    return emails


def _without_empty(attributes: Attributes) -> Attributes:
    emails = [entry for entry in attributes.get("emails", ()) if entry.get("value")]
    name = {part: text for part, text in attributes.get("name", {}).items() if text}
    kept = {**attributes, "emails": emails, "name": name}
    return {name: value for name, value in kept.items() if value not in ("", [], {}, None)}
