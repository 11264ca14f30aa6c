"""The requests to the MCP registry, with fields in the order of MLflow's FastAPI models."""

from __future__ import annotations

from typing import Any, Final

from mlcore.icons import ICONS
from mlcore.limits.mcp_servers import MAX_TOOLS
from mlcore.wire import json_body as j
from mlcore.wire.json_body import Fields, JsonBody, JsonField

_TEXT: Final = JsonField(j.text)
_REQUIRED: Final = JsonField(j.text, required=True)
_OPTIONAL: Final = JsonField(j.optional(j.text))
_ANY_OBJECT: Final = JsonField(j.optional(j.json_object))


def _without_nulls(read: j.Read) -> j.Read:
    """Returns a reader that drops the null fields of the objects that ``read`` returns."""

    def reader(value: Any, path: j.JsonPath, misfits: j.Misfits) -> Any:
        fields = read(value, path, misfits)
        if not isinstance(fields, dict):
            return fields
        return {key: item for key, item in fields.items() if item is not None}

    return reader


_TOOL: Final = _without_nulls(
    j.object_of(
        {
            "name": _REQUIRED,
            "title": _OPTIONAL,
            "description": _OPTIONAL,
            "inputSchema": _ANY_OBJECT,
            "outputSchema": _ANY_OBJECT,
            "annotations": _ANY_OBJECT,
            "icons": JsonField(ICONS),
            "execution": _ANY_OBJECT,
        }
    )
)
_TOOLS: Final = JsonField(j.optional(j.list_of(_TOOL, MAX_TOOLS)))
_CONNECT_OPTIONS: Final = JsonField(
    j.optional(
        j.map_of(
            j.object_of(
                {"hidden": JsonField(j.boolean)},
                misfit="Input should be a dictionary or an instance of ConnectOptionSettings",
            )
        )
    )
)

_VARIABLE: Final = j.object_of(
    {
        "name": _REQUIRED,
        "description": _OPTIONAL,
        "isRequired": JsonField(j.optional(j.boolean)),
        "isSecret": JsonField(j.optional(j.boolean)),
    },
    extra=True,
)
_PACKAGE: Final = j.object_of(
    {
        "registryType": _REQUIRED,
        "identifier": _REQUIRED,
        "transport": JsonField(j.anything, required=True),
        "registryBaseUrl": _OPTIONAL,
        "version": _OPTIONAL,
        "environmentVariables": JsonField(j.optional(j.list_of(_VARIABLE))),
    },
    extra=True,
)
_REMOTE: Final = j.object_of({"type": _OPTIONAL, "url": _OPTIONAL}, extra=True)
_REPOSITORY: Final = j.object_of(
    {"url": _REQUIRED, "source": _REQUIRED, "id": _OPTIONAL, "subfolder": _OPTIONAL}, extra=True
)
_SERVER_JSON: Final = j.object_of(
    {
        "name": _REQUIRED,
        "version": _REQUIRED,
        "title": _OPTIONAL,
        "description": _OPTIONAL,
        "icons": JsonField(ICONS),
        "packages": JsonField(j.optional(j.list_of(_PACKAGE))),
        "remotes": JsonField(j.optional(j.list_of(_REMOTE))),
        "repository": JsonField(j.optional(_REPOSITORY)),
        "websiteUrl": _OPTIONAL,
        "meta": JsonField(j.optional(j.json_object), key="_meta"),
    },
    extra=True,
)

_PAGE: Final[Fields] = {
    "filter_string": JsonField(j.word),
    "max_results": JsonField(j.whole_number),
    "order_by": JsonField(j.words),
    "page_token": JsonField(j.word),
}


class CreateMCPServer(JsonBody):
    name: str
    description: Any
    icons: Any
    body = {"name": _REQUIRED, "description": _OPTIONAL, "icons": JsonField(ICONS)}


class SearchMCPServers(JsonBody):
    filter_string: str
    max_results: int = 100
    order_by: list[str]
    page_token: str
    query = _PAGE


class GetMCPServer(JsonBody):
    name: str


def _without_latest_version(body: dict[str, Any]) -> dict[str, Any]:
    if "latest_version" in body:
        raise ValueError(
            "latest_version is read-only; it is resolved automatically from semantic-version "
            "ordering"
        )
    return body


class UpdateMCPServer(JsonBody):
    name: str
    display_name: Any
    description: Any
    icons: Any
    before = _without_latest_version
    body = {"display_name": _OPTIONAL, "description": _OPTIONAL, "icons": JsonField(ICONS)}


class DeleteMCPServer(JsonBody):
    name: str


def _unwrapped(body: dict[str, Any]) -> dict[str, Any]:
    """Unwraps a ``server_json`` that has the form of a registry's answer, ``{"server": {…}}``."""
    server_json = body.get("server_json")
    if not isinstance(server_json, dict) or ("name" in server_json and "version" in server_json):
        return body
    if "server" not in server_json:
        return body
    inner = server_json["server"]
    if not isinstance(inner, dict):
        raise ValueError("server_json.server: Input should be a valid dictionary")
    return {**body, "server_json": inner} if "name" in inner and "version" in inner else body


class CreateMCPServerVersion(JsonBody):
    name: str
    server_json: Any
    status: str = "draft"
    source: Any
    tools: Any
    connect_options: Any
    before = _unwrapped
    body = {
        "server_json": JsonField(_SERVER_JSON, required=True),
        "status": _TEXT,
        "source": _OPTIONAL,
        "tools": _TOOLS,
        "connect_options": _CONNECT_OPTIONS,
    }


class SearchMCPServerVersions(JsonBody):
    name: str
    filter_string: str
    max_results: int = 100
    order_by: list[str]
    page_token: str
    query = _PAGE


class GetMCPServerVersion(JsonBody):
    name: str
    version: str


class UpdateMCPServerVersion(JsonBody):
    name: str
    version: str
    status: Any
    tools: Any
    connect_options: Any
    body = {"status": _OPTIONAL, "tools": _TOOLS, "connect_options": _CONNECT_OPTIONS}


class DeleteMCPServerVersion(JsonBody):
    name: str
    version: str


class CreateMCPAccessEndpoint(JsonBody):
    name: str
    server_version: Any
    server_alias: Any
    url: str
    transport_type: str = "streamable-http"
    body = {
        "server_version": _OPTIONAL,
        "server_alias": _OPTIONAL,
        "url": _REQUIRED,
        "transport_type": _TEXT,
    }


_SELECTED: Final[Fields] = {
    **_PAGE,
    "server_version": JsonField(j.word),
    "server_alias": JsonField(j.word),
}


class SearchMCPAccessEndpoints(JsonBody):
    name: Any
    """The server whose endpoints to search; None for all servers."""
    filter_string: str
    max_results: int = 100
    order_by: list[str]
    page_token: str
    server_version: Any
    server_alias: Any
    query = _SELECTED


class GetMCPAccessEndpoint(JsonBody):
    name: str
    endpoint_id: str


class UpdateMCPAccessEndpoint(JsonBody):
    name: str
    endpoint_id: str
    server_version: Any
    server_alias: Any
    url: Any
    transport_type: Any
    body = {
        "server_version": _OPTIONAL,
        "server_alias": _OPTIONAL,
        "url": _OPTIONAL,
        "transport_type": _OPTIONAL,
    }


class DeleteMCPAccessEndpoint(JsonBody):
    name: str
    endpoint_id: str


_TAG: Final[Fields] = {"key": _REQUIRED, "value": _REQUIRED}


class SetMCPServerTag(JsonBody):
    name: str
    key: str
    value: str
    body = _TAG


class DeleteMCPServerTag(JsonBody):
    name: str
    key: str


class SetMCPServerVersionTag(JsonBody):
    name: str
    version: str
    key: str
    value: str
    body = _TAG


class DeleteMCPServerVersionTag(JsonBody):
    name: str
    version: str
    key: str


class SetMCPServerAlias(JsonBody):
    name: str
    alias: str
    version: str
    body = {"alias": _REQUIRED, "version": _REQUIRED}


class GetMCPServerVersionByAlias(JsonBody):
    name: str
    alias: str


class DeleteMCPServerAlias(JsonBody):
    name: str
    alias: str
