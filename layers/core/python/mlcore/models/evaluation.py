"""Items of evaluation datasets, scorers, label schemas, review queues and issues."""

from __future__ import annotations

from pynamodb.attributes import BooleanAttribute, UnicodeAttribute

from mlcore.db import keys
from mlcore.db.attributes import BytesAttribute, IntAttribute, TextMapAttribute
from mlcore.models.base import IndexedItem, Item


class EvaluationDataset(Item):
    """An evaluation dataset; ``experiment_ids`` have spaces between them."""

    pattern = keys.EVALUATION_DATASET

    dataset_id = UnicodeAttribute()
    name = UnicodeAttribute()
    digest = UnicodeAttribute()
    tags = TextMapAttribute()
    schema = UnicodeAttribute(null=True)
    profile = UnicodeAttribute(null=True)
    created_time = IntAttribute()
    last_update_time = IntAttribute()
    created_by = UnicodeAttribute(null=True)
    last_updated_by = UnicodeAttribute(null=True)
    experiment_ids = UnicodeAttribute(null=True)


class EvaluationRecord(IndexedItem):
    """A record; ``number`` is its place in the request that brought it, ``data`` zlib of JSON."""

    pattern = keys.EVALUATION_RECORD

    record_id = UnicodeAttribute()
    created_time = IntAttribute()
    number = IntAttribute()
    data = BytesAttribute()


class ScorerVersion(Item):
    """A version of a scorer."""

    pattern = keys.SCORER_VERSION

    name = UnicodeAttribute()
    number = IntAttribute()
    scorer_id = UnicodeAttribute()
    experiment_id = UnicodeAttribute()
    serialized_scorer = UnicodeAttribute()
    creation_time = IntAttribute()


class LabelSchema(Item):
    """A label schema; ``input`` is JSON as clients send it."""

    pattern = keys.LABEL_SCHEMA

    entity_id = UnicodeAttribute()
    experiment_id = UnicodeAttribute()
    name = UnicodeAttribute()
    schema_type = UnicodeAttribute()
    input = UnicodeAttribute()
    instruction = UnicodeAttribute(null=True)
    enable_comment = BooleanAttribute()
    is_default = BooleanAttribute()
    created_time = IntAttribute()
    last_update_time = IntAttribute()


class LabelSchemaName(Item):
    """Holds the name of a label schema."""

    pattern = keys.LABEL_SCHEMA_NAME

    schema_id = UnicodeAttribute()


class ReviewQueue(Item):
    """A review queue; ``users`` and ``schema_ids`` are JSON lists, ``items`` counts what was ever
    attached, so that whoever attaches and whoever changes the questions notice one another."""

    pattern = keys.REVIEW_QUEUE

    entity_id = UnicodeAttribute()
    experiment_id = UnicodeAttribute()
    name = UnicodeAttribute()
    queue_type = UnicodeAttribute()
    users = UnicodeAttribute()
    schema_ids = UnicodeAttribute()
    created_by = UnicodeAttribute(null=True)
    created_time = IntAttribute()
    last_update_time = IntAttribute()


class ReviewQueueName(Item):
    """Holds the name of a review queue."""

    pattern = keys.REVIEW_QUEUE_NAME

    queue_id = UnicodeAttribute()


class ReviewQueueItem(Item):
    """A trace in a review queue."""

    pattern = keys.REVIEW_QUEUE_ITEM

    queue_id = UnicodeAttribute()
    item_id = UnicodeAttribute()
    item_type = UnicodeAttribute()
    status = UnicodeAttribute()
    completed_by = UnicodeAttribute(null=True)
    completed_time = IntAttribute(null=True)
    created_time = IntAttribute()
    last_update_time = IntAttribute()


class Issue(Item):
    """An issue; ``root_causes`` and ``categories`` are JSON lists."""

    pattern = keys.ISSUE

    entity_id = UnicodeAttribute()
    experiment_id = UnicodeAttribute()
    name = UnicodeAttribute()
    description = UnicodeAttribute()
    status = UnicodeAttribute()
    severity = UnicodeAttribute(null=True)
    root_causes = UnicodeAttribute(null=True)
    categories = UnicodeAttribute(null=True)
    source_run_id = UnicodeAttribute(null=True)
    created_by = UnicodeAttribute(null=True)
    created_time = IntAttribute()
    last_update_time = IntAttribute()


class EntityReference(Item):
    """The experiment of a label schema, review queue or issue."""

    pattern = keys.ENTITY_REF

    entity_id = UnicodeAttribute()
    experiment_id = UnicodeAttribute()
