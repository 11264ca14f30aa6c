"""Transfers label schemas. They keep their ids. If the experiment in the target table has a schema
of the same name already, such as the default one, that schema is used with its own id."""

from __future__ import annotations

from typing import Final, NamedTuple

from mlcore import errors
from mlcore.entities.evaluation.label_schemas import Input, LabelSchema
from mlcore.entities.experiments import Experiment
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.evaluation import label_schemas
from mlcore.repos.evaluation.entities import EntityNameTaken
from mlcore.repos.experiments import experiments
from mlcore.responses.evaluation import label_schemas as responses
from operate.transfer.mlflow_client import Json
from operate.transfer.source_reader import API_3, SourceReader, empty_if_unsupported
from operate.transfer.transfer_item import Content, TransferItem

_IDENTITY: Final = ("schema_id", "experiment_id")
_PAGE: Final = 100


class SchemaPair(NamedTuple):
    fields: Json
    schema_id: str
    """The label schema's id in the table."""


def listed(source: SourceReader, experiment_id: str, target: Experiment) -> list[SchemaPair]:
    """Returns the label schemas of an active experiment on the server that is read, each with its
    id in the table to which it is transferred; none if the server does not support label schemas.
    The server creates the default schema when the list is requested.

    Args:
        experiment_id: the experiment's id on the server.
        target: the corresponding experiment of the table.
    """
    fields = list(
        empty_if_unsupported(
            source.server.pages(
                "GET",
                f"{API_3}/label-schemas/list",
                "label_schemas",
                experiment_id=experiment_id,
                max_results=_PAGE,
            )
        )
    )
    if not fields:
        return []
    there = label_schemas.of_experiment(target)
    named = {entry.name: entry.schema_id for entry in there}
    kept = {entry.schema_id: entry.schema_id for entry in there}
    pairs = []
    for entry in fields:
        schema_id: str = entry["schema_id"]
        pairs.append(SchemaPair(entry, kept.get(schema_id) or named.get(entry["name"], schema_id)))
    return pairs


def item(pair: SchemaPair, target: Experiment) -> TransferItem:
    schema = _schema(pair, target)

    def have() -> Content | None:
        existing = label_schemas.find(schema.schema_id, target.workspace)
        return None if existing is None else _content(existing)

    def attempt() -> None:
        existing = label_schemas.find(schema.schema_id, target.workspace)
        try:
            if existing is None:
                label_schemas.create(schema)
            else:
                label_schemas.replace(existing, schema._replace(version=existing.version))
        except EntityNameTaken as taken:
            raise errors.ResourceAlreadyExists(
                f"The target has another label schema {schema.name!r}."
            ) from taken

    def write(_: Content, __: Content | None) -> None:
        experiments.get(target.experiment_id, target.workspace)
        retry_on_conflict("label schema", attempt)

    return TransferItem(
        "label schema",
        f"{schema.name!r} of experiment {target.name!r}",
        lambda: _content(schema),
        have,
        write,
        identity=schema.schema_id,
    )


def _schema(pair: SchemaPair, target: Experiment) -> LabelSchema:
    fields = pair.fields
    return LabelSchema(
        schema_id=pair.schema_id,
        experiment_id=target.experiment_id,
        name=fields["name"],
        schema_type=fields["type"],
        input=_input(fields["input"]),
        instruction=fields.get("instruction"),
        enable_comment=bool(fields.get("enable_comment", False)),
        is_default=bool(fields.get("is_default", False)),
        created_time=int(fields["created_at"]),
        last_update_time=int(fields["last_updated_at"]),
    )


def _input(given: Input) -> Input:
    """Returns the input of a label schema in the form in which the table stores it: a categorical
    input has all its fields, other inputs have the fields that the server returned."""
    ((kind, fields),) = given.items()
    if kind == "categorical":
        options = list(fields.get("options", ()))
        fields = {"options": options, "multi_select": bool(fields.get("multi_select", False))}
    return {kind: fields}


def _content(schema: LabelSchema) -> Content:
    fields = responses.label_schema(schema)
    return {name: value for name, value in fields.items() if name not in _IDENTITY}
