"""Items of the model registry."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attributes import FlagAttribute, IntAttribute, TextAttribute, TextMapAttribute
from mlcore.models.base import ChildItem, Item, MetaItem


class RegisteredModel(MetaItem):
    """A registered model, under the name that it has now.

    ``incarnation`` is its identity for life. ``home`` is the partition of its versions, unless
    that is its own. ``last_version`` is the greatest number ever given, deleted ones included;
    ``latest`` the greatest number in each stage; ``prompt_versions`` is there if a version was
    tagged as a prompt's. Kubeflow knows it by ``number``; ``property_types`` tells which tags are
    numbers, flags or structures there.
    """

    pattern = keys.REGISTERED_MODEL

    incarnation = TextAttribute()
    home = TextAttribute(null=True)
    workspace = TextAttribute()
    name = TextAttribute()
    description = TextAttribute()
    creation_time = IntAttribute()
    last_update_time = IntAttribute()
    renamed_at = IntAttribute(null=True)
    last_version = IntAttribute()
    latest = TextMapAttribute()
    prompt_versions = FlagAttribute(null=True)
    tags = TextMapAttribute(null=True)
    aliases = TextMapAttribute(null=True)
    event = TextAttribute(null=True)
    number = IntAttribute(null=True)
    external_id = TextAttribute(null=True)
    property_types = TextMapAttribute(null=True)


class ModelHome(Item):
    """Whose versions are in this partition, and where that model itself is (``model_pk``)."""

    pattern = keys.MODEL_HOME

    version = IntAttribute()
    incarnation = TextAttribute()
    model_pk = TextAttribute()


class ModelVersion(MetaItem):
    """A version of a registered model: number ``model_version`` (``version`` counts writes).

    ``current_stage`` is ``Deleted_Internal`` once it was deleted; ``creation_id`` tells whose
    creation this is. The model's name is the model's to tell. Kubeflow knows it by ``number`` and
    ``kubeflow_name``; its ``source`` is the uri of the artifact ``source_artifact`` there.
    """

    pattern = keys.MODEL_VERSION

    incarnation = TextAttribute()
    model_version = IntAttribute()
    creation_id = TextAttribute()
    description = TextAttribute(null=True)
    user_id = TextAttribute(null=True)
    current_stage = TextAttribute()
    source = TextAttribute()
    storage_location = TextAttribute()
    run_id = TextAttribute(null=True)
    run_link = TextAttribute(null=True)
    model_id = TextAttribute(null=True)
    status = TextAttribute()
    status_message = TextAttribute(null=True)
    creation_time = IntAttribute()
    last_update_time = IntAttribute()
    tags = TextMapAttribute(null=True)
    event = TextAttribute(null=True)
    number = IntAttribute(null=True)
    kubeflow_name = TextAttribute(null=True)
    external_id = TextAttribute(null=True)
    property_types = TextMapAttribute(null=True)
    source_artifact = IntAttribute(null=True)


class ModelVersionTag(ChildItem):
    """A tag of a model version."""

    pattern = keys.MODEL_VERSION_TAG

    value = TextAttribute()


class ModelTag(ChildItem):
    """A tag of a registered model."""

    pattern = keys.MODEL_TAG

    value = TextAttribute()


class ModelAlias(ChildItem):
    """The version that an alias names; the key is the alias."""

    pattern = keys.MODEL_ALIAS

    alias = TextAttribute()
    model_version = IntAttribute()


class ModelEnd(Item):
    """With its ``ttl`` an archived version, or (version 0) the archived model, is to be deleted."""

    pattern = keys.MODEL_END

    version = IntAttribute()
    model_version = IntAttribute()


class RunModelVersion(Item):
    """A version was made from the run; it lives in partition ``home``."""

    pattern = keys.RUN_MODEL_VERSION

    version = IntAttribute()
    run_id = TextAttribute()
    incarnation = TextAttribute()
    home = TextAttribute()
    model_version = IntAttribute()
