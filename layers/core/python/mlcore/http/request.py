"""From an API Gateway event to what a service function takes: its message and its request."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from urllib.parse import parse_qsl

from mlcore import errors
from mlcore.auth.requirements import Reader, everything
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.environment import AUTHENTICATION, IAM, workspaces_enabled
from mlcore.wire import Message
from mlcore.wire.message import fields_of
from mlcore.wire.parameters import Parameters

if TYPE_CHECKING:
    from mlcore.wire.json_body import JsonBody

_WORKSPACE_HEADER: Final = "x-mlflow-workspace"

Event = Mapping[str, Any]


class Request(NamedTuple):
    """What a service function may need beyond its message."""

    headers: Mapping[str, str]
    """Names in lower case."""
    workspace: str
    request_id: str
    method: str = "GET"
    path: str = "/"
    """Percent-decoded, as API Gateway passes it."""
    parameters: Mapping[str, str] = MappingProxyType({})
    """The values of the path's variables."""
    event: Event = MappingProxyType({})
    access: Any = None
    """The caller, a :class:`mlcore.policies.access.Access`; None where nobody needs to log in."""

    def caller(self) -> Any:
        """The caller of an RPC that exists only where callers log in. Raises EndpointNotFound."""
        if self.access is None:
            raise errors.EndpointNotFound(f"No endpoint has the path {self.path}.")
        return self.access

    def username(self) -> str | None:
        """Who calls; None where nobody needs to log in."""
        return None if self.access is None else str(self.access.username)

    def may_read(self, resource_type: str) -> Reader:
        """Which resources of a type the caller sees in a list."""
        reader: Reader = everything if self.access is None else self.access.lists(resource_type)
        return reader

    def granting(self, resource_type: str, resource_id: str) -> list[Any]:
        """What lets the caller manage what the request makes, to be written with it."""
        return [] if self.access is None else list(self.access.granting(resource_type, resource_id))

    def moving_grants(self, name: str, new_name: str | None) -> list[Any]:
        """What takes the grants on a model along with its new name, or away with the model; to be
        written with that."""
        return [] if self.access is None else list(self.access.moving_grants(name, new_name))

    def leaving_grants(self, resource_type: str, resource_id: str) -> list[Any]:
        """What takes the grants on a resource that is deleted; to be written with that."""
        if self.access is None:
            return []
        return list(self.access.leaving_grants(resource_type, resource_id))

    def is_signed(self) -> bool:
        """Whether the headers carry a signature for AWS, which nobody else must get."""
        return os.environ.get(AUTHENTICATION) == IAM and not self.is_signed_by_query()

    def is_signed_by_query(self) -> bool:
        """Whether the URL carries the signature for AWS."""
        return "X-Amz-Signature=" in (self.event.get("rawQueryString") or "")

    def arguments(self) -> dict[str, str]:
        """The query string; of an argument that is repeated, the first."""
        pairs = parse_qsl(self.event.get("rawQueryString") or "", keep_blank_values=True)
        return dict(reversed(pairs))

    def body(self) -> bytes:
        """The body as it was sent."""
        body: str = self.event.get("body") or ""
        if not self.event.get("isBase64Encoded"):
            return body.encode()
        try:
            return base64.b64decode(body, validate=True)
        except (binascii.Error, ValueError):
            raise errors.InvalidParameterValue("The request body is not Base64.") from None

    def body_is_incomplete(self) -> bool:
        """Whether the body is not what was sent: a front kept it back for its size, or API Gateway
        made text of bytes that are none, because their Content-Type says text."""
        body: str = self.event.get("body") or ""
        if not body:
            return self.headers.get("content-length", "0") != "0"
        return not self.event.get("isBase64Encoded") and "\ufffd" in body


def headers_of(event: Event) -> dict[str, str]:
    """The headers of a request, names in lower case."""
    return {name.lower(): value for name, value in (event.get("headers") or {}).items()}


def workspace_of(headers: Mapping[str, str], path: str = "") -> str:
    """The workspace that a header names; what the server can do is told whatever it says.

    Raises:
        FeatureDisabled: a header names one although MLFLOW_ENABLE_WORKSPACES is not on.
    """
    name = headers.get(_WORKSPACE_HEADER, "").strip()
    if not name or path.rstrip("/").endswith("/mlflow/server-info"):
        return DEFAULT_WORKSPACE
    if not workspaces_enabled():
        raise errors.FeatureDisabled(
            "Workspace APIs are not available: workspaces are not enabled on this server"
        )
    return name


def check_workspace(name: str) -> None:
    """Raises InvalidParameterValue, ResourceDoesNotExist: there is no such workspace."""
    if name == DEFAULT_WORKSPACE:
        return
    from mlcore.limits import workspaces as limits  # noqa: PLC0415 -- few requests name one
    from mlcore.repos.workspaces import workspaces  # noqa: PLC0415

    limits.check_name(name)
    workspaces.check_exists(name)


def decode_request(
    message: type[Message],
    event: Event,
    method: str,
    headers: Mapping[str, str],
    parameters: Mapping[str, str],
) -> Message:
    """The message of a request: from the query string of a GET that has one, else from the body."""
    if issubclass(message, Parameters):
        return _parameters(message, event, method, headers)
    if message.pydantic:
        of_json = cast("type[JsonBody]", message)
        return _json_body(of_json, event, method, headers, parameters)
    if method in ("GET", "HEAD"):
        arguments = _arguments(event)
        if arguments or not event.get("body"):
            arguments.update({name: [value] for name, value in parameters.items()})
            return message.from_query(arguments)
    if method in ("POST", "PUT"):
        _check_content_type(headers)
    try:
        data = _json(_body_text(event))
        if parameters and isinstance(data, dict):
            data.update(parameters)
        return message.decode(data)
    except RecursionError:
        raise errors.InvalidParameterValue("The request body is nested too deeply.") from None


def readable_request(
    message: type[Message], event: Event, method: str, parameters: Mapping[str, str]
) -> Message:
    """What can be read of a request that :func:`decode_request` refuses."""
    data: Any = {}
    if method in ("GET", "HEAD"):
        arguments = _arguments(event)
        for field in fields_of(message):
            if field.name in arguments:
                values = arguments[field.name]
                data[field.name] = values if field.repeated else values[0]
    else:
        with contextlib.suppress(ValueError, RecursionError, errors.InvalidParameterValue):
            data = _json(_body_text(event))
    return message.readable({**data, **parameters} if isinstance(data, dict) else parameters)


def _parameters(
    message: type[Parameters], event: Event, method: str, headers: Mapping[str, str]
) -> Parameters:
    """Unlike protobuf messages these come from the query string of every GET, and of a DELETE that
    carries no JSON; a body that is none is one without parameters."""
    is_json = headers.get("content-type", "").split(";")[0].strip() == "application/json"
    if method in ("GET", "HEAD") or (method == "DELETE" and not is_json):
        return message.from_query(_arguments(event))
    try:
        return message.of(json.loads(_body_text(event)) if is_json else {})
    except (ValueError, RecursionError, errors.InvalidParameterValue):
        return message.of({})


def _json_body(
    message: type[JsonBody],
    event: Event,
    method: str,
    headers: Mapping[str, str],
    parameters: Mapping[str, str],
) -> Message:
    if method in ("GET", "HEAD"):
        return message.of_query(_arguments(event), parameters)
    content_type = headers.get("content-type", "").split(";")[0].strip().lower()
    is_json = content_type.startswith("application/") and content_type.endswith(("/json", "+json"))
    return message.of_body(_body_text(event), is_json, parameters)


def _arguments(event: Event) -> dict[str, list[str]]:
    """The query string, each argument with all its values."""
    arguments: dict[str, list[str]] = {}
    for name, value in parse_qsl(event.get("rawQueryString") or "", keep_blank_values=True):
        arguments.setdefault(name, []).append(value)
    return arguments


def _check_content_type(headers: Mapping[str, str]) -> None:
    content_type = headers.get("content-type")
    if content_type is None:
        raise errors.InvalidParameterValue("Bad Request. Content-Type header is missing.")
    if content_type.split(";")[0] != "application/json":
        raise errors.InvalidParameterValue(
            "Bad Request. Content-Type must be one of ['application/json']."
        )


def _json(body: str) -> Any:
    """The parsed body: {} when it is empty, null, an empty list (what R and PHP write for an empty
    object) or no JSON; JSON inside a JSON string is decoded once more."""
    try:
        data = json.loads(body)
    except ValueError:
        return {}
    if isinstance(data, str):
        try:
            data = json.loads(data)
        except ValueError:
            raise errors.InvalidParameterValue(
                "The request body is a string that holds no JSON."
            ) from None
    return {} if data is None or data == [] else data


def _body_text(event: Event) -> str:
    body: str = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return body
    try:
        return base64.b64decode(body, validate=True).decode()
    except (binascii.Error, ValueError):
        raise errors.InvalidParameterValue("The request body is not UTF-8 text.") from None
