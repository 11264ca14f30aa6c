"""Parses the arguments of requests to the model catalog and builds the requested page. All pages of
one list come from the same generation (the result of one load of the catalog) while that is stored;
after that they come from the newest one, or the page token is refused."""

from __future__ import annotations

import base64
import binascii
import contextlib
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from catalog import generations
from catalog.generations import Generation, PartGone
from mlcore.errors import TemporarilyUnavailable
from mlcore.http import Request, Response, Sent
from mlcore.http.kubeflow_responses import Answer, Versions, arguments, check_path
from mlcore.kubeflow import body
from mlcore.kubeflow.errors import invalid
from mlcore.wire.integer_text import parse_integer

T = TypeVar("T")

MODELS_API: Final = "/api/model_catalog"
SERVERS_API: Final = "/api/mcp_catalog"
V1ALPHA1: Final = "v1alpha1"
V1: Final = "v1"

VERSIONS: Final = Versions(
    {f"{api}/{V1ALPHA1}": f"{api}/{V1}" for api in (MODELS_API, SERVERS_API)}
)
RESPONSE_STYLE: Final = VERSIONS.error_format()

_BOOLEANS: Final = {
    **dict.fromkeys(("true", "True", "TRUE", "t", "T", "1"), True),
    **dict.fromkeys(("false", "False", "FALSE", "f", "F", "0"), False),
}
"""The spellings of booleans that Go accepts: Kubeflow's server is written in Go."""


PAGE_SIZE: Final = 10
_MAX_TOKEN: Final = 1024
_MAX_ATTEMPTS: Final = 5
_RESPONSE_BYTES: Final = 3_500_000
"""About how many bytes of JSON a page may have: a Lambda response has at most 6 MB. A page that
would be larger ends earlier, with a page token."""


class CatalogRequest(NamedTuple):
    """A parsed request to the model catalog or the MCP catalog."""

    pairs: tuple[tuple[str, str], ...]
    """The arguments of the query string, in order, with repetitions."""
    arguments: dict[str, str]
    """The arguments by name, without empty ones; the first of a repeated one."""
    parameters: Mapping[str, str]
    """The variables of the path."""
    name: str = ""
    """The name for the registered model; set for registrations only."""
    version_name: str = ""
    """The name for the model's version; set for registrations only."""


def parse(sent: Sent) -> CatalogRequest:
    """Reads the query parameters and path variables of a request to the model catalog. Raises
    InvalidParameterValue if the path or a parameter holds a NUL, or a parameter holds a lone
    surrogate."""
    check_path(sent)
    return CatalogRequest(tuple(sent.pairs()), arguments(sent), sent.parameters)


class CatalogCall(NamedTuple):
    parsed: CatalogRequest
    request: Request

    @property
    def workspace(self) -> str:
        return self.request.workspace

    def arguments(self) -> dict[str, str]:
        """Returns the URL's query-string arguments by name, without empty ones."""
        return self.parsed.arguments

    def list_argument(self, *names: str) -> list[str]:
        """Returns the values of a query-string argument that may be repeated, or hold several
        values separated by commas.

        Args:
            names: the argument's name, and its other spellings.
        """
        values = [value for name, value in self.parsed.pairs if value and name in names]
        body.check_text(values)
        return [each.strip() for value in values for each in value.split(",") if each.strip()]

    def flag(self, name: str) -> bool:
        """Returns a boolean argument of the URL's query; False if it is omitted. Raises
        InvalidParameterValue if it is no boolean."""
        text = self.arguments().get(name, "false")
        if text not in _BOOLEANS:
            raise invalid(f"invalid {name}: must be true or false")
        return _BOOLEANS[text]

    def number(self, name: str, least: int, most: int) -> int | None:
        """Returns an integer argument of the query string; None if it is omitted. Raises
        InvalidParameterValue if it is no integer from ``least`` to ``most``."""
        text = self.arguments().get(name)
        if text is None:
            return None
        number = parse_integer(text, digits=10)
        if number is None:
            raise invalid(f"invalid {name}: {text[:50]!r} is not an integer")
        if not least <= number <= most:
            raise invalid(f"invalid {name}: must be from {least} to {most}")
        return number

    def current_generation(self) -> Generation:
        """Returns the newest generation of the model catalog (the result of its last load). One
        round trip."""
        return generations.current()

    def pinned_generation(self) -> tuple[Generation, Position | None]:
        """Returns the generation of the model catalog (the result of one load) to read for this
        request, and the position in the page token. The generation is the one that the token names,
        or the newest if that one is gone or there is no token. The position is None without token.
        Raises InvalidParameterValue for a malformed page token."""
        after = _position(self.arguments().get("nextPageToken", ""))
        if after is None:
            return generations.current(), None
        return generations.by_id(after.generation) or generations.current(), after

    def parameter(self, name: str) -> str:
        return self.parsed.parameters.get(name, "")


class Position(NamedTuple):
    """The content of a page token of the model catalog: where the previous page of a list ended."""

    generation: str
    offset: int
    last: int
    """The id of the last item; 0 for items without ids."""


Function = Callable[[CatalogCall], Answer]


def route_function(function: Function) -> Callable[[Any, Request], Response]:
    """Adapts a function that takes a :class:`CatalogCall` to the signature of route functions. If a
    new load of Kubeflow's catalog deletes the data that the function is reading, the function is
    called again with the new data.

    Raises:
        TemporarilyUnavailable: loads interrupted five attempts in a row.
    """

    @functools.wraps(function)
    def answer(catalog_request: CatalogRequest, request: Request) -> Answer:
        for _ in range(_MAX_ATTEMPTS):
            with contextlib.suppress(PartGone):
                return function(CatalogCall(catalog_request, request))
        raise TemporarilyUnavailable("The catalog is being loaded. Try again.")

    return VERSIONS.answering(answer)


def page(
    call: CatalogCall,
    items: Sequence[T],
    to_json: Callable[[Sequence[T]], list[dict[str, Any]]],
    read: Generation,
    after: Position | None,
    *,
    identity: Callable[[T], int] = lambda _: 0,
    weigh: Callable[[T], int] = lambda _: 0,
) -> dict[str, Any]:
    """Returns one page of a list and, if more items remain, a page token.

    Args:
        items: all items that match, in order.
        to_json: converts the items of a page.
        read: the generation (result of one load of the catalog) from which the items come.
        after: the position in the request's page token; None for the first page.
        identity: returns an item's id. If the catalog was loaded again since the previous page,
            this page begins after that page's last item; if that is gone, the request is refused.
        weigh: estimates the bytes of JSON of an item, so that not too many are converted.
    """
    size = call.number("pageSize", 1, 2**31 - 1) or PAGE_SIZE
    begin = _start_offset(items, read, after, identity)
    chunk = _limit_bytes(items[begin : begin + size], weigh)
    shown = _limit_bytes(to_json(chunk), lambda item: len(json.dumps(item)))
    end = begin + len(shown)
    token = ""
    if end < len(items):
        token = _token(Position(read.id, end, identity(items[end - 1])))
    return {"items": shown, "nextPageToken": token, "pageSize": size, "size": len(shown)}


def _limit_bytes(items: Sequence[T], weigh: Callable[[T], int]) -> Sequence[T]:
    """Returns the first items that fit a response, at least one."""
    weight = 0
    for index, item in enumerate(items):
        weight += weigh(item)
        if index and weight > _RESPONSE_BYTES:
            return items[:index]
    return items


def _start_offset(
    items: Sequence[T], read: Generation, after: Position | None, identity: Callable[[T], int]
) -> int:
    if after is None:
        return 0
    if after.generation == read.id:
        return after.offset
    for index, item in enumerate(items):
        if after.last and identity(item) == after.last:
            return index + 1
    raise invalid(
        "invalid nextPageToken: the catalog was loaded anew since; begin with the first page"
    )


def _token(position: Position) -> str:
    text = f"{position.generation}:{position.offset}:{position.last}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _position(text: str) -> Position | None:
    if not text:
        return None
    if len(text) > _MAX_TOKEN:
        raise invalid("invalid nextPageToken: too long")
    try:
        padded = text + "=" * (-len(text) % 4)
        parts = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii").split(":")
    except (binascii.Error, ValueError):
        raise invalid("invalid nextPageToken: no Base64") from None
    if len(parts) != 3 or not all(part.isdecimal() and len(part) < 12 for part in parts[1:]):
        raise invalid("invalid nextPageToken: invalid format")
    return Position(parts[0], int(parts[1]), int(parts[2]))


def descending(arguments: Mapping[str, str]) -> bool:
    """Whether the request's ``sortOrder`` is ``DESC``. Raises InvalidParameterValue if it is
    neither that nor ``ASC``."""
    order = arguments.get("sortOrder", "ASC").upper()
    if order not in ("ASC", "DESC"):
        raise invalid(f"unsupported sort order field: {order[:50]}")
    return order == "DESC"
