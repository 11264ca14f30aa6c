"""Keys of registered models and of the partitions that hold their versions.

The partition key contains the name, so names are unique without a lock. Two kinds of partitions
have names that begin with ``:``, which MLflow does not allow: those of models outside the default
workspace, and those for versions of a model that, when it was created, had more tags than its item
can hold, or whose own partition still belonged to another model (see
:mod:`mlcore.repos.registry.registered_models`). An *incarnation* is the id of one model among the
successive models of a name.
"""

from __future__ import annotations

from mlcore.db.keys.pattern import Key, Pattern, remembering
from mlcore.entities.workspaces import DEFAULT_WORKSPACE

_RM = "RM#<model_name>"

REGISTERED_MODEL = Pattern("registered_model", _RM, "M#META", "a registered model with its tags")
MODEL_HOME = Pattern(
    "model_home", _RM, "M#HOME", "the model that owns the versions in this partition"
)
MODEL_VERSION = Pattern("model_version", _RM, "M#V#<version>", "a version with its tags")
MODEL_VERSION_TAG = Pattern(
    "model_version_tag",
    _RM,
    "M#V#<version>#TAG#<key>",
    "one tag that the item of its version has no room for",
)
MODEL_TAG = Pattern("model_tag", _RM, "M#TAG#<key>", "one tag", "overflow")
MODEL_ALIAS = Pattern("model_alias", _RM, "M#ALIAS#<alias>", "the version that an alias names")
MODEL_END = Pattern(
    "model_end",
    _RM,
    "M#END#<version>",
    "when an archived version, or with 0 the archived model, expires",
    "indexer",
)
RUN_MODEL_VERSION = Pattern(
    "run_model_version",
    "RUN#<run_id>",
    "RUN#MV#<incarnation>#<version>",
    "a version that was made from the run",
)

REGISTRY_PATTERNS = (
    REGISTERED_MODEL,
    MODEL_HOME,
    MODEL_VERSION,
    MODEL_VERSION_TAG,
    MODEL_TAG,
    MODEL_ALIAS,
    MODEL_END,
    RUN_MODEL_VERSION,
)

_partition = remembering(REGISTERED_MODEL.pk.build)


def place_of_model(workspace: str, name: str) -> str:
    """Returns the text by which DynamoDB keys name a registered model: its name in the default
    workspace, ``:workspace:name`` in any other."""
    return name if workspace == DEFAULT_WORKSPACE else f":{workspace}:{name}"


def registered_model(workspace: str, name: str) -> Key:
    return Key(_partition(place_of_model(workspace, name)), REGISTERED_MODEL.sk.text)


def model_at(pk: str) -> Key:
    """Returns the key of a registered model's item from the partition key of the model."""
    return Key(pk, REGISTERED_MODEL.sk.text)


def separate_home(incarnation: str) -> str:
    """Returns the partition key for the versions of a registered model whose own partition cannot
    hold them, because it still holds versions of an earlier model of this name, or the model was
    created with more tags than its item can hold."""
    return _partition(f"::{incarnation}")


def model_home(home: str) -> Key:
    return Key(home, MODEL_HOME.sk.text)


def model_version(home: str, version: int) -> Key:
    return Key(home, MODEL_VERSION.sk.build(version))


def model_end(home: str, version: int) -> Key:
    return Key(home, MODEL_END.sk.build(version))


def model_version_prefix() -> str:
    return MODEL_VERSION.sk.prefix()


def model_version_tag(home: str, version: int, key: str) -> Key:
    return Key(home, MODEL_VERSION_TAG.sk.build(version, key))


def model_version_tag_prefix(version: int) -> str:
    return MODEL_VERSION_TAG.sk.prefix(version)


def model_tag(home: str, key: str) -> Key:
    return Key(home, MODEL_TAG.sk.build(key))


def model_tag_prefix() -> str:
    return MODEL_TAG.sk.prefix()


def model_alias(home: str, alias: str) -> Key:
    return Key(home, MODEL_ALIAS.sk.build(alias))


def model_alias_prefix() -> str:
    return MODEL_ALIAS.sk.prefix()


def run_model_version(run_id: str, incarnation: str, version: int) -> Key:
    sk = RUN_MODEL_VERSION.sk.build(incarnation, version)
    return Key(RUN_MODEL_VERSION.pk.build(run_id), sk)


def run_model_version_prefix() -> str:
    return RUN_MODEL_VERSION.sk.prefix()
