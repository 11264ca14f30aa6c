"""The maps of a run item and the child items that mirror them: METRIC, PARAM, TAG, INPUT and LM."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mlcore.db import keys
from mlcore.db.attributes import TextMapAttribute
from mlcore.db.expression import Raw
from mlcore.entities.runs import Dataset, DatasetInput, ModelOutput, Run
from mlcore.entities.tags import Tag
from mlcore.models.runs import Run as RunItem
from mlcore.models.runs import RunInput, RunLoggedModel, RunMetric, RunParam, RunTag
from mlcore.repos import document
from mlcore.repos.runs import datasets, points


class DatasetReference(NamedTuple):
    """A dataset input as the run item holds it: the dataset's identity and the input's tags."""

    name: str
    digest: str
    tags: tuple[Tag, ...]


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


def texts(run: Run) -> dict[str, dict[str, str]]:
    """What the maps of a run's item hold of it."""
    return {
        "metrics": {key: points.latest_text(metric) for key, metric in run.metrics.items()},
        "params": run.params,
        "tags": run.tags,
        "inputs": {
            input_key(entry.dataset.name, entry.dataset.digest): input_text(
                DatasetReference(entry.dataset.name, entry.dataset.digest, entry.tags), position
            )
            for position, entry in enumerate(run.dataset_inputs)
        },
        "model_inputs": {model: str(position) for position, model in enumerate(run.model_inputs)},
        "model_outputs": {
            output.model_id: json.dumps({**output._asdict(), "at": position})
            for position, output in enumerate(run.model_outputs)
        },
    }


def dataset_inputs(texts: Mapping[str, str]) -> list[DatasetReference]:
    """The dataset inputs in the order in which they were logged."""
    parsed = map(json.loads, texts.values())
    found = sorted(parsed, key=lambda entry: (entry["at"], entry["name"], entry["digest"]))
    return [
        DatasetReference(
            entry["name"], entry["digest"], tuple(Tag(key, value) for key, value in entry["tags"])
        )
        for entry in found
    ]


def in_order(texts: Mapping[str, str]) -> tuple[str, ...]:
    """Keys ordered by the position that their texts hold."""
    return tuple(sorted(texts, key=lambda key: (int(texts[key]), key)))


def model_outputs(texts: Mapping[str, str]) -> tuple[ModelOutput, ...]:
    """The models that the run made in the order in which they were logged."""
    parsed = map(json.loads, texts.values())
    found = sorted(parsed, key=lambda entry: (entry["at"], entry["model_id"]))
    return tuple(ModelOutput(entry["model_id"], entry["step"]) for entry in found)


def resolve(
    outline: Run, by_identity: Mapping[datasets.Identity, Dataset]
) -> tuple[DatasetInput, ...]:
    """The run's dataset inputs with the datasets that are known; the others are left out."""
    return tuple(
        DatasetInput(by_identity[identity], entry.tags)
        for entry in outline.dataset_inputs
        if (
            identity := datasets.Identity(
                outline.experiment_id, entry.dataset.name, entry.dataset.digest
            )
        )
        in by_identity
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
    return model.serialize()


def _param(place: keys.Key, key: str, text: str) -> Raw:
    return RunParam(PK=place.pk, SK=place.sk, key=key, value=text).serialize()


def _tag(place: keys.Key, key: str, text: str) -> Raw:
    return RunTag(PK=place.pk, SK=place.sk, key=key, value=text).serialize()


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
    return model.serialize()


def _input_place(experiment_id: str, run_id: str, key: str) -> keys.Key:
    # Who looks for values that live outside asks for the partition, with no key.
    name, digest = json.loads(key) if key else ("", "")
    return keys.run_input(experiment_id, run_id, name, digest)


def _model(place: keys.Key, key: str, text: str) -> Raw:
    return RunLoggedModel(PK=place.pk, SK=place.sk, key=key, value=text).serialize()


def _entry(
    attribute: TextMapAttribute[Any],
    rule: str,
    kind: str,
    place: Callable[[str, str, str], keys.Key],
    child: Callable[[keys.Key, str, str], Raw],
) -> document.Map:
    kind, _, begin = kind.partition("/")

    def prefix(owner: document.Owner) -> str:
        return keys.run_child_prefix(owner[1], kind) + begin

    def at(owner: document.Owner, key: str) -> keys.Key:
        return place(owner[0], owner[1], key)

    return document.Map(attribute, rule, prefix, at, child, as_text=True)


def _model_place(direction: str) -> Callable[[str, str, str], keys.Key]:
    def place(experiment_id: str, run_id: str, model_id: str) -> keys.Key:
        return keys.run_logged_model(experiment_id, run_id, f"{direction}:{model_id}")

    return place


MAPS: document.Maps = {
    entry.attribute: entry
    for entry in (
        _entry(RunItem.metrics, document.LATER, "METRIC", keys.run_metric, _metric),
        _entry(RunItem.params, document.KEEP, "PARAM", keys.run_param, _param),
        _entry(RunItem.tags, document.REPLACE, "TAG", keys.run_tag, _tag),
        _entry(RunItem.inputs, document.KEEP, "INPUT", _input_place, _input),
        _entry(RunItem.model_inputs, document.KEEP, "LM/in:", _model_place("in"), _model),
        _entry(RunItem.model_outputs, document.KEEP, "LM/out:", _model_place("out"), _model),
    )
}
"""The map attributes of a run item; the owner of a run's children is (experiment id, run id)."""
