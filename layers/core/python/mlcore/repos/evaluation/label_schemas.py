"""Label schemas: one item each in the partition of their experiment, and one that holds the
name."""

from __future__ import annotations

import json

from mlcore.db import keys
from mlcore.db.expression import Condition, Raw
from mlcore.db.table import Delete, Operation, Put, TransactionFailed, table
from mlcore.entities.evaluation.label_schemas import LabelSchema
from mlcore.ids import new_ulid, now_ms
from mlcore.models.evaluation import LabelSchema as SchemaItem
from mlcore.models.evaluation import LabelSchemaName
from mlcore.repos.evaluation import entity_refs
from mlcore.settle import Conflict


class NameTaken(Exception):
    """Another label schema of the experiment has the name."""


def create(schema: LabelSchema) -> None:
    """One transaction: the schema, whose id is new, its name and its place. Raises NameTaken."""
    place = entity_refs.put(schema.schema_id, schema.experiment_id)
    try:
        table.transact([_named(schema), Put(_item(schema)), place], new_ulid())
    except TransactionFailed as failed:
        raise NameTaken from failed


def find(schema_id: str) -> LabelSchema | None:
    """Two consistent GetItem."""
    experiment_id = entity_refs.experiment_of(schema_id)
    if experiment_id is None:
        return None
    item = table.get(keys.label_schema(experiment_id, schema_id))
    return None if item is None else _schema(item)


def find_by_name(experiment_id: str, name: str) -> LabelSchema | None:
    """Two consistent GetItem."""
    holder = table.get(keys.label_schema_name(experiment_id, name))
    if holder is None:
        return None
    item = table.get(keys.label_schema(experiment_id, LabelSchemaName.of(holder).schema_id))
    return None if item is None else _schema(item)


def of_experiment(experiment_id: str) -> list[LabelSchema]:
    """One consistent Query for each MB."""
    pk = keys.experiment(experiment_id).pk
    return [_schema(item) for item in table.query_all(pk, prefix=keys.label_schema_prefix())]


def replace(before: LabelSchema, after: LabelSchema) -> None:
    """Writes a schema that was read and then changed. Raises Conflict, NameTaken."""
    unchanged = Condition()
    unchanged.require_equal(SchemaItem.version, before.version)
    operations: list[Operation] = [Put(_item(after), unchanged)]
    if after.name != before.name:
        operations += [_named(after), Delete(keys.label_schema_name(*_place_of(before)))]
    try:
        table.transact(operations, new_ulid())
    except TransactionFailed as failed:
        raise (Conflict if 0 in failed.items else NameTaken) from failed


def delete(schema: LabelSchema) -> None:
    """May be repeated."""
    mine = Condition()
    mine.require_absent_or_equal(LabelSchemaName.schema_id, schema.schema_id)
    place = keys.label_schema(schema.experiment_id, schema.schema_id)
    name = keys.label_schema_name(*_place_of(schema))
    try:
        table.transact(
            [Delete(place), Delete(name, mine), entity_refs.gone(schema.schema_id)], new_ulid()
        )
    except TransactionFailed as failed:
        raise Conflict from failed


def _place_of(schema: LabelSchema) -> tuple[str, str]:
    return schema.experiment_id, schema.name


def _named(schema: LabelSchema) -> Put:
    place = keys.label_schema_name(*_place_of(schema))
    item = LabelSchemaName(
        PK=place.pk, SK=place.sk, schema_id=schema.schema_id, updated_at=now_ms()
    )
    free = Condition()
    free.require_absent_or_equal(LabelSchemaName.schema_id, schema.schema_id)
    return Put(dict(item.serialize()), free)


def _item(schema: LabelSchema) -> Raw:
    place = keys.label_schema(schema.experiment_id, schema.schema_id)
    item = SchemaItem(
        PK=place.pk,
        SK=place.sk,
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
    return dict(item.serialize())


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
