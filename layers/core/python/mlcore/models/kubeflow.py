"""Declares the table's items that only Kubeflow's model registry API needs: entities that MLflow
does not have, and the numbers, names and external ids in Kubeflow's API.

Kubeflow identifies entities by numbers. A *context* is Kubeflow's word for a model, version,
experiment, run, environment or service.
"""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import IntAttribute, TextAttribute, TextMapAttribute
from mlcore.models.base import IndexedItem, Item


class ContextRef(Item):
    """Maps a Kubeflow number to the item of an MLflow entity.

    ``item_pk`` and ``item_sk`` are the item's current key; ``parent`` is the number of a version's
    model or of a run's experiment; ``incarnation`` (id across renames) and ``home`` (partition of
    the versions) are those of a model or of a version's model. ``renamed_at`` is when MLflow
    renamed a model, which counts as an update of its versions.
    """

    pattern = keys.CONTEXT_REF

    version = IntAttribute()
    number = IntAttribute()
    kind = TextAttribute()
    workspace = TextAttribute()
    item_pk = TextAttribute()
    item_sk = TextAttribute()
    parent = IntAttribute(null=True)
    incarnation = TextAttribute(null=True)
    home = TextAttribute(null=True)
    name = TextAttribute(null=True)
    renamed_at = IntAttribute(null=True)


class ContextChild(Item):
    """Lists a child of a Kubeflow context, such as a version of a model, by the child's name. The
    item holds the child's number, and the key of the child's item if the number does not determine
    it."""

    pattern = keys.CONTEXT_CHILD

    version = IntAttribute()
    number = IntAttribute()
    kind = TextAttribute()
    name = TextAttribute()
    item_pk = TextAttribute(null=True)
    item_sk = TextAttribute(null=True)


class NumberedItem(IndexedItem):
    """An entity that exists only in Kubeflow's API: ``properties`` holds its custom properties as
    JSON, ``details`` the fields of its kind as text. Where login is required, ``created_by`` is the
    user who may change it."""

    version = IntAttribute()
    number = IntAttribute()
    kind = TextAttribute()
    workspace = TextAttribute()
    created_by = TextAttribute(null=True)
    name = TextAttribute()
    description = TextAttribute(null=True)
    external_id = TextAttribute(null=True)
    creation_time = IntAttribute()
    last_update_time = IntAttribute()
    properties = TextMapAttribute(null=True)
    details = TextMapAttribute(null=True)


class ServingEnvironment(NumberedItem):
    """The item of a serving environment, in which Kubeflow serves registered models."""

    pattern = keys.SERVING_ENVIRONMENT


class InferenceService(NumberedItem):
    """The item of a Kubeflow inference service; ``parent`` is its serving environment's number."""

    pattern = keys.INFERENCE_SERVICE

    parent = IntAttribute()


class ServeModel(NumberedItem):
    """A record that the Kubeflow inference service ``parent`` serves or served a model version."""

    pattern = keys.SERVE_MODEL

    parent = IntAttribute()


class Artifact(NumberedItem):
    """An artifact of Kubeflow's registry, of any type (``kind``).

    ``parent`` is the version or run under which it was made, ``model`` that version's model. For a
    metric or parameter of a run, and for a dataset that was logged through MLflow, ``run_id`` and
    ``key`` locate MLflow's data, which holds the value. ``location`` is where the version's files
    are, if the version's ``source`` in MLflow only names a model.
    """

    pattern = keys.ARTIFACT

    parent = IntAttribute(null=True)
    model = IntAttribute(null=True)
    stored_name = TextAttribute(null=True)
    experiment_id = TextAttribute(null=True)
    run_id = TextAttribute(null=True)
    key = TextAttribute(null=True)
    location = TextAttribute(null=True)


class ContextName(Item):
    """Reserves the name of a Kubeflow serving environment."""

    pattern = keys.CONTEXT_NAME

    version = IntAttribute()
    number = IntAttribute()


class ExternalId(Item):
    """Reserves an external id (a client's own id) for a Kubeflow entity."""

    pattern = keys.EXTERNAL_ID

    version = IntAttribute()
    number = IntAttribute()
