"""Requests to the catalog as its rules take them: the generation that a request is about, and the
page that it asks for."""

from __future__ import annotations

import base64
import binascii
import contextlib
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from catalog import generation
from catalog.generation import Generation, Gone
from mlcore.errors import TemporarilyUnavailable
from mlcore.http import Request, Response, Sent
from mlcore.http.kubeflow import Answer, Versions, arguments, check_path
from mlcore.kubeflow import body
from mlcore.kubeflow.errors import bad

T = TypeVar("T")

MODELS: Final = "/api/model_catalog"
SERVERS: Final = "/api/mcp_catalog"
OLD: Final = "v1alpha1"
V1: Final = "v1"

VERSIONS: Final = Versions({f"{api}/{OLD}": f"{api}/{V1}" for api in (MODELS, SERVERS)})
MANNER: Final = VERSIONS.manner()

_FLAGS: Final = {
    **dict.fromkeys(("true", "True", "TRUE", "t", "T", "1"), True),
    **dict.fromkeys(("false", "False", "FALSE", "f", "F", "0"), False),
}
"""The spellings of truth values that Go reads, in which the API's own server is written."""

PAGE_SIZE: Final = 10
_MAX_TOKEN: Final = 1024
_ATTEMPTS: Final = 5
_RESPONSE_BYTES: Final = 3_500_000
"""About as much JSON as a page may have: a Lambda response ends at 6 MB. A token leads on."""


class Asked(NamedTuple):
    """A parsed request to the catalog."""

    pairs: tuple[tuple[str, str], ...]
    """The arguments of the query, in order."""
    arguments: dict[str, str]
    """Without those that are empty; of one that is repeated, the first."""
    parameters: Mapping[str, str]
    """The variables of the path."""
    name: str = ""
    """What the registered model is to be called; empty where the request does not say it."""
    version_name: str = ""


def parse(sent: Sent) -> Asked:
    """Raises InvalidParameterValue."""
    check_path(sent)
    return Asked(tuple(sent.pairs()), arguments(sent), sent.parameters)


class Call(NamedTuple):
    asked: Asked
    request: Request

    @property
    def workspace(self) -> str:
        return self.request.workspace

    def arguments(self) -> dict[str, str]:
        """The query, without what is empty."""
        return self.asked.arguments

    def repeated(self, *names: str) -> list[str]:
        """The values of arguments that may come more than once, or with commas between them."""
        found = [value for name, value in self.asked.pairs if value and name in names]
        body.check_text(found)
        return [each.strip() for value in found for each in value.split(",") if each.strip()]

    def flag(self, name: str) -> bool:
        """Raises InvalidParameterValue."""
        text = self.arguments().get(name, "false")
        if text not in _FLAGS:
            raise bad(f"invalid {name}: must be true or false")
        return _FLAGS[text]

    def number(self, name: str, least: int, most: int) -> int | None:
        """Raises InvalidParameterValue."""
        text = self.arguments().get(name)
        if text is None:
            return None
        digits = text.removeprefix("-").removeprefix("+")
        if not (digits.isascii() and digits.isdecimal()) or len(digits) > 10:
            raise bad(f"invalid {name}: {text[:50]!r} is no integer")
        if not least <= int(text) <= most:
            raise bad(f"invalid {name}: must be from {least} to {most}")
        return int(text)

    def current(self) -> Generation:
        """What is read now. One round trip."""
        return generation.current()

    def reading(self) -> tuple[Generation, Position | None]:
        """The generation that a page is of: that of the page before, as long as it can be read.
        Raises InvalidParameterValue."""
        after = _position(self.arguments().get("nextPageToken", ""))
        if after is None:
            return generation.current(), None
        return generation.of(after.generation) or generation.current(), after

    def parameter(self, name: str) -> str:
        return self.asked.parameters.get(name, "")


class Position(NamedTuple):
    """What a page comes after."""

    generation: str
    offset: int
    last: int
    """The id of what came last; 0 where there is none."""


Function = Callable[[Call], Answer]


def answering(function: Function) -> Callable[[Any, Request], Response]:
    @functools.wraps(function)
    def answer(asked: Asked, request: Request) -> Answer:
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(Gone):
                return function(Call(asked, request))
        raise TemporarilyUnavailable("The catalog is being loaded. Try again.")

    return VERSIONS.answering(answer)


def page(
    call: Call,
    items: Sequence[T],
    shown: Callable[[Sequence[T]], list[dict[str, Any]]],
    read: Generation,
    after: Position | None,
    *,
    identity: Callable[[T], int] = lambda _: 0,
    weigh: Callable[[T], int] = lambda _: 0,
) -> dict[str, Any]:
    """A page of what a request asks for, all of which is given, in order.

    Args:
        identity: the id of an item, by which a walk goes on that has lost its generation.
        weigh: about how many bytes of JSON an item is shown as, where that is known before.
    """
    size = call.number("pageSize", 1, 2**31 - 1) or PAGE_SIZE
    begin = _begin(items, read, after, identity)
    listed = items[begin : begin + size]
    found = _fitting(shown(_fitting(listed, weigh)), lambda one: len(json.dumps(one)))
    end = begin + len(found)
    token = ""
    if end < len(items):
        token = _token(Position(read.id, end, identity(items[end - 1])))
    return {"items": found, "nextPageToken": token, "pageSize": size, "size": len(found)}


def _fitting(items: Sequence[T], weigh: Callable[[T], int]) -> Sequence[T]:
    """As many as one answer has room for, at least one."""
    weight = 0
    for at, item in enumerate(items):
        weight += weigh(item)
        if at and weight > _RESPONSE_BYTES:
            return items[:at]
    return items


def _begin(
    items: Sequence[T], read: Generation, after: Position | None, identity: Callable[[T], int]
) -> int:
    if after is None:
        return 0
    if after.generation == read.id:
        return after.offset
    for at, item in enumerate(items):
        if after.last and identity(item) == after.last:
            return at + 1
    raise bad("invalid nextPageToken: the catalog was loaded anew since; begin with the first page")


def _token(position: Position) -> str:
    text = f"{position.generation}:{position.offset}:{position.last}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _position(text: str) -> Position | None:
    if not text:
        return None
    if len(text) > _MAX_TOKEN:
        raise bad("invalid nextPageToken: too long")
    try:
        padded = text + "=" * (-len(text) % 4)
        parts = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii").split(":")
    except (binascii.Error, ValueError):
        raise bad("invalid nextPageToken: no Base64") from None
    if len(parts) != 3 or not all(part.isdecimal() and len(part) < 12 for part in parts[1:]):
        raise bad("invalid nextPageToken: invalid format")
    return Position(parts[0], int(parts[1]), int(parts[2]))


def descending(arguments: Mapping[str, str]) -> bool:
    """Raises InvalidParameterValue."""
    order = arguments.get("sortOrder", "ASC").upper()
    if order not in ("ASC", "DESC"):
        raise bad(f"unsupported sort order field: {order[:50]}")
    return order == "DESC"
