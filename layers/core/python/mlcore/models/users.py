"""Declares the items of users: their grants, roles, API keys, logins and browser sessions."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import FlagAttribute, IntAttribute, TextAttribute, TextMapAttribute
from mlcore.models.base import IndexedItem, Item


class User(Item):
    """A user. ``password_hash`` holds the parameters of scrypt, the salt and the hash; it is empty
    for a user without a password, and a fixed mark for a service account. ``role_ids`` holds, for
    each workspace, the number of the role that represents the user's own grants. With
    ``is_inactive`` no login of the user is accepted."""

    pattern = keys.USER

    version = IntAttribute()
    username = TextAttribute()
    user_id = IntAttribute()
    password_hash = TextAttribute()
    is_admin = FlagAttribute()
    role_ids = TextMapAttribute(null=True)
    is_inactive = FlagAttribute(null=True)


class GrantItem(IndexedItem):
    """Base of a user's permission on a resource, or (``*``) on all resources of a type; ``user_id``
    distinguishes a user from a former one of the same name. ``updated_at`` is when the user got
    a permission on the resource, by which lists are ordered: a change of the level leaves it, but
    one by release 0.1.0 sets it."""

    username = TextAttribute()
    user_id = IntAttribute()
    workspace = TextAttribute()
    resource_type = TextAttribute()
    resource_pattern = TextAttribute()
    permission = TextAttribute()


class ExperimentPermission(GrantItem):
    """A user's permission on an experiment of the default workspace."""

    pattern = keys.EXPERIMENT_PERMISSION

    experiment_id = TextAttribute()


class ModelPermission(GrantItem):
    """A user's permission on a registered model of the default workspace."""

    pattern = keys.MODEL_PERMISSION

    name = TextAttribute()


class UserGrant(GrantItem):
    """A user's permission on a resource other than an experiment or registered model of the default
    workspace."""

    pattern = keys.USER_GRANT


class UserRole(Item):
    """Records that a user has a role; in the user's partition."""

    pattern = keys.USER_ROLE

    role_id = IntAttribute()
    user_id = IntAttribute()
    assignment_id = IntAttribute()


class UserName(Item):
    """Lists a user by name; in the partition of all users. Service accounts have
    ``is_service_account``."""

    pattern = keys.USER_NAME

    username = TextAttribute()
    is_service_account = FlagAttribute(null=True)


class Grantee(Item):
    """Lists a user who has a grant on a resource; in the partition of the resource's grants."""

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
    """Reserves the name of a role in its workspace."""

    pattern = keys.ROLE_NAME

    role_id = IntAttribute()


class RoleUser(Item):
    """Records that a user has a role; in the partition of all roles."""

    pattern = keys.ROLE_USER

    username = TextAttribute()
    user_id = IntAttribute()
    assignment_id = IntAttribute()


class ApiKey(Item):
    """An API key. ``secret_hash`` is the SHA-256 of the whole token; ``scopes`` is a JSON list,
    null for the owner's full rights; times are in milliseconds. ``used_on`` is the last day of
    use, in days since the epoch. ``user_id`` distinguishes the owner from a later user of the same
    name."""

    pattern = keys.API_KEY

    version = IntAttribute()
    key_id = TextAttribute()
    name = TextAttribute()
    username = TextAttribute()
    user_id = IntAttribute()
    secret_hash = TextAttribute()
    workspace = TextAttribute()
    scopes = TextAttribute(null=True)
    created_at = IntAttribute()
    expires_at = IntAttribute(null=True)
    used_on = IntAttribute(null=True)


class Login(Item):
    """Counts the wrong passwords in the minute ``window`` from one address (of IPv6: one network)
    for the user names that share a counter (:mod:`mlcore.repos.users.wrong_passwords`)."""

    pattern = keys.LOGIN

    window = IntAttribute()
    failures = IntAttribute()


class SignIn(Item):
    """Binds a user name to an account at an issuer (OIDC): no other account may sign in under the
    name. ``role_ids`` is a JSON list of the roles that the account's groups gave; ``user_id``
    distinguishes the user from a former one of the same name."""

    pattern = keys.SIGN_IN

    username = TextAttribute()
    user_id = IntAttribute()
    issuer = TextAttribute()
    subject = TextAttribute()
    role_ids = TextAttribute()


class Session(Item):
    """A session of a browser in which a user is signed in. Times are in seconds since the epoch;
    ``hint`` is the encrypted ID token, which the OIDC provider gets as ``id_token_hint`` when the
    user signs out."""

    pattern = keys.SESSION

    username = TextAttribute()
    user_id = IntAttribute()
    issuer = TextAttribute()
    is_admin = FlagAttribute()
    started_at = IntAttribute()
    seen_at = IntAttribute()
    expires_at = IntAttribute()
    hint = TextAttribute(null=True)


class SessionKey(Item):
    """A key that encrypts cookies, itself encrypted by KMS; ``made_at`` in seconds since the
    epoch."""

    pattern = keys.SESSION_KEY

    key_id = TextAttribute()
    sealed = TextAttribute()
    made_at = IntAttribute()


class CallerUsage(Item):
    """API requests of an API key, user or workspace in one day, as processes have reported them.
    Deleted by its TTL some time after the day."""

    pattern = keys.CALLER_USAGE

    requests = IntAttribute()
    last_addition = TextAttribute(null=True)
    """The id of the last addition, by which a repeated one is recognized."""
