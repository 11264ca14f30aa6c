"""Declares the DynamoDB items in which runs are stored."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.attribute_types import (
    BytesAttribute,
    DoubleAttribute,
    FlagAttribute,
    IntAttribute,
    TextAttribute,
    TextMapAttribute,
)
from mlcore.models.base import ChildItem, Item, StagedItem


class Run(StagedItem):
    """A run with all its data except the metric history.

    ``epoch`` is the epoch of its experiment when the run was created, or when it was last deleted
    or restored itself. ``stage_changes`` counts the deletions and restorations of the run itself.
    ``quiet`` is the version of the run at which the indexer found that it had not been written to
    for a while. ``user_id`` is the user that the client named; ``created_by`` is the user who was
    logged in. ``bytes`` is the size of the maps; ``overflow`` names the maps that have texts in
    other items. ``rewinds`` says which points were deleted
    (:mod:`mlcore.repos.runs.history.rewinds`).
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
    rewinds = TextAttribute(null=True)
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
    """Maps a run's id to its experiment. ``rewinds`` counts the run's rewinds (deletions of the
    metric points after a step). After a move of the run was begun, and until it is done,
    ``moving_to`` is the target experiment and ``move_id`` the id of the attempt; a write that makes
    the move start again removes ``move_id``."""

    pattern = keys.RUN_REF

    version = IntAttribute()
    run_id = TextAttribute()
    experiment_id = TextAttribute()
    rewinds = IntAttribute(null=True)
    moving_to = TextAttribute(null=True)
    move_id = TextAttribute(null=True)


class RunMetric(ChildItem):
    """The latest point of one metric of a run, in a DynamoDB item of its own."""

    pattern = keys.RUN_METRIC

    value = DoubleAttribute()
    step = IntAttribute()
    timestamp = IntAttribute()


class RunMetricHistory(Item):
    """A pack: points of one metric. ``data`` is in the format of
    :mod:`mlcore.repos.runs.history.point_columns`. LSI2 sorts these items in the order of MLflow's
    history."""

    pattern = keys.RUN_METRIC_HISTORY

    version = IntAttribute()
    key = TextAttribute()
    data = BytesAttribute()
    lsi2sk = TextAttribute()
    count = IntAttribute()  # type: ignore[assignment]  # hides Model.count, a query


class RunMetricBatch(Item):
    """A batch: the metric points of one request, in the format of :class:`RunMetricHistory`
    (``data``). The item is as small as possible, since one is written at every step of every
    training. ``refused`` marks a batch whose request was refused after the batch had been written;
    its points were removed."""

    pattern = keys.RUN_METRIC_BATCH

    version = IntAttribute()
    data = BytesAttribute(null=True)
    refused = FlagAttribute(null=True)


class RunMetricFile(Item):
    """Metric points of many requests that were moved to a file of the artifact store: the file's
    location, and the directory of the metrics' positions in it
    (:mod:`mlcore.repos.runs.history.history_files`). ``event`` is set if the file has replaced
    another one: the filter of the table's stream then passes the record to the indexer, which
    removes the other file."""

    pattern = keys.RUN_METRIC_FILE

    version = IntAttribute()
    experiment_id = TextAttribute()
    run_id = TextAttribute()
    location = TextAttribute()
    directory = BytesAttribute()
    event = TextAttribute(null=True)


class RunParam(ChildItem):
    """A param of a run."""

    pattern = keys.RUN_PARAM

    value = TextAttribute()


class RunTag(ChildItem):
    """A tag of a run."""

    pattern = keys.RUN_TAG

    value = TextAttribute()


class RunInput(ChildItem):
    """A dataset that the run used; ``tags``, those of this use, is JSON ``[[key, value], …]``."""

    pattern = keys.RUN_INPUT

    name = TextAttribute()
    digest = TextAttribute()
    tags = TextAttribute()


class RunLoggedModel(ChildItem):
    """The item of one logged model that a run created or used, if the run's own item has no room
    for it."""

    pattern = keys.RUN_LOGGED_MODEL

    value = TextAttribute()
