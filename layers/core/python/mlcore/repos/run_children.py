"""The maps of a run item and the child items that mirror them: METRIC, PARAM, TAG, INPUT and LM."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.entities import Dataset, DatasetInput, Tag
from mlcore.models.runs import RunInput, RunLoggedModel, RunMetric, RunParam, RunTag
from mlcore.repos import datasets, document, points

_Child = Callable[[keys.Key, str, str], Raw]
_Place = Callable[[str, str, str], keys.Key]


class DatasetReference(NamedTuple):
    """A dataset input as the run item holds it: the dataset's identity and the input's tags."""

    name: str
    digest: str
    tags: tuple[Tag, ...]


def maps(experiment_id: str, run_id: str) -> tuple[document.Map, ...]:
    """The map attributes of a run item, in the order in which they may fill it."""

    def entry(attribute: str, rule: str, kind: str, child: _Child, place: _Place) -> document.Map:
        kind, _, begin = kind.partition("/")
        prefix = keys.run_child_prefix(run_id, kind) + begin

        def at(key: str) -> keys.Key:
            return place(experiment_id, run_id, key)

        def item(key: str, text: str) -> Raw:
            return child(at(key), key, text)

        return document.Map(attribute, rule, prefix, item, at)

    return (
        entry("metrics", document.LATER, "METRIC", _metric, keys.run_metric),
        entry("params", document.KEEP, "PARAM", _param, keys.run_param),
        entry("tags", document.REPLACE, "TAG", _tag, keys.run_tag),
        entry("inputs", document.REPLACE, "INPUT", _input, _input_place),
        entry("model_inputs", document.REPLACE, "LM/in:", _model, _model_place("in")),
        entry("model_outputs", document.REPLACE, "LM/out:", _model, _model_place("out")),
    )


def input_key(name: str, digest: str) -> str:
    """The key of a dataset in the map of inputs."""
    return json.dumps([name, digest], ensure_ascii=False)


def input_text(reference: DatasetReference, position: int) -> str:
    return json.dumps(
        {
            "name": reference.name,
            "digest": reference.digest,
            "tags": [list(tag) for tag in reference.tags],
            "at": position,
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def dataset_inputs(texts: Mapping[str, str]) -> list[DatasetReference]:
    """The dataset inputs in the order in which they were logged."""
    found = sorted(map(json.loads, texts.values()), key=lambda entry: int(entry["at"]))
    return [
        DatasetReference(
            entry["name"], entry["digest"], tuple(Tag(key, value) for key, value in entry["tags"])
        )
        for entry in found
    ]


def in_order(texts: Mapping[str, str]) -> tuple[str, ...]:
    """Keys ordered by the position that their texts hold."""
    return tuple(sorted(texts, key=lambda key: int(texts[key])))


def resolve(
    experiment_id: str,
    references: Iterable[DatasetReference],
    known: Mapping[datasets.Identity, Dataset],
) -> tuple[DatasetInput, ...]:
    return tuple(
        DatasetInput(known[identity], reference.tags)
        for reference in references
        if (identity := datasets.Identity(experiment_id, reference.name, reference.digest)) in known
    )


def _metric(place: keys.Key, key: str, text: str) -> Raw:
    latest = points.parse_latest(key, text)
    model = RunMetric(
        PK=place.pk,
        SK=place.sk,
        key=key,
        value=latest.value,
        step=latest.step,
        timestamp=latest.timestamp,
    )
    return dict(model.serialize())


def _param(place: keys.Key, key: str, text: str) -> Raw:
    return dict(RunParam(PK=place.pk, SK=place.sk, key=key, value=text).serialize())


def _tag(place: keys.Key, key: str, text: str) -> Raw:
    return dict(RunTag(PK=place.pk, SK=place.sk, key=key, value=text).serialize())


def _input(place: keys.Key, key: str, text: str) -> Raw:
    (reference,) = dataset_inputs({key: text})
    model = RunInput(
        PK=place.pk,
        SK=place.sk,
        key=key,
        name=reference.name,
        digest=reference.digest,
        tags=json.dumps([list(tag) for tag in reference.tags], ensure_ascii=False),
    )
    return dict(model.serialize())


def _input_place(experiment_id: str, run_id: str, key: str) -> keys.Key:
    return keys.run_input(experiment_id, run_id, *json.loads(key))


def _model(place: keys.Key, key: str, text: str) -> Raw:
    return dict(RunLoggedModel(PK=place.pk, SK=place.sk, key=key, value=text).serialize())


def _model_place(direction: str) -> _Place:
    def place(experiment_id: str, run_id: str, model_id: str) -> keys.Key:
        return keys.run_logged_model(experiment_id, run_id, f"{direction}:{model_id}")

    return place
