"""The store behind the interface of boto3's client of DynamoDB, for tests that look at a table."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from typing import Any

from local.store.store import Store

_INPUT, _OUTPUT = "ExclusiveStartKey", "LastEvaluatedKey"


class StoreClient:
    """``client.get_item(…)`` calls GetItem. Values of the type B are bytes, as boto3's are."""

    def __init__(self, endpoint: str) -> None:
        self._store = Store(endpoint)

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        operation = re.sub(r"(?:^|_)(\w)", lambda match: match[1].upper(), name)

        def call(**parameters: Any) -> dict[str, Any]:
            answer: dict[str, Any] = _with_bytes(self._store.call(operation, parameters))
            return answer

        return call

    def get_paginator(self, name: str) -> _Paginator:
        return _Paginator(getattr(self, name))

    def close(self) -> None:
        self._store.close()


class _Paginator:
    def __init__(self, call: Callable[..., dict[str, Any]]) -> None:
        self._call = call

    def paginate(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        while True:
            page = self._call(**parameters)
            yield page
            if _OUTPUT not in page:
                return
            parameters[_INPUT] = page[_OUTPUT]


def _with_bytes(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_bytes(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and isinstance(value.get("S", value.get("N")), str):
        return value  # most values; the answer is nobody else's
    if value.keys() == {"B"} and isinstance(value["B"], str):
        return {"B": base64.b64decode(value["B"])}
    return {name: _with_bytes(inner) for name, inner in value.items()}
