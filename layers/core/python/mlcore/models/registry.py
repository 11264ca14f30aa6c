"""Declares the DynamoDB items of registered models, their versions, tags and aliases."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import FlagAttribute, IntAttribute, TextAttribute, TextMapAttribute
from mlcore.models.base import ChildItem, Item, MetaItem


class RegisteredModel(MetaItem):
    """A registered model, under its current name.

    ``incarnation`` identifies it for life, across renames. ``home`` is the partition of its
    versions, if that is not its own. ``last_version`` is the greatest version number ever assigned,
    deleted versions included; ``latest`` the greatest number in each stage; ``prompt_versions`` is
    set if a version was tagged as a prompt's. ``number`` is its id in Kubeflow's API;
    ``property_types`` lists the tags that are numbers, flags or structures there.
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
    """Maps a partition with versions to the model that has them: the model's ``incarnation``, and
    the partition of its item (``model_pk``). ``is_shared`` is set once another caller than the one
    that deleted the model clears the partition."""

    pattern = keys.MODEL_HOME

    version = IntAttribute()
    incarnation = TextAttribute()
    model_pk = TextAttribute()
    is_shared = FlagAttribute(null=True)


class ModelVersion(MetaItem):
    """A version of a registered model. Its number is ``model_version`` (``version`` counts writes).

    ``current_stage`` is ``Deleted_Internal`` after its deletion. ``creation_id`` identifies the
    request that created it. The model's name is stored only in the model's item. ``number`` and
    ``kubeflow_name`` identify the version in Kubeflow's API, where ``source`` is the URI of the
    artifact ``source_artifact``.
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
    """The item of a registered model's tag that does not fit into the model's own item."""

    pattern = keys.MODEL_TAG

    value = TextAttribute()


class ModelAlias(ChildItem):
    """Maps an alias of a registered model to one of its versions. The item's key has the alias."""

    pattern = keys.MODEL_ALIAS

    alias = TextAttribute()
    model_version = IntAttribute()


class ModelEnd(Item):
    """A timer for deleting an archived model version or, if ``model_version`` is 0, the archived
    model: when ``ttl`` expires, DynamoDB removes this item, and the indexer deletes what it names.
    """

    pattern = keys.MODEL_END

    version = IntAttribute()
    model_version = IntAttribute()


class RunModelVersion(Item):
    """Records that a model version was made from a run; in the run's partition. The version's item
    is in partition ``home``."""

    pattern = keys.RUN_MODEL_VERSION

    version = IntAttribute()
    run_id = TextAttribute()
    incarnation = TextAttribute()
    home = TextAttribute()
    model_version = IntAttribute()
