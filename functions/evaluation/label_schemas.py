"""Creates, changes and lists label schemas. Each experiment has a default one, which is created
when its label schemas are first listed."""

from __future__ import annotations

import contextlib
from typing import Any
from uuid import uuid4

from evaluation import experiment_lookup, newest_first_pages
from evaluation import label_schema_messages as m
from mlcore import errors, ids
from mlcore.entities.evaluation.label_schemas import (
    DEFAULT_INSTRUCTION,
    DEFAULT_NAME,
    FEEDBACK,
    Input,
    LabelSchema,
)
from mlcore.http import Request
from mlcore.limits.evaluation.label_schemas import (
    check_input,
    check_instruction,
    check_name,
    check_same_kind,
)
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.evaluation import label_schemas
from mlcore.repos.evaluation.entities import EntityNameTaken
from mlcore.responses.evaluation import label_schemas as responses
from mlcore.wire import Message


def create_label_schema(message: m.CreateLabelSchema, request: Request) -> dict[str, Any]:
    if message.type not in (FEEDBACK, "EXPECTATION"):
        raise errors.InvalidParameterValue(
            "Label schema `type` must be one of FEEDBACK or EXPECTATION; got proto enum value 0."
        )
    input_fields = _input(message.input)
    instruction = message.instruction if message.has("instruction") else None
    check_name(message.name)
    check_instruction(instruction)
    check_input(input_fields)
    experiment_id = experiment_lookup.get_unless_deleted(
        message.experiment_id, request
    ).experiment_id
    now = ids.now_ms()
    schema = LabelSchema(
        schema_id=_new_id(),
        experiment_id=experiment_id,
        name=message.name,
        schema_type=message.type,
        input=input_fields,
        instruction=instruction,
        enable_comment=message.enable_comment,
        is_default=False,
        created_time=now,
        last_update_time=now,
    )
    try:
        label_schemas.create(schema)
    except EntityNameTaken as taken:
        raise _name_taken(schema) from taken
    return {"label_schema": responses.label_schema(schema)}


def get_label_schema(message: m.GetLabelSchema, request: Request) -> dict[str, Any]:
    schema = find(message.schema_id, request)
    if schema is None:
        raise _missing(message.schema_id)
    return {"label_schema": responses.label_schema(schema)}


def get_by_name(message: m.GetLabelSchemaByName, request: Request) -> dict[str, Any]:
    experiment = experiment_lookup.get_unless_deleted(message.experiment_id, request)
    schema = label_schemas.find_by_name(experiment, message.name)
    if schema is None:
        raise errors.ResourceDoesNotExist(
            f"Label schema with name '{message.name}' not found for experiment "
            f"'{message.experiment_id}'."
        )
    return {"label_schema": responses.label_schema(schema)}


def list_label_schemas(message: m.ListLabelSchemas, request: Request) -> dict[str, Any]:
    """Returns a page of an experiment's label schemas, newest first. Creates the default one if it
    is missing and can be stored."""
    limit = message.max_results if message.has("max_results") else 100
    experiment = experiment_lookup.get_unless_deleted(message.experiment_id, request)
    experiment_id = experiment.experiment_id
    after = newest_first_pages.parse_token(message.page_token, experiment_id)
    schemas = label_schemas.of_experiment(experiment)
    if not any(schema.is_default for schema in schemas):
        # If nothing can be stored now, a later list creates it.
        with contextlib.suppress(EntityNameTaken, errors.InsufficientStorage):
            label_schemas.create(_default(experiment_id))
        schemas = label_schemas.of_experiment(experiment)
    rows = newest_first_pages.rows_after(
        ((-schema.created_time, schema.schema_id, schema) for schema in schemas), after
    )
    return newest_first_pages.page(
        "label_schemas", rows, limit, experiment_id, responses.label_schema
    )


def update_label_schema(message: m.UpdateLabelSchema, request: Request) -> dict[str, Any]:
    """Changes the fields of a label schema that the request has. Raises InvalidParameterValue for
    the default one."""

    def attempt() -> LabelSchema:
        schema = find(message.schema_id, request)
        if schema is None:
            raise _missing(message.schema_id)
        if schema.is_default:
            raise errors.InvalidParameterValue(
                "The experiment's default question cannot be edited."
            )
        wanted = schema._replace(last_update_time=ids.now_ms(), **_changes(message, schema))
        try:
            label_schemas.replace(schema, wanted)
        except EntityNameTaken as taken:
            raise _name_taken(wanted) from taken
        return wanted

    return {"label_schema": responses.label_schema(retry_on_conflict("label schema", attempt))}


def delete_label_schema(message: m.DeleteLabelSchema, request: Request) -> dict[str, Any]:
    """Deletes a label schema. A missing one is not an error; the default one cannot be deleted."""

    def attempt() -> None:
        schema = find(message.schema_id, request)
        if schema is None:
            return
        if schema.is_default:
            raise errors.InvalidParameterValue(
                "The experiment's default question cannot be deleted."
            )
        label_schemas.delete(schema)

    retry_on_conflict("label schema", attempt)
    return {}


def find(schema_id: str, request: Request) -> LabelSchema | None:
    return label_schemas.find(schema_id, request.workspace)


def _changes(message: m.UpdateLabelSchema, schema: LabelSchema) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if message.has("name"):
        check_name(message.name)
        changes["name"] = message.name
    if message.has("instruction"):
        check_instruction(message.instruction)
        changes["instruction"] = message.instruction
    if message.has("enable_comment"):
        changes["enable_comment"] = message.enable_comment
    if message.input is not None:
        input_fields = _input(message.input)
        check_input(input_fields)
        check_same_kind(schema.input, input_fields)
        changes["input"] = input_fields
    return changes


def _input(message: m.LabelSchemaInput | None) -> Input:
    """Returns the input's kind and fields, for example ``{"numeric": {"min_value": 1.0}}``. Raises
    InvalidParameterValue if the message has no kind."""
    if message is not None:
        if message.pass_fail is not None:
            given = message.pass_fail
            fields = {
                "positive_label": given.positive_label,
                "negative_label": given.negative_label,
            }
            return {"pass_fail": fields}
        if message.categorical is not None:
            options = list(message.categorical.options)
            multi_select = message.categorical.multi_select
            return {"categorical": {"options": options, "multi_select": multi_select}}
        if message.numeric is not None:
            return {"numeric": _set_fields(message.numeric, "min_value", "max_value")}
        if message.text is not None:
            return {"text": _set_fields(message.text, "max_length")}
    raise errors.InvalidParameterValue(
        "Label schema `input` must have exactly one of `pass_fail`, `categorical`, "
        "`numeric`, or `text` set; got an empty oneof."
    )


def _set_fields(message: Message, *names: str) -> dict[str, Any]:
    return {name: getattr(message, name) for name in names if message.has(name)}


def _default(experiment_id: str) -> LabelSchema:
    now = ids.now_ms()
    return LabelSchema(
        schema_id=_new_id(),
        experiment_id=experiment_id,
        name=DEFAULT_NAME,
        schema_type=FEEDBACK,
        input={"text": {}},
        instruction=DEFAULT_INSTRUCTION,
        enable_comment=False,
        is_default=True,
        created_time=now,
        last_update_time=now,
    )


def _new_id() -> str:
    return f"ls-{uuid4().hex}"


def _missing(schema_id: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Label schema with id '{schema_id}' not found.")


def _name_taken(schema: LabelSchema) -> errors.ResourceAlreadyExists:
    return errors.ResourceAlreadyExists(
        f"Label schema with name '{schema.name}' already exists for experiment "
        f"'{schema.experiment_id}'."
    )
