"""Items of Kubeflow's model registry, beside those that it shares with MLflow."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attributes import IntAttribute, TextAttribute, TextMapAttribute
from mlcore.models.base import IndexedItem, Item


class ContextRef(Item):
    """Where the entity of MLflow's is that has this number.

    ``item_pk`` and ``item_sk`` are its item's key now; ``parent`` the number of a version's model
    or of a run's experiment; ``incarnation`` and ``home`` those of a model or of a version's.
    ``renamed_at`` is when MLflow renamed a model, which counts as an update of its versions.
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
    """A child of a context: its number and, where that is not by its number, its item's key."""

    pattern = keys.CONTEXT_CHILD

    version = IntAttribute()
    number = IntAttribute()
    kind = TextAttribute()
    name = TextAttribute()
    item_pk = TextAttribute(null=True)
    item_sk = TextAttribute(null=True)


class NumberedItem(IndexedItem):
    """What is Kubeflow's alone: ``properties`` holds its custom properties as JSON, ``details`` the
    fields of its kind as text. ``created_by`` may change it where callers log in."""

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
    """Where models are served."""

    pattern = keys.SERVING_ENVIRONMENT


class InferenceService(NumberedItem):
    """A model served in the environment ``parent``."""

    pattern = keys.INFERENCE_SERVICE

    parent = IntAttribute()


class ServeModel(NumberedItem):
    """A version that the service ``parent`` serves or served."""

    pattern = keys.SERVE_MODEL

    parent = IntAttribute()


class Artifact(NumberedItem):
    """An artifact of any type (``kind``).

    ``parent`` is the version or run that it was made under, ``model`` that version's model. Of a
    metric or parameter of a run, and of a data set that MLflow logged, ``run_id`` and ``key`` tell
    where MLflow has it: its value is there. ``location`` is where the files are of a version whose
    ``source`` is the name of a model.
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
    """Who holds the name of a serving environment."""

    pattern = keys.CONTEXT_NAME

    version = IntAttribute()
    number = IntAttribute()


class ExternalId(Item):
    """Who holds an external id."""

    pattern = keys.EXTERNAL_ID

    version = IntAttribute()
    number = IntAttribute()
