"""Label schemas, from the server to the table. They keep their ids, unless the table's experiment
has one of the same name, as it has the default one."""

from __future__ import annotations

from typing import Final, NamedTuple

from mlcore import errors
from mlcore.entities.evaluation.label_schemas import Input, LabelSchema
from mlcore.entities.experiments import Experiment
from mlcore.repos.evaluation import label_schemas
from mlcore.repos.evaluation.entities import NameTaken
from mlcore.repos.experiments import experiments
from mlcore.responses.evaluation import label_schemas as responses
from mlcore.settle import settle
from operate.transfer.item import Content, Item
from operate.transfer.rest import Json
from operate.transfer.source import API_3, Source, known

_IDENTITY: Final = ("schema_id", "experiment_id")
_PAGE: Final = 100


class Pair(NamedTuple):
    told: Json
    schema_id: str
    """The table's."""


def listed(source: Source, experiment_id: str, target: Experiment) -> list[Pair]:
    """Those of an active experiment, to which a server that is asked adds its default one; none of
    a server that has no label schemas.

    Args:
        experiment_id: the server's.
        target: the experiment of the table that stands for it.
    """
    told = list(
        known(
            source.server.pages(
                "GET",
                f"{API_3}/label-schemas/list",
                "label_schemas",
                experiment_id=experiment_id,
                max_results=_PAGE,
            )
        )
    )
    if not told:
        return []
    there = label_schemas.of_experiment(target)
    named = {one.name: one.schema_id for one in there}
    kept = {one.schema_id: one.schema_id for one in there}
    pairs = []
    for one in told:
        schema_id: str = one["schema_id"]
        pairs.append(Pair(one, kept.get(schema_id) or named.get(one["name"], schema_id)))
    return pairs


def item(pair: Pair, target: Experiment) -> Item:
    schema = _schema(pair, target)

    def have() -> Content | None:
        found = label_schemas.find(schema.schema_id, target.workspace)
        return None if found is None else _content(found)

    def attempt() -> None:
        found = label_schemas.find(schema.schema_id, target.workspace)
        try:
            if found is None:
                label_schemas.create(schema)
            else:
                label_schemas.replace(found, schema._replace(version=found.version))
        except NameTaken as taken:
            raise errors.ResourceAlreadyExists(
                f"The target has another label schema {schema.name!r}."
            ) from taken

    def write(_: Content, __: Content | None) -> None:
        experiments.get(target.experiment_id, target.workspace)
        settle("label schema", attempt)

    return Item(
        "label schema",
        f"{schema.name!r} of experiment {target.name!r}",
        lambda: _content(schema),
        have,
        write,
        identity=schema.schema_id,
    )


def _schema(pair: Pair, target: Experiment) -> LabelSchema:
    told = pair.told
    return LabelSchema(
        schema_id=pair.schema_id,
        experiment_id=target.experiment_id,
        name=told["name"],
        schema_type=told["type"],
        input=_input(told["input"]),
        instruction=told.get("instruction"),
        enable_comment=bool(told.get("enable_comment", False)),
        is_default=bool(told.get("is_default", False)),
        created_time=int(told["created_at"]),
        last_update_time=int(told["last_updated_at"]),
    )


def _input(told: Input) -> Input:
    """As the table keeps it: of a choice all that there is to know, of others what was said."""
    ((kind, fields),) = told.items()
    if kind == "categorical":
        options = list(fields.get("options", ()))
        fields = {"options": options, "multi_select": bool(fields.get("multi_select", False))}
    return {kind: fields}


def _content(schema: LabelSchema) -> Content:
    fields = responses.label_schema(schema)
    return {name: value for name, value in fields.items() if name not in _IDENTITY}
