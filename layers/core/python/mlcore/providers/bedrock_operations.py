"""Checks requests of Bedrock's own API, which AWS's SDKs send through the proxy: the operation, the
model and the fields that a caller may use.

A forwarded request has the server's own credentials. So an unchecked path could reach every model,
guardrail and job that these credentials allow, and a body could make Bedrock read any of their
objects in S3. Therefore the path itself is not sent on: it must name the endpoint or its model, and
it selects one of few operations. Fields that make Bedrock read or apply anything else are refused.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from mlcore.errors import GatewayCallFailed
from mlcore.providers.anthropic_requests import CALL_TYPES
from mlcore.providers.bedrock_anthropic import foundation_model
from mlcore.providers.proxied import ProxiedRequest
from mlcore.wire.json_text import parse_json_bytes

Json = dict[str, Any]

CONVERSE_STREAM: Final = "converse-stream"
INVOKE_STREAM: Final = "invoke-with-response-stream"
COUNT_TOKENS: Final = "count-tokens"
_OPERATIONS: Final = ("converse", CONVERSE_STREAM, "invoke", INVOKE_STREAM, COUNT_TOKENS)
_PATH: Final = re.compile(r"/*model/(?P<model>.+)/(?P<operation>[^/]+)", re.DOTALL)
_GUARDRAIL_HEADERS: Final = (
    "x-amzn-bedrock-guardrailidentifier",
    "x-amzn-bedrock-guardrailversion",
)
_TIER_HEADER: Final = "x-amzn-bedrock-service-tier"
_LATENCY_HEADER: Final = "x-amzn-bedrock-performanceconfig-latency"
_TIERS: Final = frozenset(("", "default", "flex", "auto", "standard", "standard_only"))
"""Service tiers that cost no more than the model's normal price, by the names of Bedrock and of the
models' vendors; ``priority`` costs more."""
_LATENCIES: Final = frozenset(("", "standard"))
_PRICED: Final = {"servicetier": _TIERS, "performanceconfig": _LATENCIES}
_IN_S3: Final = "s3location"
_URIS: Final = frozenset(("uri", "s3uri"))
"""Names of members whose value Bedrock fetches if it is the address of an object in S3."""
_ANNOTATIONS: Final = frozenset(
    (
        *("description", "title", "$comment", "default", "examples", "enum", "const"),
        *("pattern", "format"),
    )
)
"""Members of a schema that say something about a value. Bedrock fetches nothing that they name."""
_SCHEMA_HOLDERS: Final = frozenset(("response_format", "output_format", "format", "jsonSchema"))
_SCHEMAS: Final = frozenset(("schema", "json_schema"))
"""Members of these holders that are the schema of an answer, in the forms of OpenAI, Cohere,
Anthropic (``output_config.format``) and Converse."""
_METADATA: Final = "requestMetadata"
"""Texts of a request of Converse that are only logged."""
_SEPARATORS: Final = re.compile(r"[\s_-]")
_MAX_DEPTH: Final = 200
_CONTENTS: Final = ("content", "parts")
"""Lists that hold the parts of messages and of tools' results."""
_USES: Final = {
    "toolUse": frozenset(("toolUseId", "name", "input", "type")),
    "functionCall": frozenset(("id", "name", "args")),
}
"""The fields of a tool's call, by the member of a message's part that holds the call."""
_OF_TOOLS: Final = frozenset(
    ("input_schema", "input_examples", "function", "parameters", "parameter_definitions")
)
"""Members of a tool that describe its arguments, in the forms of Anthropic, OpenAI and Cohere."""
_CALLED_WITH: Final = ("function", "parameters")
"""Members of a call in ``tool_calls`` that hold its arguments, in OpenAI's form and Cohere's."""


class _Place(NamedTuple):
    """The position of an object or list in a body. Both fields are None for the body itself."""

    list_name: str | None = None
    """The name of the list with this item, or with the item of which this is a member."""
    member: str | None = None
    """The name of the member that holds it; None for an item of a list."""

    def of_member(self, name: str) -> _Place:
        return _Place(self.list_name if self.member is None else None, name)

    def of_item(self) -> _Place:
        return _Place(self.member)


class _Use(Enum):
    """What Bedrock may do with a value in a body."""

    OTHER = auto()
    LOCATION = auto()
    """It reads the object in S3 that the members of this object name."""
    ADDRESS = auto()
    """It reads the object in S3 that this text names, or a text in this list."""


class Operation(NamedTuple):
    """A request to Amazon Bedrock: an operation's name, a model, extra headers and the body."""

    name: str
    model: str
    headers: tuple[tuple[str, str], ...]
    body: Json


def operation_of(request: ProxiedRequest, headers: Mapping[str, str], model: str) -> Operation:
    """Returns the operation that a proxied request calls.

    Args:
        headers: the caller's headers.
        model: the endpoint's model, the only one that a request may name.

    Raises:
        GatewayCallFailed: the request calls another operation, names another model, or has a field
            or header that is not permitted (403); or its body is no JSON object (400).
    """
    path = _PATH.fullmatch(unquote(request.path.partition("?")[0]))
    if request.method != "POST" or path is None or path["operation"] not in _OPERATIONS:
        raise _refused(
            "Of the operations of Amazon Bedrock, only Converse, ConverseStream, InvokeModel, "
            "InvokeModelWithResponseStream and CountTokens are forwarded."
        )
    name = path["operation"]
    sent_model = foundation_model(model) if name == COUNT_TOKENS else model
    if path["model"] not in (model, sent_model, request.endpoint or model):
        raise _refused("The path must name the endpoint or the endpoint's model.")
    if request.body is None:
        raise GatewayCallFailed(400, "The body must be a JSON object.")
    _check_headers(headers)
    _check_body(name, request.body)
    tier = headers.get(_TIER_HEADER, "").strip()
    more = ((_TIER_HEADER, tier),) if tier and "invoke" in name else ()
    return Operation(name, sent_model, more, request.body)


def _check_headers(headers: Mapping[str, str]) -> None:
    if any(headers.get(name, "").strip() for name in _GUARDRAIL_HEADERS):
        raise _no_guardrail()
    for name, values in ((_TIER_HEADER, _TIERS), (_LATENCY_HEADER, _LATENCIES)):
        if headers.get(name, "") not in values:
            raise _dearer()


def _check_body(operation: str, body: Json) -> None:
    """Checks the body of an operation; for CountTokens also the inner request whose tokens are
    counted."""
    if operation == COUNT_TOKENS:
        counted = body.get("input")
        invoked = counted.get("invokeModel") if isinstance(counted, dict) else None
        if isinstance(invoked, dict) and "body" in invoked:
            _check_files(_decoded(invoked["body"]))
    if any(_folded(name) == "guardrailconfig" for name in body):
        raise _no_guardrail()
    check_invoked(body)


def check_invoked(body: Json) -> None:
    """Checks that a request to Bedrock asks for nothing dearer than the model's normal price (such
    as a faster tier), and names no object in S3, which Bedrock would read with the credentials that
    sign the request. Raises GatewayCallFailed (403), or (400) if it is nested too deeply."""
    for name, value in body.items():
        # Every spelling of a name is checked, because Bedrock or the model may read any of them.
        permitted = _PRICED.get(_folded(name))
        if permitted is None:
            continue
        if not {str(leaf) for leaf in _leaves(value) if leaf is not None} <= permitted:
            raise _dearer()
    _check_files(body)


def _check_files(body: Any) -> None:
    """Raises GatewayCallFailed (403) if a field names an object in S3 that Bedrock would read: an
    address as a URI, or in an ``s3Location``. Texts that only mention such an address, as in a
    description, do not count."""
    pending = [(body, 0, _Place(), _Use.OTHER)]
    while pending:
        part, depth, place, use = pending.pop()
        if depth > _MAX_DEPTH:
            raise GatewayCallFailed(400, "The body is nested too deeply.")
        if isinstance(part, dict):
            for name, member in part.items():
                used = _use_of(name, member, use)
                if used != _Use.OTHER or not _is_data(place, part, name):
                    pending.append((member, depth + 1, place.of_member(name), used))
        elif isinstance(part, list):
            pending += [(member, depth + 1, place.of_item(), use) for member in part]
        elif use == _Use.ADDRESS and str(part).strip().lower().startswith("s3:"):
            raise _refused("Files in S3 are not forwarded: send the bytes of a file.")


def _is_data(place: _Place, part: Json, name: str) -> bool:
    """Whether a member holds data of a tool (the schema of its arguments, the arguments of a call,
    or its result), the schema of an answer, or texts to log. Bedrock does not read files that are
    named there, so a tool may work with objects in S3. Elsewhere the same names are fields of a
    request, such as ``input`` in CountTokens."""
    if place == _Place("tools", "toolSpec"):
        return name == "inputSchema"
    if place in (_Place("tools"), _Place("functions")):
        return name in _OF_TOOLS
    if place.list_name is None and place.member in _SCHEMA_HOLDERS:
        return name in _SCHEMAS
    if place == _Place():
        return name == _METADATA
    if place == _Place("tool_calls"):
        return name in _CALLED_WITH
    if place.member is not None or place.list_name not in _CONTENTS:
        return False
    if name in _USES:
        used = part[name]
        return isinstance(used, dict) and used.keys() <= _USES[name]
    if name == "json":  # in the result of a tool
        return part.keys() <= {"json", "type"}
    return name == "input" and part.get("type") in CALL_TYPES and "id" in part


def _use_of(name: str, value: Any, outer: _Use) -> _Use:
    """Returns the use of a member of an object, whose own use is ``outer``."""
    if outer == _Use.ADDRESS:
        return outer
    folded = _folded(name)
    is_address = folded in _URIS or (outer == _Use.LOCATION and folded not in _ANNOTATIONS)
    if folded == _IN_S3 and isinstance(value, dict):
        return _Use.LOCATION
    if (is_address or folded == _IN_S3) and not isinstance(value, dict):
        return _Use.ADDRESS
    return _Use.OTHER


def _folded(name: str) -> str:
    """Returns a name in lower case without spaces, ``_`` and ``-``, so that all spellings of it are
    equal."""
    return _SEPARATORS.sub("", name).lower()


def _leaves(value: Any) -> list[Any]:
    """Returns the values in a JSON value that are neither objects nor lists."""
    leaves: list[Any] = []
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            pending += part.values()
        elif isinstance(part, list):
            pending += part
        else:
            leaves.append(part)
    return leaves


def _decoded(body: Any) -> Any:
    try:
        return parse_json_bytes(base64.b64decode(body, validate=True), lone_surrogates=True)
    except (TypeError, ValueError):
        raise GatewayCallFailed(400, "The body to count must be JSON in Base64.") from None


def _dearer() -> GatewayCallFailed:
    return _refused("Tiers and latencies that cost more than the model are not forwarded.")


def _no_guardrail() -> GatewayCallFailed:
    return _refused(
        "Guardrails of Amazon Bedrock cannot be named by callers. Guardrails of this server check "
        "the calls of an endpoint."
    )


def _refused(reason: str) -> GatewayCallFailed:
    return GatewayCallFailed(403, reason)
