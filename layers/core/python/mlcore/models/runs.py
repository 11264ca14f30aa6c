"""Items of runs."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attributes import (
    BytesAttribute,
    DoubleAttribute,
    FlagAttribute,
    IntAttribute,
    TextAttribute,
    TextMapAttribute,
)
from mlcore.models.base import ChildItem, Item, StagedItem


class Run(StagedItem):
    """A run, with everything of it but its metric history.

    ``epoch`` is its experiment's at the run's creation, or its own last deletion or restoration.
    ``stage_changes`` counts the deletions and restorations of the run itself.
    ``quiet`` is the version in which the run was found not to have been written to for a while;
    ``last_write`` is of earlier versions.
    ``user_id`` is what the client says of its user; ``created_by`` is who was logged in.
    ``bytes`` is the size of the maps; ``overflow`` names the maps that have texts outside.
    """

    pattern = keys.RUN

    run_id = TextAttribute()
    experiment_id = TextAttribute()
    run_name = TextAttribute()
    user_id = TextAttribute()
    created_by = TextAttribute(null=True)
    status = TextAttribute()
    start_time = IntAttribute()
    end_time = IntAttribute(null=True)
    deleted_time = IntAttribute(null=True)
    stage_changes = IntAttribute(null=True)
    artifact_uri = TextAttribute()
    primary_metric = TextAttribute(null=True)
    quiet = IntAttribute(null=True)
    last_write = TextAttribute(null=True)
    metrics = TextMapAttribute(null=True)
    params = TextMapAttribute(null=True)
    tags = TextMapAttribute(null=True)
    inputs = TextMapAttribute(null=True)
    model_inputs = TextMapAttribute(null=True)
    model_outputs = TextMapAttribute(null=True)
    number = IntAttribute(null=True)
    external_id = TextAttribute(null=True)
    property_types = TextMapAttribute(null=True)


class RunReference(Item):
    """Where a run is; ``history_order`` is there if LSI2 has all packs of its history."""

    pattern = keys.RUN_REF

    version = IntAttribute()
    run_id = TextAttribute()
    experiment_id = TextAttribute()
    history_order = IntAttribute(null=True)


class RunMetric(ChildItem):
    """The latest point of a metric."""

    pattern = keys.RUN_METRIC

    value = DoubleAttribute()
    step = IntAttribute()
    timestamp = IntAttribute()


class RunMetricHistory(Item):
    """Points of one metric: ``data`` as :mod:`mlcore.repos.runs.point_columns` writes it; of
    earlier versions ``points``, JSON ``[[step, timestamp, value], …]``. LSI2 has them in the order
    of MLflow's history."""

    pattern = keys.RUN_METRIC_HISTORY

    version = IntAttribute()
    key = TextAttribute()
    data = BytesAttribute(null=True)
    points = TextAttribute(null=True)
    lsi2sk = TextAttribute(null=True)
    count = IntAttribute()  # type: ignore[assignment]  # hides Model.count, a query


class RunMetricBatch(Item):
    """Points of a request: ``data`` as of a pack; of earlier versions ``points``, JSON
    ``{key: [[step, timestamp, value], …]}``, and whose they are. As small as it can be: it is
    written at every step of every training. ``refused``: of a request that was refused after all,
    without its points."""

    pattern = keys.RUN_METRIC_BATCH

    version = IntAttribute()
    data = BytesAttribute(null=True)
    points = TextAttribute(null=True)
    run_id = TextAttribute(null=True)
    experiment_id = TextAttribute(null=True)
    refused = FlagAttribute(null=True)


class RunMetricFile(Item):
    """Points of many requests that are in a file of the artifact store: where it is, and what of
    which metric is where in it (:mod:`mlcore.repos.runs.history_files`)."""

    pattern = keys.RUN_METRIC_FILE

    version = IntAttribute()
    experiment_id = TextAttribute()
    run_id = TextAttribute()
    location = TextAttribute()
    directory = BytesAttribute()


class RunParam(ChildItem):
    """A param."""

    pattern = keys.RUN_PARAM

    value = TextAttribute()


class RunTag(ChildItem):
    """A tag of a run."""

    pattern = keys.RUN_TAG

    value = TextAttribute()


class RunInput(ChildItem):
    """A dataset that the run used; ``tags`` is JSON ``[[key, value], …]``."""

    pattern = keys.RUN_INPUT

    name = TextAttribute()
    digest = TextAttribute()
    tags = TextAttribute()


class RunLoggedModel(ChildItem):
    """A model that the run logged or used."""

    pattern = keys.RUN_LOGGED_MODEL

    value = TextAttribute()
