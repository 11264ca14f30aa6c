"""What the files of a source hold, as entries: models with their artifacts, MCP servers with their
tools."""

from __future__ import annotations

import json
import math
from typing import Any, Final
from urllib.parse import urlsplit

from catalog_loader import fields, licenses
from catalog_loader.fields import Check, Wrong
from mlcore.catalog.entry import MODEL, SERVER, Entry, number_of
from mlcore.kubeflow.properties import BOOL, DOUBLE, INT, MEMBER, STRING, STRUCT

MOST_ENTRIES: Final = 100_000
"""Models or servers of a source."""
MOST_ARTIFACTS: Final = 500_000
"""Of all models of a source."""

SCHEMES: Final = ("oci", "http", "https", "s3", "gs", "az", "file", "hf")
MODEL_ARTIFACT: Final = "model-artifact"
METRICS_ARTIFACT: Final = "metrics-artifact"
PERFORMANCE: Final = "performance-metrics"
ACCURACY: Final = "accuracy-metrics"
READ_ONLY: Final = "read_only"

_INT32: Final = 2**31

Properties = dict[str, tuple[str, Any]]


def models(source: str, data: Any) -> list[Entry]:
    """The models of a file. Raises Wrong."""
    read = fields.read("models file", data or {}, {"source": fields.text, "models": _listed})
    left = [MOST_ARTIFACTS]
    found = []
    for at, one in enumerate(read.get("models", ())):
        entry = _model(source, f"models[{at}]", one)
        left[0] -= len(entry.children)
        if left[0] < 0:
            raise Wrong(f"more than {MOST_ARTIFACTS} artifacts")
        found.append(entry)
    return _distinct("model", found)


def servers(source: str, data: Any) -> list[Entry]:
    """The MCP servers of a file. Raises Wrong."""
    checks = {"source": fields.text, "mcp_servers": _listed}
    read = fields.read("MCP servers file", data or {}, checks)
    listed = read.get("mcp_servers", ())
    return _distinct(
        "MCP server", [_server(source, f"mcp_servers[{at}]", one) for at, one in enumerate(listed)]
    )


def _listed(where: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Wrong(f"{where}: must be a list")
    if len(value) > MOST_ENTRIES:
        raise Wrong(f"{where}: more than {MOST_ENTRIES}")
    return value


def _distinct(noun: str, entries: list[Entry]) -> list[Entry]:
    seen = set()
    for entry in entries:
        place = (entry.name, entry.fields.get("version"))
        if place in seen:
            raise Wrong(f"duplicate {noun} {entry.name!r}")
        seen.add(place)
    return entries


# ------------------------------------------------------------------ models


def _model(source: str, where: str, data: Any) -> Entry:
    read = fields.read(where, data, _MODEL, ("name",), None)
    name = read.pop("name")
    artifacts = read.pop("artifacts", ())
    first = 1 + number_of(source, MODEL, name, "artifacts") % (10**9 - 1 - MOST_ARTIFACTS)
    children = tuple(
        _artifact(source, first, at, f"{where}.artifacts[{at}]", one)
        for at, one in enumerate(artifacts)
    )
    return _entry(MODEL, source, number_of(source, MODEL, name), name, read, children)


def _artifact(source: str, first: int, at: int, where: str, data: Any) -> Entry:
    """Of a model's artifacts, whose ids ascend in the order of its file, the one at a place."""
    kind = data.get("artifactType", MODEL_ARTIFACT) if isinstance(data, dict) else None
    checks = _ARTIFACTS.get(kind) if isinstance(kind, str) else None
    if checks is None:
        raise Wrong(f"{where}.artifactType: must be one of {', '.join(_ARTIFACTS)}")
    needed = ("uri",) if kind == MODEL_ARTIFACT else ("metricsType",)
    read = fields.read(where, data, checks, needed, None)
    read["artifactType"] = kind
    name = read.pop("name", None) or f"{read.get('metricsType', kind)}-{at + 1}"
    return _entry(MODEL, source, first + at, name, read)


def _entry(
    kind: str,
    source: str,
    number: int,
    name: str,
    read: dict[str, Any],
    children: tuple[Entry, ...] = (),
) -> Entry:
    properties: Properties = read.pop("customProperties", {})
    return Entry(
        kind,
        source,
        number,
        name,
        {key: read[key] for key in sorted(read) if key not in _TIMES},
        {key: properties[key][1] for key in sorted(properties)},
        {key: properties[key][0] for key in sorted(properties)},
        read.get("createTimeSinceEpoch"),
        read.get("lastUpdateTimeSinceEpoch"),
        children,
    )


def _uri(where: str, value: Any) -> str:
    found = fields.text(where, value)
    try:
        scheme = urlsplit(found).scheme
    except ValueError:
        scheme = ""
    if scheme not in SCHEMES or len(found) > 4096:
        raise Wrong(f"{where}: must be a URI of one of the schemes {', '.join(SCHEMES)}")
    return found


def _properties(where: str, value: Any) -> Properties:
    found: Properties = {}
    for name, data in fields.mapping(where, value).items():
        if not name or len(name) > fields.MAX_TEXT:
            raise Wrong(f"{where}: the name of a property has 1 to {fields.MAX_TEXT} characters")
        if data is not None:
            found[name] = _property(f"{where}.{name}", data)
    return found


def _property(where: str, data: Any) -> tuple[str, Any]:
    """A typed value; one without its type is what it is."""
    if not isinstance(data, dict):
        return _untyped(where, data)
    kind = data.get("metadataType")
    if kind is None:
        kind = next((each for each, member in MEMBER.items() if member in data), None)
    member = MEMBER.get(kind) if isinstance(kind, str) else None
    if kind is None or member is None:
        raise Wrong(f"{where}: metadataType must be one of {', '.join(MEMBER)}")
    return member, _typed(f"{where}.{member}", kind, data.get(member))


def _untyped(where: str, data: Any) -> tuple[str, Any]:
    if isinstance(data, bool):
        return MEMBER[BOOL], data
    if isinstance(data, int):
        return MEMBER[INT], _typed(where, INT, data)
    if isinstance(data, float):
        return MEMBER[DOUBLE], data
    return MEMBER[STRING], fields.text(where, data)


def _typed(where: str, kind: str, value: Any) -> Any:
    if kind == STRING:
        return "" if value is None else fields.text(where, value)
    if kind == BOOL:
        return fields.flag(where, value)
    if kind == STRUCT:
        return value if isinstance(value, str) else json.dumps(value)
    try:
        number = int(value) if kind == INT and not isinstance(value, float) else float(value)
    except (TypeError, ValueError, OverflowError):
        raise Wrong(f"{where}: must be a number") from None
    if kind == INT:
        if isinstance(value, bool) or number != int(number) or not -_INT32 <= number < _INT32:
            raise Wrong(f"{where}: must be a 32-bit integer")
        return int(number)
    if not math.isfinite(number):
        raise Wrong(f"{where}: must be a finite number")
    return number


# ------------------------------------------------------------------ MCP servers


def _server(source: str, where: str, data: Any) -> Entry:
    read = fields.read(where, data, _SERVER, ("name",), fields.anything)
    for field in _OURS:
        read.pop(field, None)
    name = read.pop("name")
    tools = read.pop("tools", ())
    number = number_of(source, SERVER, name, read.get("version", ""))
    children = []
    for at, one in enumerate(tools):
        tool = fields.read(f"{where}.tools[{at}]", one, _TOOL, ("name",), None)
        title = tool.pop("name")
        tool["accessType"] = tool.get("accessType") or READ_ONLY  # every answer has to name one
        children.append(_entry(SERVER, source, number_of(str(number), title), title, tool))
    if len({tool.name for tool in children}) != len(children):
        raise Wrong(f"{where}.tools: two have the same name")
    return _entry(SERVER, source, number, name, read, tuple(children))


def _parameters(where: str, value: Any) -> Any:
    if not isinstance(value, list | dict):
        raise Wrong(f"{where}: must be a list or a mapping")
    return value


def _tools(where: str, value: Any) -> list[Any]:
    found: list[Any] = fields.each(fields.anything)(where, value)
    return found


_OURS: Final = ("id", "source_id", "toolCount")
"""Fields that no file gives a server."""
_TIMES: Final = ("createTimeSinceEpoch", "lastUpdateTimeSinceEpoch")
_COMMON: Final[dict[str, Check]] = {
    "name": fields.name,
    "description": fields.text,
    "externalId": fields.text,
    **dict.fromkeys(_TIMES, fields.milliseconds),
    "customProperties": _properties,
}
_MODEL: Final[dict[str, Check]] = {
    **_COMMON,
    "displayName": fields.text,
    "readme": fields.text,
    "maturity": fields.text,
    "provider": fields.text,
    "logo": fields.text,
    "license": licenses.shown,
    "licenseLink": fields.text,
    "libraryName": fields.text,
    "language": fields.texts,
    "tasks": fields.texts,
    "artifacts": _tools,
}
_ARTIFACTS: Final[dict[str, dict[str, Check]]] = {
    MODEL_ARTIFACT: {**_COMMON, "artifactType": fields.text, "uri": _uri},
    METRICS_ARTIFACT: {
        **_COMMON,
        "artifactType": fields.text,
        "metricsType": fields.one_of(PERFORMANCE, ACCURACY),
    },
}
_TOOL: Final[dict[str, Check]] = {
    "name": fields.name,
    "description": fields.text,
    "externalId": fields.text,
    "accessType": fields.text,
    "parameters": _parameters,
    "revoked": fields.flag,
    "revokedReason": fields.text,
    "customProperties": _properties,
}
_SERVER: Final[dict[str, Check]] = {
    **_COMMON,
    "displayName": fields.text,
    "provider": fields.text,
    "version": fields.text,
    "logo": fields.text,
    "license": licenses.shown,
    "licenseLink": fields.text,
    "license_link": fields.text,
    "readme": fields.text,
    "documentationUrl": fields.text,
    "repositoryUrl": fields.text,
    "sourceCode": fields.text,
    "publishedDate": fields.text,
    "lastUpdated": fields.text,
    "deploymentMode": fields.one_of("local", "remote"),
    "transports": fields.texts,
    "tags": fields.texts,
    "endpoints": fields.mapping,
    "securityIndicators": fields.mapping,
    "runtimeMetadata": fields.mapping,
    "artifacts": _tools,
    "tools": _tools,
}
