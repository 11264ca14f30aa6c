"""DynamoDB keys of users: their grants, roles, API keys, logins and browser sessions."""

from __future__ import annotations

from mlcore.db.keys.pattern import Key, Pattern
from mlcore.entities.workspaces import DEFAULT_WORKSPACE

_USER = "USER#<username>"

USER = Pattern("user", _USER, "U#META", "a user with the hash of the password")
EXPERIMENT_PERMISSION = Pattern(
    "experiment_permission", _USER, "U#PERM#<experiment_id>", "a user's permission on an experiment"
)
MODEL_PERMISSION = Pattern(
    "model_permission", _USER, "U#RPERM#<model_name>", "a user's permission on a registered model"
)
USER_GRANT = Pattern(
    "user_grant",
    _USER,
    "U#GRANT#<workspace>#<resource_type>#<resource_pattern>",
    "a user's permission on any other resource, or on one outside the default workspace",
)
USER_ROLE = Pattern("user_role", _USER, "U#ROLE#<role_id>", "a user has a role")
USER_NAME = Pattern("user_name", "USERS", "USERS#<username>", "lists the users")
GRANTEE = Pattern(
    "grantee",
    "GRANTS#<workspace>#<resource_type>#<resource_pattern>",
    "GRANTS#<username>",
    "a user has a grant on a resource, read consistently",
)
ROLE = Pattern("role", "ROLES", "ROLE#<role_id>", "a role with its permissions")
ROLE_NAME = Pattern(
    "role_name", "ROLES", "ROLENAME#<workspace>#<role_name>", "makes the role's name unique"
)
ROLE_USER = Pattern("role_user", "ROLES", "ROLEUSER#<role_id>#<username>", "a role has a user")
API_KEY = Pattern(
    "api_key", "APIKEYS#<user_id>", "APIKEYS#<key_id>", "an API key of a user: hash, scopes, expiry"
)
LOGIN = Pattern(
    "login",
    "LOGIN#<address>",
    "LOGIN#<counter>",
    "the number of wrong passwords from an address in one minute",
)
SIGN_IN = Pattern(
    "sign_in", _USER, "U#SIGNIN", "the account with which a user signs in, and roles of its groups"
)
SESSION = Pattern(
    "session", "SESSIONS#<username>", "SESSION#<hash>", "a browser in which a user is signed in"
)
SESSION_KEY = Pattern(
    "session_key",
    "SESSION_KEYS",
    "SESSION_KEY#<key_id>",
    "an encrypted key that encrypts session cookies",
)
CALLER_USAGE = Pattern(
    "caller_usage",
    "CALLERUSAGE#<target>",
    "CUSAGE#<time>",
    "requests of a key, user or workspace in one day",
)

USER_PATTERNS = (
    USER,
    EXPERIMENT_PERMISSION,
    MODEL_PERMISSION,
    USER_GRANT,
    USER_ROLE,
    USER_NAME,
    GRANTEE,
    ROLE,
    ROLE_NAME,
    ROLE_USER,
    API_KEY,
    LOGIN,
    SIGN_IN,
    SESSION,
    SESSION_KEY,
    CALLER_USAGE,
)


def user(username: str) -> Key:
    return Key(USER.pk.build(username), USER.sk.text)


def experiment_permission(username: str, experiment_id: str) -> Key:
    return Key(USER.pk.build(username), EXPERIMENT_PERMISSION.sk.build(experiment_id))


def model_permission(username: str, model_name: str) -> Key:
    return Key(USER.pk.build(username), MODEL_PERMISSION.sk.build(model_name))


def user_grant(username: str, workspace: str, resource_type: str, resource_pattern: str) -> Key:
    """Returns the key of the item of a user's grant. Grants on experiments and registered models of
    the default workspace have key patterns of their own."""
    if workspace == DEFAULT_WORKSPACE and resource_type == "experiment":
        return experiment_permission(username, resource_pattern)
    if workspace == DEFAULT_WORKSPACE and resource_type == "registered_model":
        return model_permission(username, resource_pattern)
    sk = USER_GRANT.sk.build(workspace, resource_type, resource_pattern)
    return Key(USER.pk.build(username), sk)


def user_role(username: str, role_id: str) -> Key:
    return Key(USER.pk.build(username), USER_ROLE.sk.build(role_id))


def user_name(username: str) -> Key:
    return Key(USER_NAME.pk.text, USER_NAME.sk.build(username))


def grantee(workspace: str, resource_type: str, resource_pattern: str, username: str) -> Key:
    pk = GRANTEE.pk.build(workspace, resource_type, resource_pattern)
    return Key(pk, GRANTEE.sk.build(username))


def role(role_id: str) -> Key:
    return Key(ROLE.pk.text, ROLE.sk.build(role_id))


def role_prefix() -> str:
    return ROLE.sk.prefix()


def role_name(workspace: str, name: str) -> Key:
    return Key(ROLE_NAME.pk.text, ROLE_NAME.sk.build(workspace, name))


def role_user(role_id: str, username: str) -> Key:
    return Key(ROLE_USER.pk.text, ROLE_USER.sk.build(role_id, username))


def role_user_prefix(role_id: str) -> str:
    return ROLE_USER.sk.prefix(role_id)


def api_key(user_id: str, key_id: str) -> Key:
    return Key(API_KEY.pk.build(user_id), API_KEY.sk.build(key_id))


def login(address: str, counter: str) -> Key:
    return Key(LOGIN.pk.build(address), LOGIN.sk.build(counter))


def sign_in(username: str) -> Key:
    return Key(USER.pk.build(username), SIGN_IN.sk.text)


def session(username: str, hashed: str) -> Key:
    return Key(SESSION.pk.build(username), SESSION.sk.build(hashed))


def session_key(key_id: str) -> Key:
    return Key(SESSION_KEY.pk.text, SESSION_KEY.sk.build(key_id))


def caller_usage(target: str, day_start_ms: int) -> Key:
    return Key(CALLER_USAGE.pk.build(target), CALLER_USAGE.sk.build(day_start_ms))
