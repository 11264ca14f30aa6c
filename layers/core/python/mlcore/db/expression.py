"""Update and condition expressions with their placeholders; knows DynamoDB's limits and no key and
no entity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Raw = dict[str, Any]
"""An attribute value in DynamoDB JSON, such as ``{"S": "x"}``, or an item: attribute name to such
values."""

Path = str | Sequence[str]
"""An attribute, or a place in a map attribute: ``("tags", "my key")``."""

MAX_EXPRESSION_BYTES = 4096
MAX_OPERATORS = 300


def string(value: str) -> Raw:
    return {"S": value}


def number(value: int) -> Raw:
    return {"N": str(value)}


class Update:
    """One UpdateItem: SET, REMOVE and ADD clauses, and conditions that are joined by AND."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: Raw = {}
        self._set: list[str] = []
        self._remove: list[str] = []
        self._add: list[str] = []
        self._conditions: list[str] = []

    def set(self, path: Path, value: Raw) -> None:
        self._set.append(f"{self._path(path)}={self._value(value)}")

    def set_once(self, path: Path, value: Raw) -> None:
        """What is there stays."""
        place = self._path(path)
        self._set.append(f"{place}=if_not_exists({place},{self._value(value)})")

    def remove(self, path: Path) -> None:
        self._remove.append(self._path(path))

    def add(self, attribute: str, amount: int) -> None:
        self._add.append(f"{self._path(attribute)} {self._value(number(amount))}")

    def require_equal(self, path: Path, value: Raw) -> None:
        self._conditions.append(f"{self._path(path)}={self._value(value)}")

    def require_exists(self, path: Path) -> None:
        self._conditions.append(f"attribute_exists({self._path(path)})")

    def require_absent(self, path: Path) -> None:
        self._conditions.append(f"attribute_not_exists({self._path(path)})")

    def require_absent_or_less(self, path: Path, value: Raw) -> None:
        place = self._path(path)
        self._conditions.append(f"(attribute_not_exists({place}) OR {place}<{self._value(value)})")

    def require_absent_or_greater(self, path: Path, value: Raw) -> None:
        place = self._path(path)
        self._conditions.append(f"(attribute_not_exists({place}) OR {place}>{self._value(value)})")

    def require_less(self, path: Path, value: Raw) -> None:
        """There is something, and it is less."""
        self._conditions.append(f"{self._path(path)}<{self._value(value)}")

    def require_absent_or_equal(self, path: Path, value: Raw) -> None:
        place = self._path(path)
        self._conditions.append(f"(attribute_not_exists({place}) OR {place}={self._value(value)})")

    def require_absent_or_other(self, path: Path, value: Raw) -> None:
        place = self._path(path)
        self._conditions.append(f"(attribute_not_exists({place}) OR {place}<>{self._value(value)})")

    def fits(self) -> bool:
        """Whether DynamoDB will take the expressions: 4 KB each, 300 operators (counted
        generously)."""
        condition = " AND ".join(self._conditions)
        return (
            len(self._update_expression()) <= MAX_EXPRESSION_BYTES
            and len(condition) <= MAX_EXPRESSION_BYTES
            and len(self._set) + len(self._remove) + len(self._add) < MAX_OPERATORS
            and len(self._conditions) * 4 < MAX_OPERATORS
        )

    def parameters(self) -> Raw:
        """The expression parameters of UpdateItem, or of an Update, Put, Delete in a
        transaction."""
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
        return " ".join(clauses)

    def _path(self, path: Path) -> str:
        if isinstance(path, str):
            return self._name(path)
        return ".".join(self._name(part) for part in path)

    def _name(self, name: str) -> str:
        placeholder = self._names.get(name)
        if placeholder is None:
            placeholder = self._names[name] = f"#{len(self._names)}"
        return placeholder

    def _value(self, value: Raw) -> str:
        placeholder = f":{len(self._values)}"
        self._values[placeholder] = value
        return placeholder


class Condition(Update):
    """Conditions alone, for PutItem, DeleteItem and ConditionCheck."""
