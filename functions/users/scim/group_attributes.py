"""The attributes of SCIM groups: their checks, and the operations of PATCH requests on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from users.scim.errors import ScimError, invalid_value
from users.scim.filters import Path, parse_path
from users.scim.messages import Operation, lowered
from users.scim.user_attributes import single, text_of


class GroupChange:
    """What a SCIM request changes in a group of users. ``display_name`` and ``external_id`` are
    None if they stay as they are; an empty external id removes it."""

    def __init__(self) -> None:
        self.display_name: str | None = None
        self.external_id: str | None = None
        self.keeps_members = True
        """Whether members stay that the request does not name."""
        self.added: dict[str, None] = {}
        """SCIM ids of users to add, in order."""
        self.removed: dict[str, None] = {}
        """SCIM ids of users to remove."""

    def add(self, scim_ids: Iterable[str]) -> None:
        for scim_id in scim_ids:
            self.added[scim_id] = None
            self.removed.pop(scim_id, None)

    def remove(self, scim_ids: Iterable[str]) -> None:
        for scim_id in scim_ids:
            self.removed[scim_id] = None
            self.added.pop(scim_id, None)

    def replace(self, scim_ids: Iterable[str]) -> None:
        """Makes the users with these SCIM ids the only members of the SCIM group."""
        self.keeps_members = False
        self.added, self.removed = dict.fromkeys(scim_ids), {}


def of_body(body: Mapping[str, Any]) -> GroupChange:
    """Returns the change that gives a SCIM group the name, external id and members in a request's
    body. Raises ScimError."""
    fields = lowered(body)
    change = GroupChange()
    change.display_name = _display_name(fields.get("displayname"))
    external_id = fields.get("externalid")
    change.external_id = "" if external_id is None else text_of("externalId", external_id)
    change.replace(_member_ids(fields.get("members") or []))
    return change


def of_operations(operations: Sequence[Operation]) -> GroupChange:
    """Returns the change of a SCIM group that the operations of a PATCH request make together.
    Raises ScimError."""
    change = GroupChange()
    for op, path, value in operations:
        if path is not None:
            _apply(change, op, parse_path(path), value)
        elif op == "remove":
            raise ScimError(400, "The operation remove needs a path.", "noTarget")
        elif not isinstance(value, dict):
            raise invalid_value("An operation without a path needs an object as its value.")
        else:
            for name, part in value.items():
                if name.lower() not in ("id", "meta", "schemas"):
                    _apply(change, op, parse_path(name), part)
    return change


def _apply(change: GroupChange, op: str, path: Path, value: Any) -> None:
    if path.attribute == "displayname" and not path.part:
        change.display_name = _display_name(None if op == "remove" else single(value))
    elif path.attribute == "externalid" and not path.part:
        is_removed = op == "remove" or value is None
        change.external_id = "" if is_removed else text_of("externalId", single(value))
    elif path.attribute == "members":
        _apply_to_members(change, op, path, value)


def _apply_to_members(change: GroupChange, op: str, path: Path, value: Any) -> None:
    if path.where:
        names = {name for name, _ in path.where}
        selected = [text for name, text in path.where if name == "value"]
        if names != {"value"} or path.part or op != "remove":
            raise ScimError(
                400,
                'Brackets behind members are supported as in members[value eq "id"], and for '
                "removal.",
                "invalidPath",
            )
        change.remove(_ids(selected))
    elif op == "add":
        change.add(_member_ids(value))
    elif op == "replace":
        change.replace(_member_ids(value))
    elif value is None:
        change.replace(())
    else:
        # Entra ID removes members by a list and not by brackets.
        change.remove(_member_ids(value))


def _display_name(value: Any) -> str:
    name = "" if value is None else text_of("displayName", value)
    if not name.strip():
        raise invalid_value("'displayName' must be set.")
    return name


def _member_ids(value: Any) -> list[str]:
    entries = value if isinstance(value, list) else [value]
    return _ids(
        lowered(entry).get("value") if isinstance(entry, dict) else entry for entry in entries
    )


def _ids(values: Iterable[Any]) -> list[str]:
    ids = []
    for value in values:
        if not isinstance(value, str) or not value:
            raise invalid_value("A member must be an object with the id of a user as its 'value'.")
        ids.append(value)
    return ids
