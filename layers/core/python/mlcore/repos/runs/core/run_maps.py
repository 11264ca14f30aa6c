"""The maps of a run item (metrics, params, tags, inputs, model inputs, model outputs), and the
child items that the indexer makes from them: METRIC, PARAM, TAG, INPUT and LM."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mlcore.db import keys
from mlcore.db.attribute_types import TextMapAttribute
from mlcore.db.expression import Raw
from mlcore.entities.runs import Dataset, DatasetInput, ModelOutput, Run
from mlcore.entities.tags import Tag
from mlcore.models.runs import Run as RunItem
from mlcore.models.runs import RunInput, RunLoggedModel, RunMetric, RunParam, RunTag
from mlcore.repos import document
from mlcore.repos.runs.core import datasets
from mlcore.repos.runs.history import latest_point_text


class DatasetReference(NamedTuple):
    """A dataset input in the run item: the dataset's identity and the input's tags."""

    name: str
    digest: str
    tags: tuple[Tag, ...]


def input_key(name: str, digest: str) -> str:
    """Returns the key of a dataset in the map ``inputs`` of a run's item."""
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
    """Returns the values in a run's maps (metrics, params, tags, …) as its item stores them, by
    map and key."""
    return {
        "metrics": {
            key: latest_point_text.latest_text(metric) for key, metric in run.metrics.items()
        },
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
    """Returns a run's dataset inputs in the order in which they were logged.

    Args:
        texts: the run's map ``inputs``.
    """
    parsed = map(json.loads, texts.values())
    entries = sorted(parsed, key=lambda entry: (entry["at"], entry["name"], entry["digest"]))
    return [
        DatasetReference(
            entry["name"], entry["digest"], tuple(Tag(key, value) for key, value in entry["tags"])
        )
        for entry in entries
    ]


def in_order(texts: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the keys of a map whose values are positions, in the order of these positions."""
    return tuple(sorted(texts, key=lambda key: (int(texts[key]), key)))


def model_outputs(texts: Mapping[str, str]) -> tuple[ModelOutput, ...]:
    """Returns the logged models that the run has as outputs, in the order in which they were
    logged.

    Args:
        texts: the run's map ``model_outputs``.
    """
    parsed = map(json.loads, texts.values())
    entries = sorted(parsed, key=lambda entry: (entry["at"], entry["model_id"]))
    return tuple(ModelOutput(entry["model_id"], entry["step"]) for entry in entries)


def resolve(
    outline: Run, by_identity: Mapping[datasets.Identity, Dataset]
) -> tuple[DatasetInput, ...]:
    """Returns the run's dataset inputs with all fields of their datasets. Leaves out datasets that
    are not in ``by_identity``.

    Args:
        outline: a run whose datasets have only name and digest.
        by_identity: the datasets by (experiment id, name, digest).
    """
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


def _metric(item_key: keys.Key, key: str, text: str) -> Raw:
    latest = latest_point_text.parse_latest(key, text)
    model = RunMetric(
        PK=item_key.pk,
        SK=item_key.sk,
        key=key,
        value=latest.value,
        step=latest.step,
        timestamp=latest.timestamp,
    )
    return model.serialize()


def _param(item_key: keys.Key, key: str, text: str) -> Raw:
    return RunParam(PK=item_key.pk, SK=item_key.sk, key=key, value=text).serialize()


def _tag(item_key: keys.Key, key: str, text: str) -> Raw:
    return RunTag(PK=item_key.pk, SK=item_key.sk, key=key, value=text).serialize()


def _input(item_key: keys.Key, key: str, text: str) -> Raw:
    (reference,) = dataset_inputs({key: text})
    model = RunInput(
        PK=item_key.pk,
        SK=item_key.sk,
        key=key,
        name=reference.name,
        digest=reference.digest,
        tags=json.dumps([list(tag) for tag in reference.tags], ensure_ascii=False),
    )
    return model.serialize()


def _input_key(experiment_id: str, run_id: str, key: str) -> keys.Key:
    # For the range of values outside the run item, the partition without a key is passed.
    name, digest = json.loads(key) if key else ("", "")
    return keys.run_input(experiment_id, run_id, name, digest)


def _model(item_key: keys.Key, key: str, text: str) -> Raw:
    return RunLoggedModel(PK=item_key.pk, SK=item_key.sk, key=key, value=text).serialize()


def _entry(
    attribute: TextMapAttribute[Any],
    rule: str,
    kind: str,
    key_of: Callable[[str, str, str], keys.Key],
    child: Callable[[keys.Key, str, str], Raw],
) -> document.Map:
    kind, _, begin = kind.partition("/")

    def prefix(owner: document.Owner) -> str:
        return keys.run_child_prefix(owner[1], kind) + begin

    def at(owner: document.Owner, key: str) -> keys.Key:
        return key_of(owner[0], owner[1], key)

    return document.Map(attribute, rule, prefix, at, child, as_text=True)


def _model_key(direction: str) -> Callable[[str, str, str], keys.Key]:
    def key_of(experiment_id: str, run_id: str, model_id: str) -> keys.Key:
        return keys.run_logged_model(experiment_id, run_id, f"{direction}:{model_id}")

    return key_of


MAPS: document.Maps = {
    entry.attribute: entry
    for entry in (
        _entry(RunItem.metrics, document.LATER, "METRIC", keys.run_metric, _metric),
        _entry(RunItem.params, document.KEEP, "PARAM", keys.run_param, _param),
        _entry(RunItem.tags, document.REPLACE, "TAG", keys.run_tag, _tag),
        _entry(RunItem.inputs, document.KEEP, "INPUT", _input_key, _input),
        _entry(RunItem.model_inputs, document.KEEP, "LM/in:", _model_key("in"), _model),
        _entry(RunItem.model_outputs, document.KEEP, "LM/out:", _model_key("out"), _model),
    )
}
"""The map attributes of a run item; the owner of a run's children is (experiment id, run id)."""
