"""Parses SCIM requests, by which an identity provider manages users and groups."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from mlcore import errors
from mlcore.errors import MlflowError
from mlcore.http import Sent
from mlcore.wire.json_text import load_json
from users.scim.errors import ScimError, invalid_syntax, invalid_value

MAX_COUNT: Final = 200
"""The most resources in one page of a list."""
MAX_OPERATIONS: Final = 1_000
_JSON_TYPES: Final = ("application/scim+json", "application/json")
_PATCH_SCHEMA: Final = "urn:ietf:params:scim:api:messages:2.0:patchop"


class Operation(NamedTuple):
    """One operation of a SCIM request PATCH, which changes a user or group."""

    op: str
    """``add``, ``replace`` or ``remove``."""
    path: str | None
    value: Any


class ScimRequest(NamedTuple):
    """A parsed SCIM request. If the request is not valid, ``problem`` is the error, which is raised
    only after the caller's rights were checked."""

    scim_id: str = ""
    """The id in the path, of a user or group."""
    body: Mapping[str, Any] = {}
    """The resource that was sent, with attribute names as sent."""
    operations: Sequence[Operation] = ()
    """The operations of a PATCH."""
    filter: str = ""
    start: int = 1
    """Position of the first resource of a list; 1 for the first."""
    limit: int = 100
    only: frozenset[str] = frozenset()
    """The attributes that the response shall have, in lower case; empty for all."""
    without: frozenset[str] = frozenset()
    """The attributes that the response shall not have, in lower case."""
    if_match: str = ""
    if_none_match: str = ""
    problem: MlflowError | None = None


def parse(sent: Sent) -> ScimRequest:
    """Parses a SCIM request. An error is not raised but stored in ``problem``."""
    request = ScimRequest(
        sent.parameters.get("scim_id") or sent.parameters.get("group_id", ""),
        if_match=sent.headers.get("if-match", ""),
        if_none_match=sent.headers.get("if-none-match", ""),
    )
    try:
        request = _with_query(request, sent)
        if sent.method in ("POST", "PUT", "PATCH"):
            request = _with_body(request, sent)
    except MlflowError as problem:
        return request._replace(problem=problem)
    return request


def _with_query(request: ScimRequest, sent: Sent) -> ScimRequest:
    arguments: dict[str, str] = {}
    for name, value in sent.pairs():
        if arguments.setdefault(name.lower(), value) != value:
            raise invalid_value(f"The parameter '{name}' occurs twice.")
    return request._replace(
        filter=arguments.get("filter", ""),
        start=max(1, _number(arguments, "startindex", 1)),
        limit=min(MAX_COUNT, max(0, _number(arguments, "count", request.limit))),
        only=_names(arguments.get("attributes", "")),
        without=_names(arguments.get("excludedattributes", "")),
    )


def _number(arguments: Mapping[str, str], name: str, default: int) -> int:
    text = arguments.get(name, "")
    if not text:
        return default
    try:
        if len(text) > _MOST_DIGITS:
            raise ValueError(text)
        return int(text)
    except ValueError:
        raise invalid_value(f"The parameter '{name}' must be an integer.") from None


_MOST_DIGITS: Final = 15


def _names(text: str) -> frozenset[str]:
    """Returns the attribute names of a comma-separated list, without their schema's URN."""
    names = (name.strip().lower().rpartition(":")[2] for name in text.split(","))
    return frozenset(name for name in names if name)


def _with_body(request: ScimRequest, sent: Sent) -> ScimRequest:
    kind = sent.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind not in _JSON_TYPES:
        raise ScimError(415, f"The Content-Type must be {' or '.join(_JSON_TYPES)}.")
    body = _json(sent)
    if sent.method != "PATCH":
        return request._replace(body=body)
    fields = lowered(body)
    schemas = fields.get("schemas")
    if not isinstance(schemas, list) or _PATCH_SCHEMA not in [
        str(schema).lower() for schema in schemas
    ]:
        raise invalid_syntax("A PATCH needs the schema of a PatchOp message.")
    listed = fields.get("operations")
    if not isinstance(listed, list) or not 0 < len(listed) <= MAX_OPERATIONS:
        raise invalid_syntax(f"A PATCH has a list of 1 to {MAX_OPERATIONS} 'Operations'.")
    return request._replace(operations=tuple(map(_operation, listed)))


def _operation(sent: Any) -> Operation:
    fields = lowered(sent) if isinstance(sent, dict) else {}
    op, path = fields.get("op"), fields.get("path")
    if not isinstance(op, str) or op.lower() not in ("add", "replace", "remove"):
        raise invalid_syntax("The 'op' of an operation must be add, replace or remove.")
    if path is not None and not isinstance(path, str):
        raise ScimError(400, "The 'path' of an operation must be a text.", "invalidPath")
    return Operation(op.lower(), path or None, fields.get("value"))


def lowered(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a copy of a body's object with attribute names in lower case, because names in SCIM
    are not case-sensitive. The parser has refused repeated names."""
    return {name.lower(): value for name, value in sent.items()}


def _json(sent: Sent) -> dict[str, Any]:
    try:
        body = load_json(sent.text(), object_pairs_hook=_object, parse_constant=_no_number)
        json.dumps(body, ensure_ascii=False).encode()
    except ScimError:
        raise
    except (ValueError, RecursionError, errors.InvalidParameterValue):
        # UnicodeEncodeError, a ValueError: half of a surrogate pair
        raise invalid_syntax("The body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise invalid_syntax("The body must be a JSON object.")
    return body


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name.lower() for name, _ in pairs}) < len(pairs):
        raise invalid_syntax("An object of the body has an attribute twice.")
    return dict(pairs)


def _no_number(_text: str) -> Any:
    raise invalid_syntax("The body has a number that is not JSON.")
