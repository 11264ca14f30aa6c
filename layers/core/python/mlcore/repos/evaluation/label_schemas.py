"""Label schemas: one item each in their experiment's partition, and one that locks the name."""

from __future__ import annotations

import json

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.entities.evaluation.label_schemas import LabelSchema
from mlcore.entities.evaluation.review_queues import ReviewQueue
from mlcore.entities.experiments import Experiment
from mlcore.ids import now_ms
from mlcore.models.evaluation import LabelSchema as SchemaItem
from mlcore.models.evaluation import LabelSchemaName
from mlcore.repos.evaluation import entities


def create(schema: LabelSchema) -> None:
    """Writes a new label schema, whose id the caller has generated. Raises EntityNameTaken if
    another schema of the experiment has the name."""
    entities.create(_KIND, schema, _NAMES)


def find(schema_id: str, workspace: str) -> LabelSchema | None:
    """Returns a label schema; None if it does not exist or if it is in another workspace. At most
    two round trips."""
    return entities.find(_KIND, schema_id, workspace)


def find_by_name(experiment: Experiment, name: str) -> LabelSchema | None:
    """Returns an experiment's label schema with this name; None if there is none. At most two
    consistent GetItem."""
    return entities.find_by_name(_KIND, _NAMES, experiment, name)


def of_experiment(owner: Experiment | ReviewQueue) -> list[LabelSchema]:
    """Returns the label schemas of an experiment, or of the experiment of a review queue; one
    consistent Query per MB."""
    return entities.of_experiment(_KIND, owner.experiment_id)


def replace(before: LabelSchema, after: LabelSchema) -> None:
    """Writes a changed label schema. Raises WriteConflict if it was written or deleted since
    ``before`` was read, EntityNameTaken if another schema of the experiment has the new name."""
    entities.rename(_KIND, _NAMES, before, after)


def delete(schema: LabelSchema) -> None:
    """Deletes a label schema. Idempotent. Raises WriteConflict if it was written since it was
    read."""
    entities.delete(_KIND, _NAMES, schema)


def _item(schema: LabelSchema) -> SchemaItem:
    key = keys.label_schema(schema.experiment_id, schema.schema_id)
    return SchemaItem(
        PK=key.pk,
        SK=key.sk,
        entity_id=schema.schema_id,
        experiment_id=schema.experiment_id,
        name=schema.name,
        schema_type=schema.schema_type,
        input=json.dumps(schema.input),
        instruction=schema.instruction,
        enable_comment=schema.enable_comment,
        is_default=schema.is_default,
        created_time=schema.created_time,
        last_update_time=schema.last_update_time,
        version=schema.version + 1,
        updated_at=now_ms(),
    )


def _schema(raw: Raw) -> LabelSchema:
    item = SchemaItem.of(raw)
    return LabelSchema(
        schema_id=item.entity_id,
        experiment_id=item.experiment_id,
        name=item.name,
        schema_type=item.schema_type,
        input=json.loads(item.input),
        instruction=item.instruction,
        enable_comment=item.enable_comment,
        is_default=item.is_default,
        created_time=item.created_time,
        last_update_time=item.last_update_time,
        version=item.version,
    )


_KIND: entities.StoredKind[LabelSchema] = entities.StoredKind(
    entity_id=lambda schema: schema.schema_id,
    key_of=keys.label_schema,
    prefix=keys.label_schema_prefix,
    item=_item,
    entity=_schema,
    version=SchemaItem.version,
)
_NAMES: entities.NameLocks[LabelSchema] = entities.NameLocks(
    keys.label_schema_name, LabelSchemaName, LabelSchemaName.schema_id
)
