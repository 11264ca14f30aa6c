"""Keys of logged models, in their experiment's partition, and of references to them."""

from __future__ import annotations

from mlcore.db.keys.pattern import Key, Pattern, remembering

_EXP = "EXP#<experiment_id>"

LOGGED_MODEL = Pattern(
    "logged_model", _EXP, "LM#<model_id>", "a logged model with its params, tags and first points"
)
LOGGED_MODEL_PARAM = Pattern(
    "logged_model_param",
    _EXP,
    "LM#<model_id>#PARAM#<key>",
    "a param that the item of its model has no room for",
)
LOGGED_MODEL_TAG = Pattern(
    "logged_model_tag",
    _EXP,
    "LM#<model_id>#TAG#<key>",
    "a tag that the item of its model has no room for",
)
LOGGED_MODEL_POINTS = Pattern(
    "logged_model_points",
    _EXP,
    "LM#<model_id>#POINTS#<suffix>",
    "points of metrics that were logged together and that the model has no room for",
)
LOGGED_MODEL_REF = Pattern(
    "logged_model_ref",
    "LM#<model_id>",
    "LM#REF",
    "the logged model's experiment, read consistently",
)

LOGGED_MODEL_PATTERNS = (
    LOGGED_MODEL,
    LOGGED_MODEL_PARAM,
    LOGGED_MODEL_TAG,
    LOGGED_MODEL_POINTS,
    LOGGED_MODEL_REF,
)

_partition = remembering(LOGGED_MODEL.pk.build)


def logged_model(experiment_id: str, model_id: str) -> Key:
    return Key(_partition(experiment_id), LOGGED_MODEL.sk.build(model_id))


def logged_model_param(experiment_id: str, model_id: str, key: str) -> Key:
    return Key(_partition(experiment_id), LOGGED_MODEL_PARAM.sk.build(model_id, key))


def logged_model_param_prefix(model_id: str) -> str:
    return LOGGED_MODEL_PARAM.sk.prefix(model_id)


def logged_model_tag(experiment_id: str, model_id: str, key: str) -> Key:
    return Key(_partition(experiment_id), LOGGED_MODEL_TAG.sk.build(model_id, key))


def logged_model_tag_prefix(model_id: str) -> str:
    return LOGGED_MODEL_TAG.sk.prefix(model_id)


def logged_model_points(experiment_id: str, model_id: str, suffix: str) -> Key:
    """Returns the key of an item that holds metric points of a logged model. ``suffix``
    distinguishes the model's items of this kind."""
    return Key(_partition(experiment_id), LOGGED_MODEL_POINTS.sk.build(model_id, suffix))


def logged_model_points_prefix(model_id: str) -> str:
    return LOGGED_MODEL_POINTS.sk.prefix(model_id)


def logged_model_ref(model_id: str) -> Key:
    return Key(LOGGED_MODEL_REF.pk.build(model_id), LOGGED_MODEL_REF.sk.text)
