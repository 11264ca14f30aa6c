"""Keys of workspaces, users with their permissions, and configuration."""

from __future__ import annotations

from mlcore.db.keys.pattern import Key, Pattern

_USER = "USER#<username>"

WORKSPACE = Pattern("workspace", "WORKSPACE#<workspace>", "WS#META", "a workspace")
USER = Pattern("user", _USER, "U#META", "a user with the hash of the password")
EXPERIMENT_PERMISSION = Pattern(
    "experiment_permission", _USER, "U#PERM#<experiment_id>", "what a user may in an experiment"
)
MODEL_PERMISSION = Pattern(
    "model_permission", _USER, "U#RPERM#<model_name>", "what a user may with a registered model"
)
CONFIG = Pattern("config", "CONFIG", "CFG#<key>", "one setting of the deployment")

PLATFORM_PATTERNS = (WORKSPACE, USER, EXPERIMENT_PERMISSION, MODEL_PERMISSION, CONFIG)


def workspace(name: str) -> Key:
    return Key(WORKSPACE.pk.build(name), WORKSPACE.sk.text)


def user(username: str) -> Key:
    return Key(USER.pk.build(username), USER.sk.text)


def experiment_permission(username: str, experiment_id: str) -> Key:
    return Key(USER.pk.build(username), EXPERIMENT_PERMISSION.sk.build(experiment_id))


def experiment_permission_prefix() -> str:
    return EXPERIMENT_PERMISSION.sk.prefix()


def model_permission(username: str, model_name: str) -> Key:
    return Key(USER.pk.build(username), MODEL_PERMISSION.sk.build(model_name))


def model_permission_prefix() -> str:
    return MODEL_PERMISSION.sk.prefix()


def config(key: str) -> Key:
    return Key(CONFIG.pk.text, CONFIG.sk.build(key))


def config_prefix() -> str:
    return CONFIG.sk.prefix()
