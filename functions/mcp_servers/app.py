"""The routes of the MCP registry: servers, their versions, and the endpoints where they are
reached."""

from __future__ import annotations

from functools import partial

from mcp_servers import endpoints, search, servers, versions
from mcp_servers import messages as m
from mlcore.http import delete, get, lambda_handler, patch, post

_SERVERS = "/mlflow/mcp-servers"
_SERVER = f"{_SERVERS}/{{name+}}"
_VERSION = f"{_SERVER}/versions/{{version+}}"
_ENDPOINT = f"{_SERVER}/endpoints/{{endpoint_id}}"

_get, _post = (partial(verb, version="3.0", since="3.15") for verb in (get, post))
_patch, _delete = (partial(verb, version="3.0", since="3.15") for verb in (patch, delete))

# In MLflow's order: names may contain slashes, so the first path that matches counts.
RPCS = (
    _post(_SERVERS, m.CreateMCPServer, servers.create_mcp_server, "mcp_servers.create", cost=1),
    _get(
        _SERVERS,
        m.SearchMCPServers,
        search.search_mcp_servers,
        "shared_rules.anybody",
        hides="mcp_servers",
        cost=2,
    ),
    _get(
        f"{_SERVERS}/endpoints",
        m.SearchMCPAccessEndpoints,
        search.search_mcp_access_endpoints,
        "mcp_servers.search_endpoints",
        hides="mcp_access_endpoints",
        cost=2,
    ),
    _post(
        f"{_VERSION}/tags",
        m.SetMCPServerVersionTag,
        versions.set_mcp_server_version_tag,
        "mcp_servers.update_version",
        cost=2,
    ),
    _delete(
        f"{_VERSION}/tags/{{key+}}",
        m.DeleteMCPServerVersionTag,
        versions.delete_mcp_server_version_tag,
        "mcp_servers.delete_version",
        cost=2,
    ),
    _get(
        _VERSION,
        m.GetMCPServerVersion,
        versions.get_mcp_server_version,
        "mcp_servers.read_version",
        cost=1,
    ),
    _patch(
        _VERSION,
        m.UpdateMCPServerVersion,
        versions.update_mcp_server_version,
        "mcp_servers.update_version",
        cost=2,
    ),
    _delete(
        _VERSION,
        m.DeleteMCPServerVersion,
        versions.delete_mcp_server_version,
        "mcp_servers.delete_version",
        cost=2,
    ),
    _post(
        f"{_SERVER}/versions",
        m.CreateMCPServerVersion,
        versions.create_mcp_server_version,
        "mcp_servers.create_version",
        cost=2,
    ),
    _get(
        f"{_SERVER}/versions",
        m.SearchMCPServerVersions,
        search.search_mcp_server_versions,
        "mcp_servers.read_version",
        cost=1,
    ),
    _post(
        f"{_SERVER}/endpoints",
        m.CreateMCPAccessEndpoint,
        endpoints.create_mcp_access_endpoint,
        "mcp_servers.update_endpoint",
        hides="mcp_access_endpoint",
        cost=3,
    ),
    _get(
        _ENDPOINT,
        m.GetMCPAccessEndpoint,
        endpoints.get_mcp_access_endpoint,
        "mcp_servers.read",
        hides="mcp_access_endpoint",
        cost=2,
    ),
    _patch(
        _ENDPOINT,
        m.UpdateMCPAccessEndpoint,
        endpoints.update_mcp_access_endpoint,
        "mcp_servers.update_endpoint",
        hides="mcp_access_endpoint",
        cost=3,
        deviation="A change of an endpoint whose MCP server version was deleted gets 404; MLflow's "
        "server answers 500.",
    ),
    _delete(
        _ENDPOINT,
        m.DeleteMCPAccessEndpoint,
        endpoints.delete_mcp_access_endpoint,
        "mcp_servers.delete",
        cost=2,
    ),
    _get(
        f"{_SERVER}/endpoints",
        m.SearchMCPAccessEndpoints,
        search.search_mcp_access_endpoints,
        "mcp_servers.read_endpoints",
        hides="mcp_access_endpoints",
        cost=2,
    ),
    _post(
        f"{_SERVER}/tags",
        m.SetMCPServerTag,
        servers.set_mcp_server_tag,
        "mcp_servers.update",
        cost=2,
    ),
    _delete(
        f"{_SERVER}/tags/{{key+}}",
        m.DeleteMCPServerTag,
        servers.delete_mcp_server_tag,
        "mcp_servers.delete",
        cost=2,
    ),
    _post(
        f"{_SERVER}/aliases",
        m.SetMCPServerAlias,
        servers.set_mcp_server_alias,
        "mcp_servers.update_alias",
        cost=2,
    ),
    _get(
        f"{_SERVER}/aliases/{{alias+}}",
        m.GetMCPServerVersionByAlias,
        versions.get_version_by_alias,
        "mcp_servers.read_version",
        cost=2,
    ),
    _delete(
        f"{_SERVER}/aliases/{{alias+}}",
        m.DeleteMCPServerAlias,
        servers.delete_mcp_server_alias,
        "mcp_servers.delete_alias",
        cost=2,
    ),
    _get(
        _SERVER,
        m.GetMCPServer,
        servers.get_mcp_server,
        "mcp_servers.read",
        hides="mcp_server",
        cost=2,
    ),
    _patch(
        _SERVER,
        m.UpdateMCPServer,
        servers.update_mcp_server,
        "mcp_servers.update",
        hides="mcp_server",
        cost=3,
    ),
    _delete(
        _SERVER,
        m.DeleteMCPServer,
        servers.delete_mcp_server,
        "mcp_servers.delete",
        follow="remaining_grants.mcp_server_deleted",
        cost=2,
    ),
)

handler = lambda_handler(RPCS)
