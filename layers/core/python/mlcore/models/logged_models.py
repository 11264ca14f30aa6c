"""Declares the items of logged models."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import FlagAttribute, IntAttribute, TextAttribute, TextMapAttribute
from mlcore.models.base import ChildItem, Item, MetaItem


class LoggedModel(MetaItem):
    """A logged model.

    ``points`` holds the metric points of requests with few points, while it has room: by a hash of
    a request's points, JSON as in :class:`LoggedModelPoints`. ``more_points`` is set if the points
    of other requests are in items of their own.
    """

    pattern = keys.LOGGED_MODEL

    model_id = TextAttribute()
    experiment_id = TextAttribute()
    workspace = TextAttribute()
    name = TextAttribute()
    artifact_location = TextAttribute()
    creation_time = IntAttribute()
    last_update_time = IntAttribute()
    status = TextAttribute()
    stage = TextAttribute()
    model_type = TextAttribute()
    source_run_id = TextAttribute()
    params = TextMapAttribute(null=True)
    tags = TextMapAttribute(null=True)
    points = TextMapAttribute()
    more_points = FlagAttribute(null=True)


class LoggedModelReference(Item):
    """Maps a logged model's id to its experiment."""

    pattern = keys.LOGGED_MODEL_REF

    version = IntAttribute()
    model_id = TextAttribute()
    experiment_id = TextAttribute()


class LoggedModelParam(ChildItem):
    """A param of a logged model, in a DynamoDB item of its own."""

    pattern = keys.LOGGED_MODEL_PARAM

    value = TextAttribute()


class LoggedModelTag(ChildItem):
    """A tag of a logged model."""

    pattern = keys.LOGGED_MODEL_TAG

    value = TextAttribute()


class LoggedModelPoints(Item):
    """A logged model's metric points that one request logged: JSON ``[time of the request, [[key,
    value, timestamp, step, run_id, dataset_name, dataset_digest], …]]``."""

    pattern = keys.LOGGED_MODEL_POINTS

    version = IntAttribute()
    model_id = TextAttribute()
    points = TextAttribute()
