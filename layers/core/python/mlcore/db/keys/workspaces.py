"""The primary keys of the items that store workspaces."""

from __future__ import annotations

from mlcore.db.keys.pattern import Key, Pattern

WORKSPACE = Pattern("workspace", "WORKSPACE#<workspace>", "WS#META", "a workspace")
WORKSPACE_NAME = Pattern(
    "workspace_name", "WORKSPACES", "WORKSPACES#<workspace>", "lists the workspaces"
)

RECENT_ENTITY = Pattern(
    "recent_entity",
    "WORKSPACE#<workspace>",
    "WS#NEW#<entity_type>#<entity>",
    "an experiment (by id) or model (by incarnation) recently created, or a model recently renamed",
)

WORKSPACE_PATTERNS = (WORKSPACE, WORKSPACE_NAME, RECENT_ENTITY)


def workspace(name: str) -> Key:
    return Key(WORKSPACE.pk.build(name), WORKSPACE.sk.text)


def workspace_name(name: str) -> Key:
    return Key(WORKSPACE_NAME.pk.text, WORKSPACE_NAME.sk.build(name))


def recent_entity(workspace: str, entity_type: str, entity: str) -> Key:
    return Key(RECENT_ENTITY.pk.build(workspace), RECENT_ENTITY.sk.build(entity_type, entity))


def recent_entity_prefix(*entity_type: str) -> str:
    return RECENT_ENTITY.sk.prefix(*entity_type)
