"""The placeholders of a random request."""

from __future__ import annotations

from typing import Any

Raw = dict[str, Any]


class Given:
    """The placeholders of a request while it is made."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: Raw = {}
        self.required: list[str] = []
        """Conditions that the request must have."""

    def name(self, name: str) -> str:
        return self._names.setdefault(name, f"#n{len(self._names)}")

    def value(self, value: Raw) -> str:
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = value
        return placeholder

    def put_into(self, request: Raw) -> None:
        if self._names:
            request["ExpressionAttributeNames"] = {p: n for n, p in self._names.items()}
        if self._values:
            request["ExpressionAttributeValues"] = self._values
