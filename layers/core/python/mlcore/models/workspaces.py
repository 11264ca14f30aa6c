"""Declares the DynamoDB items in which workspaces are stored."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import IntAttribute, TextAttribute
from mlcore.models.base import Item


class Workspace(Item):
    """A workspace. ``entered_at`` is when something, such as an experiment or a model, was last
    created in it. While the workspace is being deleted, ``leaving`` is set to the mode of the
    deletion."""

    pattern = keys.WORKSPACE

    version = IntAttribute()
    name = TextAttribute()
    description = TextAttribute(null=True)
    artifact_root = TextAttribute(null=True)
    trace_archival_location = TextAttribute(null=True)
    trace_archival_retention = TextAttribute(null=True)
    entered_at = IntAttribute(null=True)
    leaving = TextAttribute(null=True)


class WorkspaceName(Item):
    """Lists a workspace by name; in the partition of all workspaces."""

    pattern = keys.WORKSPACE_NAME

    name = TextAttribute()


class RecentEntity(Item):
    """An experiment (``entity`` is its id) or a registered model (``entity`` is its incarnation,
    ``home`` the partition of its versions) that was created or renamed in a workspace in the last
    days."""

    pattern = keys.RECENT_ENTITY

    entity = TextAttribute()
    home = TextAttribute(null=True)
