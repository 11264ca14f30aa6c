"""Items of workspaces, users and their permissions, and configuration."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attributes import FlagAttribute, IntAttribute, TextAttribute, TextMapAttribute
from mlcore.models.base import IndexedItem, Item


class Workspace(Item):
    """A workspace. ``entered_at`` is when an experiment, model or webhook was last made in it;
    ``leaving`` says how it is being deleted."""

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
    """An entry of the list of workspaces."""

    pattern = keys.WORKSPACE_NAME

    name = TextAttribute()


class User(Item):
    """A user. ``password_hash`` holds the parameters of scrypt, the salt and the hash; ``role_ids``
    the number that stands for the user's own grants in each workspace."""

    pattern = keys.USER

    version = IntAttribute()
    username = TextAttribute()
    user_id = IntAttribute()
    password_hash = TextAttribute()
    is_admin = FlagAttribute()
    role_ids = TextMapAttribute(null=True)


class GrantItem(IndexedItem):
    """What a user may with a resource, or (``*``) with all of its type; ``user_id`` tells a user
    from an earlier one of the same name."""

    username = TextAttribute()
    user_id = IntAttribute()
    workspace = TextAttribute()
    resource_type = TextAttribute()
    resource_pattern = TextAttribute()
    permission = TextAttribute()


class ExperimentPermission(GrantItem):
    """What a user may in an experiment of the default workspace."""

    pattern = keys.EXPERIMENT_PERMISSION

    experiment_id = TextAttribute()


class ModelPermission(GrantItem):
    """What a user may with a registered model of the default workspace."""

    pattern = keys.MODEL_PERMISSION

    name = TextAttribute()


class UserGrant(GrantItem):
    """What a user may with any other resource."""

    pattern = keys.USER_GRANT


class UserRole(Item):
    """A user has a role."""

    pattern = keys.USER_ROLE

    role_id = IntAttribute()
    user_id = IntAttribute()
    assignment_id = IntAttribute()


class UserName(Item):
    """An entry of the list of users."""

    pattern = keys.USER_NAME

    username = TextAttribute()


class Grantee(Item):
    """An entry of the list of those who have a grant on a resource."""

    pattern = keys.GRANTEE

    username = TextAttribute()


class Role(Item):
    """A role; ``permissions`` is a JSON list of [id, resource type, pattern, level]."""

    pattern = keys.ROLE

    version = IntAttribute()
    role_id = IntAttribute()
    name = TextAttribute()
    workspace = TextAttribute()
    description = TextAttribute(null=True)
    permissions = TextAttribute()
    last_permission = IntAttribute()


class RoleName(Item):
    """Holds the name of a role in its workspace."""

    pattern = keys.ROLE_NAME

    role_id = IntAttribute()


class RoleUser(Item):
    """A role has a user."""

    pattern = keys.ROLE_USER

    username = TextAttribute()
    user_id = IntAttribute()
    assignment_id = IntAttribute()


class Login(Item):
    """Wrong passwords from one address for one user name; ``window`` counts minutes."""

    pattern = keys.LOGIN

    window = IntAttribute()
    failures = IntAttribute()


class Counter(Item):
    """The last number that was given out."""

    pattern = keys.COUNTER

    value = IntAttribute()


class IdCounter(Item):
    """``contexts`` is the last experiment id that was given out; ``since`` is when the first one
    was, or when the oldest imported experiment was made. Kubeflow's contexts are numbered with
    ``contexts`` too, its artifacts and executions by themselves."""

    pattern = keys.ID_COUNTER

    version = IntAttribute()
    contexts = IntAttribute(null=True)
    artifacts = IntAttribute(null=True)
    executions = IntAttribute(null=True)
    since = IntAttribute()


class Config(Item):
    """A setting, as JSON."""

    pattern = keys.CONFIG

    version = IntAttribute()
    key = TextAttribute()
    value = TextAttribute()
