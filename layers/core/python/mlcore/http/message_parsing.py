"""Parses a raw request into the message of its route: the object with its fields."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from mlcore import errors
from mlcore.http.raw_request import Parse, Sent, SentMessage
from mlcore.wire import Message
from mlcore.wire.json_text import NestedTooDeeply, load_json
from mlcore.wire.message import fields_of
from mlcore.wire.untyped_message import Parameters

if TYPE_CHECKING:
    from mlcore.wire.json_body import JsonBody


def decode_request(message: type[Message], sent: Sent) -> Message:
    """Returns the message of a request, from the query string of a GET that has one, else from the
    body. Path variables replace fields with the same name. Messages of the kinds Parameters
    (without path variables), SentMessage and JsonBody are read in their own ways. Raises
    InvalidParameterValue if the request is not valid."""
    if issubclass(message, Parameters):
        return _parameters(message, sent)
    if issubclass(message, SentMessage):
        return message.of_sent(sent)
    if message.pydantic:
        return _json_body(cast("type[JsonBody]", message), sent)
    if sent.method in ("GET", "HEAD"):
        arguments = sent.query()
        if arguments or not sent.has_body():
            arguments.update({name: [value] for name, value in sent.parameters.items()})
            return message.from_query(arguments)
    if sent.method in ("POST", "PUT"):
        _check_content_type(sent.headers)
    try:
        data = _json(sent)
        if isinstance(data, dict):
            data.update(sent.parameters)
            if message.from_arguments:
                _take_arguments(data, message, sent.arguments())
        return message.decode(data)
    except (NestedTooDeeply, RecursionError):
        raise errors.InvalidParameterValue("The request body is nested too deeply.") from None


def _take_arguments(
    data: dict[str, Any], message: type[Message], arguments: Mapping[str, str]
) -> None:
    for field in fields_of(message):
        if field.name in message.from_arguments:
            data.pop(field.name, None)
            data.pop(field.json_name, None)
            if field.name in arguments:
                data[field.name] = arguments[field.name]


def readable_request(message: type[Message], sent: Sent) -> Message:
    """Returns the message with only the valid fields of a request that :func:`decode_request`
    refuses. Used to decide whether the caller gets 403 instead of the validation error."""
    data: Any = {}
    if sent.method in ("GET", "HEAD"):
        arguments = sent.query()
        for field in fields_of(message):
            if field.name in arguments:
                values = arguments[field.name]
                data[field.name] = values if field.repeated else values[0]
    else:
        with contextlib.suppress(ValueError, errors.InvalidParameterValue):
            data = _json(sent)
    if not isinstance(data, dict):
        return message.readable(sent.parameters)
    for field in fields_of(message):
        if field.name in sent.parameters:
            data.pop(field.json_name, None)  # the path variable replaces it
    return message.readable({**data, **sent.parameters})


def decoded(message: type[Message]) -> Parse:
    """Returns a parser that decodes requests to ``message`` as those of MLflow's RPCs are decoded.
    For routes that make their response themselves."""
    return lambda sent: decode_request(message, sent)


def of_query(message: type[Message]) -> Parse:
    """Returns a parser that makes ``message`` from the query string and the path variables alone;
    of a repeated parameter the first value counts. For routes that make their response themselves.
    """

    def parse(sent: Sent) -> Message:
        arguments = {name: values[:1] for name, values in sent.query().items()}
        arguments.update({name: [value] for name, value in sent.parameters.items()})
        return message.from_query(arguments)

    return parse


def _parameters(message: type[Parameters], sent: Sent) -> Parameters:
    """Returns the parameters of a request: from the query string of a GET, or of a DELETE without
    JSON; else from the JSON body. A request with an invalid body has no parameters."""
    kind = sent.headers.get("content-type", "").split(";")[0].strip()
    is_json = kind == "application/json"
    if sent.method in ("GET", "HEAD") or (sent.method == "DELETE" and not is_json):
        return message.from_query(sent.query())
    try:
        return message.of(load_json(sent.text()) if is_json else {})
    except (ValueError, errors.InvalidParameterValue):
        return message.of({})


def _json_body(message: type[JsonBody], sent: Sent) -> Message:
    if sent.method in ("GET", "HEAD"):
        return message.of_query(sent.query(), sent.parameters)
    kind = sent.headers.get("content-type", "").split(";")[0].strip().lower()
    is_json = kind.startswith("application/") and kind.endswith(("/json", "+json"))
    return message.of_body(sent.text(), is_json, sent.parameters)


def _check_content_type(headers: Mapping[str, str]) -> None:
    content_type = headers.get("content-type")
    if content_type is None:
        raise errors.InvalidParameterValue("Bad Request. Content-Type header is missing.")
    if content_type.split(";")[0] != "application/json":
        raise errors.InvalidParameterValue(
            "Bad Request. Content-Type must be one of ['application/json']."
        )


def _json(sent: Sent) -> Any:
    """Returns the parsed body of a request; {} if it is empty, null, not JSON in UTF-8, or an empty
    list (R and PHP send that for an empty object). A JSON string is parsed once more."""
    try:
        data = load_json(sent.text())
    except NestedTooDeeply:
        raise
    except (ValueError, errors.InvalidParameterValue):
        return {}
    if isinstance(data, str):
        try:
            data = load_json(data)
        except ValueError:
            raise errors.InvalidParameterValue(
                "The request body is a string that holds no JSON."
            ) from None
    return {} if data is None or data == [] else data
