"""Items of the model registry."""

from __future__ import annotations

from pynamodb.attributes import UnicodeAttribute

from mlcore.db import keys
from mlcore.db.attributes import IntAttribute, TextMapAttribute
from mlcore.models.base import ChildItem, IndexedItem, Item


class RegisteredModel(IndexedItem):
    """A registered model. ``last_version`` is the greatest ever given, deleted ones included."""

    pattern = keys.REGISTERED_MODEL

    name = UnicodeAttribute()
    description = UnicodeAttribute(null=True)
    creation_time = IntAttribute()
    last_update_time = IntAttribute()
    last_version = IntAttribute(null=True)
    tags = TextMapAttribute(null=True)
    bytes = IntAttribute(null=True)
    overflow = UnicodeAttribute(null=True)


class ModelVersion(Item):
    """A version of a registered model: number ``model_version`` (``version`` counts writes)."""

    pattern = keys.MODEL_VERSION

    name = UnicodeAttribute()
    model_version = IntAttribute()
    description = UnicodeAttribute(null=True)
    user_id = UnicodeAttribute(null=True)
    current_stage = UnicodeAttribute()
    source = UnicodeAttribute(null=True)
    run_id = UnicodeAttribute(null=True)
    run_link = UnicodeAttribute(null=True)
    model_id = UnicodeAttribute(null=True)
    status = UnicodeAttribute()
    status_message = UnicodeAttribute(null=True)
    creation_time = IntAttribute()
    last_update_time = IntAttribute()
    tags = TextMapAttribute(null=True)


class ModelTag(ChildItem):
    """A tag of a registered model."""

    pattern = keys.MODEL_TAG

    value = UnicodeAttribute()


class ModelAlias(Item):
    """The version that an alias names."""

    pattern = keys.MODEL_ALIAS

    alias = UnicodeAttribute()
    model_version = IntAttribute()
