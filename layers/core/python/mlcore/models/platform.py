"""Items of workspaces, users and their permissions, and configuration."""

from __future__ import annotations

from pynamodb.attributes import BooleanAttribute, UnicodeAttribute

from mlcore.db import keys
from mlcore.models.base import IndexedItem, Item


class Workspace(Item):
    """A workspace."""

    pattern = keys.WORKSPACE

    name = UnicodeAttribute()
    description = UnicodeAttribute(null=True)
    artifact_root = UnicodeAttribute(null=True)


class User(Item):
    """A user. ``password_hash`` holds the parameters of scrypt, the salt and the hash."""

    pattern = keys.USER

    username = UnicodeAttribute()
    password_hash = UnicodeAttribute()
    is_admin = BooleanAttribute()


class ExperimentPermission(IndexedItem):
    """What a user may in an experiment: READ, EDIT, MANAGE or NO_PERMISSIONS."""

    pattern = keys.EXPERIMENT_PERMISSION

    username = UnicodeAttribute()
    experiment_id = UnicodeAttribute()
    permission = UnicodeAttribute()


class ModelPermission(IndexedItem):
    """What a user may with a registered model."""

    pattern = keys.MODEL_PERMISSION

    username = UnicodeAttribute()
    name = UnicodeAttribute()
    permission = UnicodeAttribute()


class Config(Item):
    """A setting, as JSON."""

    pattern = keys.CONFIG

    key = UnicodeAttribute()
    value = UnicodeAttribute()
