"""Declares the DynamoDB items of evaluation datasets, scorers, background jobs, label schemas,
review queues and issues."""

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
from mlcore.models.base import IndexedItem, Item


class EvaluationDataset(Item):
    """The item of an evaluation dataset; ``experiment_ids`` is one text of ids with spaces between
    them; in an id, whitespace and "%" are percent-encoded."""

    pattern = keys.EVALUATION_DATASET

    version = IntAttribute()
    dataset_id = TextAttribute()
    name = TextAttribute()
    digest = TextAttribute()
    tags = TextMapAttribute()
    schema = TextAttribute(null=True)
    profile = TextAttribute(null=True)
    created_time = IntAttribute()
    last_update_time = IntAttribute()
    created_by = TextAttribute(null=True)
    last_updated_by = TextAttribute(null=True)
    experiment_ids = TextAttribute(null=True)


class EvaluationRecord(IndexedItem):
    """A record of an evaluation dataset; ``number`` is its position in the request that added it,
    ``data`` is JSON compressed with zlib."""

    pattern = keys.EVALUATION_RECORD

    version = IntAttribute()
    record_id = TextAttribute()
    created_time = IntAttribute()
    number = IntAttribute()
    data = BytesAttribute()


class ScorerVersion(Item):
    """A version of a scorer (code or instructions that judge traces); ``number`` is the version,
    ``version`` counts writes."""

    pattern = keys.SCORER_VERSION

    version = IntAttribute()
    name = TextAttribute()
    number = IntAttribute()
    scorer_id = TextAttribute()
    experiment_id = TextAttribute()
    serialized_scorer = TextAttribute()
    creation_time = IntAttribute()
    seal = TextAttribute(null=True)


class OnlineScorer(Item):
    """The online settings of a scorer: the server runs it on the share ``sample_rate`` (0 to 1) of
    the traces since ``since`` that match ``filter_string``, with the rights of ``owner``. A scorer
    that calls a model may use only the gateway endpoint ``endpoint_id``. A scorer that is code runs
    only while the digest of the registered version is ``seal``."""

    pattern = keys.ONLINE_SCORER

    version = IntAttribute()
    config_id = TextAttribute()
    workspace = TextAttribute()
    experiment_id = TextAttribute()
    name = TextAttribute()
    scorer_id = TextAttribute()
    sample_rate = DoubleAttribute()
    filter_string = TextAttribute(null=True)
    since = IntAttribute()
    owner = TextAttribute(null=True)
    owner_id = IntAttribute(null=True)
    endpoint_id = TextAttribute(null=True)
    seal = TextAttribute(null=True)


class OnlineProgress(Item):
    """The position (``trace_time``, ``trace_id``) up to which an experiment's online scorers have
    been given traces."""

    pattern = keys.ONLINE_PROGRESS

    version = IntAttribute()
    trace_time = IntAttribute()
    trace_id = TextAttribute()


class Job(Item):
    """A background job: it runs scorers on traces, detects issues or optimizes a prompt.
    ``params``, ``result`` and ``summary`` are JSON compressed with zlib."""

    pattern = keys.JOB

    version = IntAttribute()
    job_id = TextAttribute()
    workspace = TextAttribute()
    name = TextAttribute()
    params = BytesAttribute()
    status = TextAttribute()
    creation_time = IntAttribute()
    last_update_time = IntAttribute()
    creator = TextAttribute(null=True)
    creator_id = IntAttribute(null=True)
    key_id = TextAttribute(null=True)
    timeout = TextAttribute(null=True)
    result = BytesAttribute(null=True)
    error_message = TextAttribute(null=True)
    retry_count = IntAttribute()
    completed = IntAttribute(null=True)
    total = IntAttribute(null=True)
    lease_until = IntAttribute(null=True)
    summary = BytesAttribute(null=True)
    dollars = TextAttribute(null=True)
    stage = TextAttribute(null=True)
    throttled = IntAttribute(null=True)


class JobCall(Item):
    """The answer to a model call of a job, or how the call failed: JSON compressed with zlib."""

    pattern = keys.JOB_CALL

    request_digest = TextAttribute()
    number = IntAttribute()
    answer = BytesAttribute()


class IssueDetection(Item):
    """The latest job that detects issues in an experiment, and the MLflow run of that job."""

    pattern = keys.ISSUE_DETECTION

    job_id = TextAttribute()
    run_id = TextAttribute()
    begun = IntAttribute()


class DetectionSchedule(IndexedItem):
    """A schedule of issue detection as ``owner`` has confirmed it: the texts of the experiment's
    tags with the schedule and the filter of traces, and the times (ms) at which it has fired last
    and fires next."""

    pattern = keys.DETECTION_SCHEDULE

    version = IntAttribute()
    workspace = TextAttribute()
    experiment_id = TextAttribute()
    schedule = TextAttribute()
    trace_filter = TextAttribute(null=True)
    owner = TextAttribute(null=True)
    owner_id = IntAttribute(null=True)
    last_fire_time = IntAttribute()
    fire_time = IntAttribute()


class LabelSchema(Item):
    """A label schema: a question that reviewers answer about traces. ``input`` is JSON as clients
    send it."""

    pattern = keys.LABEL_SCHEMA

    version = IntAttribute()
    entity_id = TextAttribute()
    experiment_id = TextAttribute()
    name = TextAttribute()
    schema_type = TextAttribute()
    input = TextAttribute()
    instruction = TextAttribute(null=True)
    enable_comment = FlagAttribute()
    is_default = FlagAttribute()
    created_time = IntAttribute()
    last_update_time = IntAttribute()


class LabelSchemaName(Item):
    """Reserves the name of a label schema in its experiment."""

    pattern = keys.LABEL_SCHEMA_NAME

    schema_id = TextAttribute()


class ReviewQueue(Item):
    """A review queue; ``users`` and ``schema_ids`` are JSON lists. ``version`` also counts requests
    that attach items to the queue, so that they conflict with a change of the queue."""

    pattern = keys.REVIEW_QUEUE

    version = IntAttribute()
    entity_id = TextAttribute()
    experiment_id = TextAttribute()
    name = TextAttribute()
    queue_type = TextAttribute()
    users = TextAttribute()
    schema_ids = TextAttribute()
    created_by = TextAttribute(null=True)
    created_time = IntAttribute()
    last_update_time = IntAttribute()


class ReviewQueueName(Item):
    """Reserves the name of a review queue."""

    pattern = keys.REVIEW_QUEUE_NAME

    queue_id = TextAttribute()


class ReviewQueueItem(Item):
    """The item of one trace in a review queue, with the state of the trace's review."""

    pattern = keys.REVIEW_QUEUE_ITEM

    version = IntAttribute()
    queue_id = TextAttribute()
    item_id = TextAttribute()
    item_type = TextAttribute()
    status = TextAttribute()
    completed_by = TextAttribute(null=True)
    completed_time = IntAttribute(null=True)
    created_time = IntAttribute()
    last_update_time = IntAttribute()


class Issue(Item):
    """An issue: a problem that was found in an experiment's traces. ``root_causes`` and
    ``categories`` are JSON lists, ``metadata`` is a JSON object."""

    pattern = keys.ISSUE

    version = IntAttribute()
    entity_id = TextAttribute()
    experiment_id = TextAttribute()
    name = TextAttribute()
    description = TextAttribute()
    status = TextAttribute()
    severity = TextAttribute(null=True)
    root_causes = TextAttribute(null=True)
    categories = TextAttribute(null=True)
    source_run_id = TextAttribute(null=True)
    created_by = TextAttribute(null=True)
    created_time = IntAttribute()
    last_update_time = IntAttribute()
    later_seen_time = IntAttribute(null=True)
    updated_by = TextAttribute(null=True)
    metadata = TextAttribute(null=True)


class EntityReference(Item):
    """Maps the id of a scorer, label schema, review queue or issue to its experiment."""

    pattern = keys.ENTITY_REF

    entity_id = TextAttribute()
    experiment_id = TextAttribute()
