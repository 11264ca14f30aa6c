"""Declares the DynamoDB items of the MCP registry."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import BytesAttribute, FlagAttribute, IntAttribute, TextAttribute
from mlcore.models.base import Item


class MCPServer(Item):
    """An MCP server. ``icons``, ``tags``, ``aliases`` (alias → version), ``versions`` (version →
    its status and time of creation) and ``endpoints`` (id → access endpoint) are JSON. With
    ``is_moved`` the server is in another workspace, and this item is to be deleted."""

    pattern = keys.MCP_SERVER

    version = IntAttribute()
    name = TextAttribute()
    display_name = TextAttribute(null=True)
    description = TextAttribute(null=True)
    icons = TextAttribute(null=True)
    tags = TextAttribute(null=True)
    aliases = TextAttribute(null=True)
    versions = TextAttribute(null=True)
    endpoints = TextAttribute(null=True)
    created_by = TextAttribute(null=True)
    last_updated_by = TextAttribute(null=True)
    created_at = IntAttribute()
    last_updated_at = IntAttribute()
    is_moved = FlagAttribute(null=True)


class MCPServerVersion(Item):
    """The content of a version of an MCP server; ``data`` is JSON compressed with zlib. Whether the
    version exists, and its status, is stored in the server's item."""

    pattern = keys.MCP_SERVER_VERSION

    version = IntAttribute()
    name = TextAttribute()
    number = TextAttribute()
    data = BytesAttribute()
    tags = TextAttribute(null=True)
    last_updated_by = TextAttribute(null=True)
    last_updated_at = IntAttribute()
