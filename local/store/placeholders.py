"""Checks that the expressions of a DynamoDB request use exactly the placeholders it defines."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from local.store.attribute_values import Raw, checked_values
from local.store.condition_validation import Given
from local.store.conditions import compiled_condition
from local.store.errors import invalid


class Placeholders:
    """The placeholders (``#name``, ``:value``) of a DynamoDB request: ``names`` and ``values`` by
    placeholder. The caller reports each expression of the request by :meth:`use`; then
    :meth:`check_unused` checks that every placeholder was used.
    """

    __slots__ = ("_used_names", "_used_values", "names", "values")

    def __init__(self, request: Raw) -> None:
        """Takes the placeholders of a request, or of one operation of a transaction.

        Raises:
            ClientError: a value is invalid, or a map of placeholders is empty.
        """
        names = request.get("ExpressionAttributeNames")
        values = request.get("ExpressionAttributeValues")
        for parameter, given in (
            ("ExpressionAttributeNames", names),
            ("ExpressionAttributeValues", values),
        ):
            if given == {}:
                raise invalid(f"{parameter} must not be empty")
        self.names: Given = names or {}
        self.values: Given = checked_values(values)[0] if values else {}
        self._used_names: set[str] = set()
        self._used_values: set[str] = set()

    def use(self, parameter: str, names: Collection[str], values: Collection[str]) -> None:
        """Records that the expression in ``parameter`` uses these placeholders.

        Raises:
            ClientError: the request does not define one of them.
        """
        for name in names:
            if name not in self.names:
                raise invalid(
                    f"Invalid {parameter}: An expression attribute name used in the document path "
                    f"is not defined; attribute name: {name}"
                )
        for value in values:
            if value not in self.values:
                raise invalid(
                    f"Invalid {parameter}: An expression attribute value used in expression is "
                    f"not defined; attribute value: {value}"
                )
        self._used_names.update(names)
        self._used_values.update(values)

    def check_unused(self) -> None:
        """Raises ClientError if the request defines a placeholder that no expression uses."""
        if not self.names and not self.values:
            return
        for parameter, given, used in (
            ("ExpressionAttributeNames", self.names, self._used_names),
            ("ExpressionAttributeValues", self.values, self._used_values),
        ):
            if len(given) > len(used):
                unused = ", ".join(sorted(given.keys() - used))
                raise invalid(
                    f"Value provided in {parameter} unused in expressions: keys: {{{unused}}}"
                )


class BoundCondition:
    """A condition expression together with the values of its placeholders, ready to be evaluated on
    items."""

    __slots__ = ("_holds", "_paths", "_placeholders")

    def __init__(self, parameter: str, text: str, given: Placeholders) -> None:
        """Compiles the condition in ``text``; raises ClientError if it or one of its placeholders
        is invalid.
        """
        compiled = compiled_condition(parameter, text)
        given.use(parameter, compiled.names, compiled.values)
        for check in compiled.checks:
            check(parameter, given.names, given.values)
        self._holds = compiled.holds
        self._paths = compiled.paths
        self._placeholders = given

    @property
    def attributes(self) -> set[str]:
        """The names of the item attributes that the condition reads."""
        names = self._placeholders.names
        return {str(names.get(path[0], path[0])) for path in self._paths}

    def holds(self, item: Raw | None) -> bool:
        """Returns whether the condition is true for an item; None stands for an item that does not
        exist.
        """
        given = self._placeholders
        return self._holds(item or {}, given.names, given.values)


def bound_condition(request: Raw, parameter: str, given: Placeholders) -> BoundCondition | None:
    """Returns the condition in a parameter of a DynamoDB request, such as ``FilterExpression``;
    None if the request lacks the parameter."""
    text: Any = request.get(parameter)
    return None if text is None else BoundCondition(parameter, text, given)
