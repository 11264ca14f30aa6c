"""Builds DynamoDB's update and condition expressions, with their placeholders.

Callers name attributes by the attributes of models (``Run.stage``), which know their stored names
and types. An entry of a map is named by a pair of the map's attribute and a key: ``(Run.tags, "my
key")``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, overload

from mlcore.db.attribute_types import (
    FlagMapAttribute,
    ItemAttribute,
    TextMapAttribute,
    TextSetAttribute,
)

V = TypeVar("V")

Raw = dict[str, Any]
"""An attribute value in DynamoDB JSON, such as ``{"S": "x"}``, or an item: attribute name to such
values."""

MapEntry = tuple[TextMapAttribute[Any], str]
"""An entry of a map of texts: (attribute, key)."""

FlagEntry = tuple[FlagMapAttribute[Any], str]
"""An entry of a map of flags: (attribute, key)."""

AttributePath = ItemAttribute[Any] | MapEntry | FlagEntry

MAX_EXPRESSION_BYTES = 4096
MAX_OPERATORS = 300


def string(value: str) -> Raw:
    return {"S": value}


def number(value: int) -> Raw:
    return {"N": str(value)}


def flag(value: bool) -> Raw:
    return {"BOOL": value}


class Update:
    """Builds the expressions of one UpdateItem request: SET, REMOVE, ADD and DELETE clauses, and
    conditions that are joined by AND."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: Raw = {}
        self._set: list[str] = []
        self._remove: list[str] = []
        self._add: list[str] = []
        self._delete: list[str] = []
        self._conditions: list[str] = []
        self.changes: list[tuple[AttributePath, Raw | None, int]] = []
        """(path, value to set or None, amount to add)"""
        self.required: Raw = {}
        """Attribute name to the value that a condition requires of the attribute."""
        self.sets_only_values = True
        """Whether ``changes`` has all changes: those by :meth:`set_once` and of sets are left
        out."""

    @overload
    def set(self, attribute: ItemAttribute[V], value: V) -> None: ...
    @overload
    def set(self, attribute: MapEntry, value: str) -> None: ...
    @overload
    def set(self, attribute: FlagEntry, value: bool) -> None: ...
    def set(self, attribute: AttributePath, value: Any) -> None:
        self._set_to(attribute, self._raw(attribute, value))

    def set_raw(self, attribute: ItemAttribute[Any], raw: Raw) -> None:
        """Sets the attribute to a value that is already DynamoDB JSON."""
        self._set_to(attribute, raw)

    def _set_to(self, attribute: AttributePath, raw: Raw) -> None:
        self._set.append(f"{self._path(attribute)}={self._placeholder(raw)}")
        self.changes.append((attribute, raw, 0))

    def set_once(self, attribute: ItemAttribute[V], value: V) -> None:
        """Sets a DynamoDB attribute only if the item lacks it."""
        path = self._path(attribute)
        self.sets_only_values = False
        self._set.append(f"{path}=if_not_exists({path},{self._value(attribute, value)})")

    def remove(self, attribute: AttributePath) -> None:
        self._remove.append(self._path(attribute))
        self.changes.append((attribute, None, 0))

    @overload
    def set_or_remove(self, attribute: ItemAttribute[V], value: V | None) -> None: ...
    @overload
    def set_or_remove(self, attribute: MapEntry, value: str | None) -> None: ...
    def set_or_remove(self, attribute: AttributePath, value: Any) -> None:
        """Sets an attribute or a map's entry to the value, or removes it if the value is None."""
        if value is None:
            self.remove(attribute)
        else:
            self._set_to(attribute, self._raw(attribute, value))

    def add(self, attribute: ItemAttribute[Any], amount: int) -> None:
        self._add.append(f"{self._path(attribute)} {self._placeholder(number(amount))}")
        self.changes.append((attribute, None, amount))

    def add_members(self, attribute: TextSetAttribute, members: Iterable[str]) -> None:
        """Adds members to a set attribute, which is created if the item lacks it."""
        self.sets_only_values = False
        self._add.append(f"{self._path(attribute)} {self._placeholder(attribute.raw(members))}")

    def delete_members(self, attribute: TextSetAttribute, members: Iterable[str]) -> None:
        """Deletes members from a set attribute; members that the set does not have are ignored."""
        self.sets_only_values = False
        self._delete.append(f"{self._path(attribute)} {self._placeholder(attribute.raw(members))}")

    def applied(self, item: Raw) -> Raw:
        """Returns the raw item as this update would change it, computed without DynamoDB. Updates
        with :meth:`set_once` or with changes of sets are not supported."""
        after = dict(item)
        for path, raw, amount in self.changes:
            attribute, key = path if isinstance(path, tuple) else (path, None)
            name, value = attribute.attr_name, raw
            if amount:
                value = number(int(after.get(name, number(0))["N"]) + amount)
            if key is not None:
                entries = {**after[name]["M"], key: raw}
                value = {"M": {name: text for name, text in entries.items() if text is not None}}
            if value is None:
                after.pop(name, None)
            else:
                after[name] = value
        return after

    @overload
    def require_equal(self, attribute: ItemAttribute[V], value: V) -> None: ...
    @overload
    def require_equal(self, attribute: MapEntry, value: str) -> None: ...
    def require_equal(self, attribute: AttributePath, value: Any) -> None:
        if isinstance(attribute, ItemAttribute):
            self.required[attribute.attr_name] = attribute.raw(value)
        self._conditions.append(f"{self._path(attribute)}={self._value(attribute, value)}")

    def require_exists(self, attribute: AttributePath) -> None:
        self._conditions.append(f"attribute_exists({self._path(attribute)})")

    def require_absent(self, attribute: AttributePath) -> None:
        self._conditions.append(f"attribute_not_exists({self._path(attribute)})")

    def require_map(self, attribute: TextMapAttribute[Any]) -> None:
        """Adds the condition that the attribute is stored as a map, so that expressions can name
        its entries."""
        kind = self._placeholder(string(attribute.attr_type))
        self._conditions.append(f"attribute_type({self._path(attribute)},{kind})")

    @overload
    def require_less(self, attribute: ItemAttribute[V], value: V) -> None: ...
    @overload
    def require_less(self, attribute: MapEntry, value: str) -> None: ...
    def require_less(self, attribute: AttributePath, value: Any) -> None:
        """Adds the condition that the stored value exists and is less than ``value``."""
        self._conditions.append(f"{self._path(attribute)}<{self._value(attribute, value)}")

    @overload
    def require_absent_or_less(self, attribute: ItemAttribute[V], value: V) -> None: ...
    @overload
    def require_absent_or_less(self, attribute: MapEntry, value: str) -> None: ...
    def require_absent_or_less(self, attribute: AttributePath, value: Any) -> None:
        self._require_absent_or(attribute, "<", value)

    @overload
    def require_absent_or_equal(self, attribute: ItemAttribute[V], value: V) -> None: ...
    @overload
    def require_absent_or_equal(self, attribute: MapEntry, value: str) -> None: ...
    def require_absent_or_equal(self, attribute: AttributePath, value: Any) -> None:
        self._require_absent_or(attribute, "=", value)

    @overload
    def require_absent_or_other(self, attribute: ItemAttribute[V], value: V) -> None: ...
    @overload
    def require_absent_or_other(self, attribute: MapEntry, value: str) -> None: ...
    def require_absent_or_other(self, attribute: AttributePath, value: Any) -> None:
        self._require_absent_or(attribute, "<>", value)

    def require_fewer_members(self, attribute: TextSetAttribute, count: int) -> None:
        """Adds the condition that a set attribute has less than ``count`` members. An item without
        the attribute meets it."""
        path = self._path(attribute)
        size = self._placeholder(number(count))
        self._conditions.append(f"(attribute_not_exists({path}) OR size({path})<{size})")

    def require_absent_or_greater(self, attribute: ItemAttribute[V], value: V) -> None:
        self._require_absent_or(attribute, ">", value)

    def _require_absent_or(self, attribute: AttributePath, comparison: str, value: Any) -> None:
        path = self._path(attribute)
        compared = f"{path}{comparison}{self._value(attribute, value)}"
        self._conditions.append(f"(attribute_not_exists({path}) OR {compared})")

    def fits(self) -> bool:
        """Returns whether the expressions are certainly within DynamoDB's limits: 4 KB each and 300
        operators, which are overestimated here."""
        condition = " AND ".join(self._conditions)
        return (
            len(self._update_expression()) <= MAX_EXPRESSION_BYTES
            and len(condition) <= MAX_EXPRESSION_BYTES
            and sum(map(len, (self._set, self._remove, self._add, self._delete))) < MAX_OPERATORS
            and len(self._conditions) * 4 < MAX_OPERATORS
        )

    def parameters(self) -> Raw:
        """Returns the expression parameters for UpdateItem, or for an Update in a transaction."""
        parameters: Raw = self.condition_parameters()
        expression = self._update_expression()
        if expression:
            parameters["UpdateExpression"] = expression
        return parameters

    def condition_parameters(self) -> Raw:
        parameters: Raw = {}
        if self._conditions:
            parameters["ConditionExpression"] = " AND ".join(self._conditions)
        if self._names:
            parameters["ExpressionAttributeNames"] = {p: n for n, p in self._names.items()}
        if self._values:
            parameters["ExpressionAttributeValues"] = self._values
        return parameters

    def _update_expression(self) -> str:
        clauses = []
        if self._set:
            clauses.append("SET " + ",".join(self._set))
        if self._remove:
            clauses.append("REMOVE " + ",".join(self._remove))
        if self._add:
            clauses.append("ADD " + ",".join(self._add))
        if self._delete:
            clauses.append("DELETE " + ",".join(self._delete))
        return " ".join(clauses)

    def _path(self, attribute_path: AttributePath) -> str:
        if isinstance(attribute_path, tuple):
            attribute, key = attribute_path
            return f"{self._path(attribute)}.{self._name(key)}"
        return self._name(attribute_path.attr_name)

    def _name(self, name: str) -> str:
        placeholder = self._names.get(name)
        if placeholder is None:
            placeholder = self._names[name] = f"#{len(self._names)}"
        return placeholder

    def _value(self, attribute: AttributePath, value: Any) -> str:
        return self._placeholder(self._raw(attribute, value))

    @staticmethod
    def _raw(attribute: AttributePath, value: Any) -> Raw:
        if isinstance(attribute, ItemAttribute):
            return attribute.raw(value)
        return flag(value) if isinstance(value, bool) else string(value)

    def _placeholder(self, raw: Raw) -> str:
        placeholder = f":{len(self._values)}"
        self._values[placeholder] = raw
        return placeholder


class ConditionExpression(Update):
    """The condition of a PutItem, DeleteItem or ConditionCheck, as an expression with
    placeholders."""
