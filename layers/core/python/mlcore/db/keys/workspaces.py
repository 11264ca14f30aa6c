"""Keys of workspaces."""

from __future__ import annotations

from mlcore.db.keys.pattern import Key, Pattern

WORKSPACE = Pattern("workspace", "WORKSPACE#<workspace>", "WS#META", "a workspace")
WORKSPACE_NAME = Pattern(
    "workspace_name", "WORKSPACES", "WORKSPACES#<workspace>", "lists the workspaces"
)

WORKSPACE_PATTERNS = (WORKSPACE, WORKSPACE_NAME)


def workspace(name: str) -> Key:
    return Key(WORKSPACE.pk.build(name), WORKSPACE.sk.text)


def workspace_name(name: str) -> Key:
    return Key(WORKSPACE_NAME.pk.text, WORKSPACE_NAME.sk.build(name))
