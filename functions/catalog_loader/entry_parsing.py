"""Converts the parsed YAML file of a model catalog's source to entries: models with their
artifacts, MCP servers with their tools."""

from __future__ import annotations

import json
import math
from typing import Any, Final
from urllib.parse import urlsplit

from catalog_loader import field_checks, licenses
from catalog_loader.field_checks import Check, InvalidField
from mlcore.catalog.entry import MODEL, SERVER, CatalogEntry, number_of
from mlcore.kubeflow.custom_properties import BOOL, DOUBLE, INT, MEMBER, STRING, STRUCT

MAX_ENTRIES: Final = 100_000
"""The largest number of models or servers in a source."""
MAX_ARTIFACTS: Final = 500_000
"""The largest number of artifacts of all models in a source."""

SCHEMES: Final = ("oci", "http", "https", "s3", "gs", "az", "file", "hf")
MODEL_ARTIFACT: Final = "model-artifact"
METRICS_ARTIFACT: Final = "metrics-artifact"
PERFORMANCE: Final = "performance-metrics"
ACCURACY: Final = "accuracy-metrics"
READ_ONLY: Final = "read_only"

_INT32: Final = 2**31

Properties = dict[str, tuple[str, Any]]


def models(source: str, data: Any) -> list[CatalogEntry]:
    """Returns the models in the YAML file of a model catalog source. Raises InvalidField.

    Args:
        source: the source's key.
        data: the parsed YAML.
    """
    read = field_checks.read_mapping(
        "models file", data or {}, {"source": field_checks.text, "models": _listed}
    )
    artifacts = 0
    entries = []
    for index, model in enumerate(read.get("models", ())):
        entry = _model(source, f"models[{index}]", model)
        artifacts += len(entry.children)
        if artifacts > MAX_ARTIFACTS:
            raise InvalidField(f"more than {MAX_ARTIFACTS} artifacts")
        entries.append(entry)
    return _check_distinct("model", entries)


def servers(source: str, data: Any) -> list[CatalogEntry]:
    """Returns the MCP servers in the YAML file of a catalog source. Raises InvalidField."""
    checks = {"source": field_checks.text, "mcp_servers": _listed}
    read = field_checks.read_mapping("MCP servers file", data or {}, checks)
    listed = read.get("mcp_servers", ())
    return _check_distinct(
        "MCP server",
        [_server(source, f"mcp_servers[{index}]", data) for index, data in enumerate(listed)],
    )


def _listed(where: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidField(f"{where}: must be a list")
    if len(value) > MAX_ENTRIES:
        raise InvalidField(f"{where}: more than {MAX_ENTRIES}")
    return value


def _check_distinct(noun: str, entries: list[CatalogEntry]) -> list[CatalogEntry]:
    """Returns the entries. Raises InvalidField if two have the same name and version."""
    names = set()
    for entry in entries:
        name = (entry.name, entry.fields.get("version"))
        if name in names:
            raise InvalidField(f"duplicate {noun} {entry.name!r}")
        names.add(name)
    return entries


# ------------------------------------------------------------------ models


def _model(source: str, where: str, data: Any) -> CatalogEntry:
    read = field_checks.read_mapping(where, data, _MODEL, ("name",), None)
    name = read.pop("name")
    artifacts = read.pop("artifacts", ())
    first = 1 + number_of(source, MODEL, name, "artifacts") % (10**9 - 1 - MAX_ARTIFACTS)
    children = tuple(
        _artifact(source, first, index, f"{where}.artifacts[{index}]", artifact)
        for index, artifact in enumerate(artifacts)
    )
    return _entry(MODEL, source, number_of(source, MODEL, name), name, read, children)


def _artifact(source: str, first: int, index: int, where: str, data: Any) -> CatalogEntry:
    """Parses one artifact of a model. Raises InvalidField.

    Args:
        first: the id of the model's first artifact; ids ascend in the order of the file.
        index: the artifact's index in the model's list.
        where: the artifact's place in the file, for error messages.
    """
    kind = data.get("artifactType", MODEL_ARTIFACT) if isinstance(data, dict) else None
    checks = _ARTIFACTS.get(kind) if isinstance(kind, str) else None
    if checks is None:
        raise InvalidField(f"{where}.artifactType: must be one of {', '.join(_ARTIFACTS)}")
    needed = ("uri",) if kind == MODEL_ARTIFACT else ("metricsType",)
    read = field_checks.read_mapping(where, data, checks, needed, None)
    read["artifactType"] = kind
    name = read.pop("name", None) or f"{read.get('metricsType', kind)}-{index + 1}"
    return _entry(MODEL, source, first + index, name, read)


def _entry(
    kind: str,
    source: str,
    number: int,
    name: str,
    read: dict[str, Any],
    children: tuple[CatalogEntry, ...] = (),
) -> CatalogEntry:
    properties: Properties = read.pop("customProperties", {})
    return CatalogEntry(
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
    uri = field_checks.text(where, value)
    try:
        scheme = urlsplit(uri).scheme
    except ValueError:
        scheme = ""
    if scheme not in SCHEMES or len(uri) > 4096:
        raise InvalidField(f"{where}: must be a URI of one of the schemes {', '.join(SCHEMES)}")
    return uri


def _properties(where: str, value: Any) -> Properties:
    properties: Properties = {}
    for name, data in field_checks.mapping(where, value).items():
        if not name or len(name) > field_checks.MAX_TEXT:
            raise InvalidField(
                f"{where}: the name of a property has 1 to {field_checks.MAX_TEXT} characters"
            )
        if data is not None:
            properties[name] = _property(f"{where}.{name}", data)
    return properties


def _property(where: str, data: Any) -> tuple[str, Any]:
    """Returns the type and the value of a custom property. A mapping without ``metadataType`` has
    the type of its member, such as ``int_value``; any other value has its type in YAML. Raises
    InvalidField."""
    if not isinstance(data, dict):
        return _untyped(where, data)
    kind = data.get("metadataType")
    if kind is None:
        kind = next((each for each, member in MEMBER.items() if member in data), None)
    member = MEMBER.get(kind) if isinstance(kind, str) else None
    if kind is None or member is None:
        raise InvalidField(f"{where}: metadataType must be one of {', '.join(MEMBER)}")
    return member, _typed(f"{where}.{member}", kind, data.get(member))


def _untyped(where: str, data: Any) -> tuple[str, Any]:
    if isinstance(data, bool):
        return MEMBER[BOOL], data
    if isinstance(data, int):
        return MEMBER[INT], _typed(where, INT, data)
    if isinstance(data, float):
        return MEMBER[DOUBLE], data
    return MEMBER[STRING], field_checks.text(where, data)


def _typed(where: str, kind: str, value: Any) -> Any:
    if kind == STRING:
        return "" if value is None else field_checks.text(where, value)
    if kind == BOOL:
        return field_checks.flag(where, value)
    if kind == STRUCT:
        return value if isinstance(value, str) else json.dumps(value)
    try:
        number = int(value) if kind == INT and not isinstance(value, float) else float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidField(f"{where}: must be a number") from None
    if kind == INT:
        if isinstance(value, bool) or number != int(number) or not -_INT32 <= number < _INT32:
            raise InvalidField(f"{where}: must be a 32-bit integer")
        return int(number)
    if not math.isfinite(number):
        raise InvalidField(f"{where}: must be a finite number")
    return number


# ------------------------------------------------------------------ MCP servers


def _server(source: str, where: str, data: Any) -> CatalogEntry:
    read = field_checks.read_mapping(where, data, _SERVER, ("name",), field_checks.anything)
    for field in _COMPUTED_FIELDS:
        read.pop(field, None)
    name = read.pop("name")
    tools = read.pop("tools", ())
    number = number_of(source, SERVER, name, read.get("version", ""))
    children = []
    for index, data_of_tool in enumerate(tools):
        tool = field_checks.read_mapping(
            f"{where}.tools[{index}]", data_of_tool, _TOOL, ("name",), None
        )
        title = tool.pop("name")
        tool["accessType"] = tool.get("accessType") or READ_ONLY  # required in responses
        children.append(_entry(SERVER, source, number_of(str(number), title), title, tool))
    if len({tool.name for tool in children}) != len(children):
        raise InvalidField(f"{where}.tools: two have the same name")
    return _entry(SERVER, source, number, name, read, tuple(children))


def _parameters(where: str, value: Any) -> Any:
    if not isinstance(value, list | dict):
        raise InvalidField(f"{where}: must be a list or a mapping")
    return value


def _tools(where: str, value: Any) -> list[Any]:
    tools: list[Any] = field_checks.each(field_checks.anything)(where, value)
    return tools


_COMPUTED_FIELDS: Final = ("id", "source_id", "toolCount")
"""Fields that the catalog computes; a file's values for them are ignored."""
_TIMES: Final = ("createTimeSinceEpoch", "lastUpdateTimeSinceEpoch")
_COMMON: Final[dict[str, Check]] = {
    "name": field_checks.name,
    "description": field_checks.text,
    "externalId": field_checks.text,
    **dict.fromkeys(_TIMES, field_checks.milliseconds),
    "customProperties": _properties,
}
_MODEL: Final[dict[str, Check]] = {
    **_COMMON,
    "displayName": field_checks.text,
    "readme": field_checks.text,
    "maturity": field_checks.text,
    "provider": field_checks.text,
    "logo": field_checks.text,
    "license": licenses.license_name,
    "licenseLink": field_checks.text,
    "libraryName": field_checks.text,
    "language": field_checks.texts,
    "tasks": field_checks.texts,
    "artifacts": _tools,
}
_ARTIFACTS: Final[dict[str, dict[str, Check]]] = {
    MODEL_ARTIFACT: {**_COMMON, "artifactType": field_checks.text, "uri": _uri},
    METRICS_ARTIFACT: {
        **_COMMON,
        "artifactType": field_checks.text,
        "metricsType": field_checks.one_of(PERFORMANCE, ACCURACY),
    },
}
_TOOL: Final[dict[str, Check]] = {
    "name": field_checks.name,
    "description": field_checks.text,
    "externalId": field_checks.text,
    "accessType": field_checks.text,
    "parameters": _parameters,
    "revoked": field_checks.flag,
    "revokedReason": field_checks.text,
    "customProperties": _properties,
}
_SERVER: Final[dict[str, Check]] = {
    **_COMMON,
    "displayName": field_checks.text,
    "provider": field_checks.text,
    "version": field_checks.text,
    "logo": field_checks.text,
    "license": licenses.license_name,
    "licenseLink": field_checks.text,
    "license_link": field_checks.text,
    "readme": field_checks.text,
    "documentationUrl": field_checks.text,
    "repositoryUrl": field_checks.text,
    "sourceCode": field_checks.text,
    "publishedDate": field_checks.text,
    "lastUpdated": field_checks.text,
    "deploymentMode": field_checks.one_of("local", "remote"),
    "transports": field_checks.texts,
    "tags": field_checks.texts,
    "endpoints": field_checks.mapping,
    "securityIndicators": field_checks.mapping,
    "runtimeMetadata": field_checks.mapping,
    "artifacts": _tools,
    "tools": _tools,
}
