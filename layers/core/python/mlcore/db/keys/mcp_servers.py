"""Keys of the MCP registry. The servers of a workspace have a partition of their own, so that a
search is a consistent Query per MB. Each server has a partition for the contents of its
versions."""

from __future__ import annotations

from mlcore.db.keys.pattern import Key, Pattern

MCP_SERVER = Pattern(
    "mcp_server",
    "MCPSERVERS#<workspace>",
    "MCPSERVER#<mcp_server_name>",
    "an MCP server with its tags, aliases, access endpoints, and the states of its versions",
)
MCP_SERVER_VERSION = Pattern(
    "mcp_server_version",
    "MCPSERVER#<workspace>#<mcp_server_name>",
    "MCPVERSION#<mcp_server_version>",
    "the content of a version of an MCP server: its server.json and its tools",
)

MCP_SERVER_PATTERNS = (MCP_SERVER, MCP_SERVER_VERSION)


def mcp_server(workspace: str, name: str) -> Key:
    return Key(MCP_SERVER.pk.build(workspace), MCP_SERVER.sk.build(name))


def mcp_server_prefix() -> str:
    return MCP_SERVER.sk.prefix()


def mcp_server_version(workspace: str, name: str, version: str) -> Key:
    return Key(MCP_SERVER_VERSION.pk.build(workspace, name), MCP_SERVER_VERSION.sk.build(version))


def mcp_server_version_prefix() -> str:
    return MCP_SERVER_VERSION.sk.prefix()
