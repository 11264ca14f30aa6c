"""Items of logged models."""

from __future__ import annotations

from pynamodb.attributes import BooleanAttribute, UnicodeAttribute

from mlcore.db import keys
from mlcore.db.attributes import IntAttribute, TextMapAttribute
from mlcore.models.base import ChildItem, IndexedItem, Item


class LoggedModel(IndexedItem):
    """A logged model.

    ``points`` holds its first packs of metric points by their suffix, each JSON as in
    :class:`LoggedModelPoints`; ``more_points`` says that there are packs of their own as well.
    """

    pattern = keys.LOGGED_MODEL

    model_id = UnicodeAttribute()
    experiment_id = UnicodeAttribute()
    workspace = UnicodeAttribute()
    name = UnicodeAttribute()
    artifact_location = UnicodeAttribute()
    creation_time = IntAttribute()
    last_update_time = IntAttribute()
    status = UnicodeAttribute()
    stage = UnicodeAttribute()
    model_type = UnicodeAttribute(null=True)
    source_run_id = UnicodeAttribute(null=True)
    params = TextMapAttribute(null=True)
    tags = TextMapAttribute(null=True)
    points = TextMapAttribute(null=True)
    more_points = BooleanAttribute(null=True)
    bytes = IntAttribute(null=True)
    overflow = UnicodeAttribute(null=True)


class LoggedModelReference(Item):
    """Where a logged model is."""

    pattern = keys.LOGGED_MODEL_REF

    model_id = UnicodeAttribute()
    experiment_id = UnicodeAttribute()


class LoggedModelParam(ChildItem):
    """A param of a logged model."""

    pattern = keys.LOGGED_MODEL_PARAM

    value = UnicodeAttribute()


class LoggedModelTag(ChildItem):
    """A tag of a logged model."""

    pattern = keys.LOGGED_MODEL_TAG

    value = UnicodeAttribute()


class LoggedModelPoints(Item):
    """Points that came in one request: JSON ``[time of the request, [[key, value, timestamp, step,
    run_id, dataset_name, dataset_digest], …]]``."""

    pattern = keys.LOGGED_MODEL_POINTS

    model_id = UnicodeAttribute()
    points = UnicodeAttribute()
