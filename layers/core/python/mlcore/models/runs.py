"""Items of runs."""

from __future__ import annotations

from pynamodb.attributes import UnicodeAttribute

from mlcore.db import keys
from mlcore.db.attributes import DoubleAttribute, IntAttribute, TextMapAttribute
from mlcore.models.base import ChildItem, IndexedItem, Item


class Run(IndexedItem):
    """A run, with everything of it but its metric history.

    ``epoch`` is its experiment's at the run's creation, or its own last deletion or restoration.
    ``bytes`` is the size of the maps; ``overflow`` names the maps that have texts outside.
    """

    pattern = keys.RUN

    run_id = UnicodeAttribute()
    experiment_id = UnicodeAttribute()
    run_name = UnicodeAttribute()
    user_id = UnicodeAttribute()
    status = UnicodeAttribute()
    start_time = IntAttribute(null=True)
    end_time = IntAttribute(null=True)
    deleted_time = IntAttribute(null=True)
    artifact_uri = UnicodeAttribute()
    stage = UnicodeAttribute()
    epoch = IntAttribute()
    primary_metric = UnicodeAttribute(null=True)
    last_write = UnicodeAttribute(null=True)
    metrics = TextMapAttribute(null=True)
    params = TextMapAttribute(null=True)
    tags = TextMapAttribute(null=True)
    inputs = TextMapAttribute(null=True)
    model_inputs = TextMapAttribute(null=True)
    model_outputs = TextMapAttribute(null=True)
    bytes = IntAttribute(null=True)
    overflow = UnicodeAttribute(null=True)


class RunReference(Item):
    """Where a run is; ``history_order`` is there if LSI2 has all packs of its history."""

    pattern = keys.RUN_REF

    run_id = UnicodeAttribute()
    experiment_id = UnicodeAttribute()
    history_order = IntAttribute(null=True)


class RunMetric(ChildItem):
    """The latest point of a metric."""

    pattern = keys.RUN_METRIC

    value = DoubleAttribute()
    step = IntAttribute()
    timestamp = IntAttribute()


class RunMetricHistory(Item):
    """Points of one metric: JSON ``[[step, timestamp, value], …]``. LSI2 has them in the order of
    MLflow's history."""

    pattern = keys.RUN_METRIC_HISTORY

    lsi2sk = UnicodeAttribute(null=True)
    key = UnicodeAttribute()
    points = UnicodeAttribute()
    count = IntAttribute()  # type: ignore[assignment]  # hides Model.count, a query


class RunMetricBatch(Item):
    """Points of many metrics: JSON ``{key: [[step, timestamp, value], …]}``."""

    pattern = keys.RUN_METRIC_BATCH

    run_id = UnicodeAttribute()
    experiment_id = UnicodeAttribute()
    points = UnicodeAttribute()


class RunParam(ChildItem):
    """A param."""

    pattern = keys.RUN_PARAM

    value = UnicodeAttribute()


class RunTag(ChildItem):
    """A tag of a run."""

    pattern = keys.RUN_TAG

    value = UnicodeAttribute()


class RunInput(ChildItem):
    """A dataset that the run used; ``tags`` is JSON ``[[key, value], …]``."""

    pattern = keys.RUN_INPUT

    name = UnicodeAttribute()
    digest = UnicodeAttribute()
    tags = UnicodeAttribute()


class RunLoggedModel(ChildItem):
    """A model that the run logged or used."""

    pattern = keys.RUN_LOGGED_MODEL

    value = UnicodeAttribute()
