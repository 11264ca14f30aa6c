"""Keys of a registered model's partition; being its key, a name is unique without a lock."""

from __future__ import annotations

from mlcore.db.keys.pattern import Key, Pattern

_RM = "RM#<model_name>"

REGISTERED_MODEL = Pattern("registered_model", _RM, "M#META", "a registered model with its tags")
MODEL_VERSION = Pattern("model_version", _RM, "M#V#<version>", "a version with its tags")
MODEL_TAG = Pattern("model_tag", _RM, "M#TAG#<key>", "one tag", "overflow")
MODEL_ALIAS = Pattern("model_alias", _RM, "M#ALIAS#<alias>", "the version that an alias names")

REGISTRY_PATTERNS = (REGISTERED_MODEL, MODEL_VERSION, MODEL_TAG, MODEL_ALIAS)

_partition = REGISTERED_MODEL.pk.build


def registered_model(name: str) -> Key:
    return Key(_partition(name), REGISTERED_MODEL.sk.text)


def model_version(name: str, version: int) -> Key:
    return Key(_partition(name), MODEL_VERSION.sk.build(version))


def model_version_prefix() -> str:
    return MODEL_VERSION.sk.prefix()


def model_tag(name: str, key: str) -> Key:
    return Key(_partition(name), MODEL_TAG.sk.build(key))


def model_tag_prefix() -> str:
    return MODEL_TAG.sk.prefix()


def model_alias(name: str, alias: str) -> Key:
    return Key(_partition(name), MODEL_ALIAS.sk.build(alias))


def model_alias_prefix() -> str:
    return MODEL_ALIAS.sk.prefix()
