"""Datasets that runs of an experiment use: ``D#`` items, immutable except for their contexts, and
cached by the process.

The identity of a dataset is (name, digest); as in MLflow, the values of the other fields are those
written first. A field that is too large for an item is stored in part items, which are written
before the item that counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import ItemUpdate, table
from mlcore.entities.experiments import Experiment
from mlcore.entities.runs import Dataset, Run
from mlcore.ids import now_ms
from mlcore.models.datasets import Dataset as DatasetItem
from mlcore.models.datasets import DatasetPart
from mlcore.process_cache import ProcessCache

INLINE_BYTES = 100_000
PART_BYTES = 300_000

PARTED_FIELDS = (
    (DatasetItem.source, DatasetItem.source_parts),
    (DatasetItem.schema, DatasetItem.schema_parts),
    (DatasetItem.profile, DatasetItem.profile_parts),
)
"""Fields that may be large, each with the attribute that counts its parts."""


class Identity(NamedTuple):
    experiment_id: str
    name: str
    digest: str


_NO_CONTEXT = "-"


def _weight(dataset: Dataset) -> int:
    return sum(len(field or "") for field in dataset)


_noted: ProcessCache[tuple[Identity, str], bool] = ProcessCache("context of a dataset")
_remembered: ProcessCache[Identity, Dataset] = ProcessCache("dataset", weigh=_weight)


def hash_of(name: str, digest: str) -> str:
    """Returns the hash of a dataset's (name, digest) that keys contain: 32 hexadecimal
    characters."""
    return blake2b(f"{name}\0{digest}".encode(), digest_size=16).hexdigest()


def of_runs(runs: Iterable[Run]) -> dict[Identity, Dataset]:
    """Returns the datasets that runs used, by experiment, name and digest; one BatchGetItem per
    hundred that are not cached."""
    return _find_all(
        Identity(run.experiment_id, entry.dataset.name, entry.dataset.digest)
        for run in runs
        for entry in run.dataset_inputs
    )


def _find_all(identities: Iterable[Identity]) -> dict[Identity, Dataset]:
    wanted = set(identities)
    by_identity = {
        identity: known for identity in wanted if (known := _remembered.get(identity)) is not None
    }
    unknown = [identity for identity in wanted if identity not in by_identity]
    items = table.batch_get([_place(identity) for identity in unknown]) if unknown else []
    for identity, item in zip(unknown, items, strict=True):
        if item is not None:
            by_identity[identity] = _read(identity, item)
    return by_identity


def ensure(experiment_id: str, datasets: Sequence[Dataset]) -> None:
    """Writes those of the given datasets of runs that the experiment does not have yet."""
    by_identity = {
        Identity(experiment_id, dataset.name, dataset.digest): dataset
        for dataset in reversed(datasets)
    }
    known = _find_all(by_identity)
    table.parallel(
        [
            partial(_create, identity, dataset)
            for identity, dataset in by_identity.items()
            if identity not in known
        ]
    )


class Summary(NamedTuple):
    """A dataset in one of the contexts (``mlflow.data.context``) in which runs used it. The context
    is None for runs that named none."""

    experiment_id: str
    name: str
    digest: str
    context: str | None


def summaries(experiment: Experiment) -> Iterator[Summary]:
    """Yields the datasets that runs of the experiment use, each once for each context in which they
    use it; one Query per MB of datasets."""
    experiment_id = experiment.experiment_id
    items = table.query_all(
        keys.experiment(experiment_id).pk,
        prefix=keys.dataset_prefix(),
        attributes=[DatasetItem.name, DatasetItem.digest, DatasetItem.contexts],
    )
    for item in map(DatasetItem.of, items):
        for mark in item.contexts or {}:
            context = None if mark == _NO_CONTEXT else mark[1:]
            yield Summary(experiment_id, item.name, item.digest, context)


def add_contexts(experiment_id: str, used: Iterable[tuple[str, str, str | None]]) -> None:
    """Stores the contexts in which runs use datasets, from (name, digest, context), except those
    that this process stored before."""
    marks = [
        (Identity(experiment_id, name, digest), _NO_CONTEXT if context is None else f"={context}")
        for name, digest, context in used
    ]
    table.parallel(
        [
            partial(_add_context, identity, mark)
            for identity, mark in dict.fromkeys(marks)
            if (identity, mark) not in _noted
        ]
    )


def context_write(experiment_id: str, dataset: Dataset, context: str) -> ItemUpdate:
    """Returns the write of a context in which a run uses a dataset, for the transaction that
    creates the run. It fails if the experiment does not have the dataset."""
    identity = Identity(experiment_id, dataset.name, dataset.digest)
    return ItemUpdate(_place(identity), _with_context(f"={context}"))


def _add_context(identity: Identity, mark: str) -> None:
    table.update(_place(identity), _with_context(mark))
    _noted.put((identity, mark), True)


def _with_context(mark: str) -> Update:
    update = Update()
    update.set((DatasetItem.contexts, mark), True)
    update.require_exists(DatasetItem.PK)
    return update


def _create(identity: Identity, dataset: Dataset) -> None:
    key = _place(identity)
    inline, parts = _parts(identity, dataset)
    model = DatasetItem(
        PK=key.pk,
        SK=key.sk,
        name=dataset.name,
        digest=dataset.digest,
        source_type=dataset.source_type,
        contexts={},
        updated_at=now_ms(),
        version=1,
        **inline,
    )
    table.batch_write(parts)
    absent = ConditionExpression()
    absent.require_absent(DatasetItem.PK)
    try:
        table.put(model.serialize(), absent)
    except ConditionFailed:
        return  # another writer was first; its fields stay


def _parts(identity: Identity, dataset: Dataset) -> tuple[dict[str, Any], list[Raw]]:
    """Returns the attributes that hold the large fields or count their parts, and the part items.

    Keys of part items contain a hash of the content, so concurrent writers of different contents do
    not mix.
    """
    inline: dict[str, Any] = {}
    items: list[Raw] = []
    for attribute, counted in PARTED_FIELDS:
        field = attribute.attr_name
        value = getattr(dataset, field)
        if value is None:
            continue
        if len(value.encode()) <= INLINE_BYTES:
            inline[field] = value
            continue
        size = PART_BYTES // 4  # characters; at most 4 bytes each
        content = blake2b(value.encode(), digest_size=8).hexdigest()
        pieces = [value[at : at + size] for at in range(0, len(value), size)]
        inline[counted.attr_name] = f"{content}:{len(pieces)}"
        for number, piece in enumerate(pieces):
            key = keys.dataset_part(
                identity.experiment_id, _hash(identity), f"{field}:{content}", number
            )
            part = DatasetPart(PK=key.pk, SK=key.sk, content=piece, updated_at=now_ms(), version=1)
            items.append(part.serialize())
    return inline, items


def _read(identity: Identity, raw: Raw) -> Dataset:
    item = DatasetItem.of(raw)
    large: list[str | None] = []
    for attribute, parted in PARTED_FIELDS:
        field = attribute.attr_name
        counted: str | None = getattr(item, parted.attr_name)
        if counted is None:
            large.append(getattr(item, field))
            continue
        content, count = counted.split(":")
        parts = table.batch_get(
            [
                keys.dataset_part(
                    identity.experiment_id, _hash(identity), f"{field}:{content}", number
                )
                for number in range(int(count))
            ]
        )
        large.append("".join(DatasetPart.of(part).content for part in parts if part is not None))
    source, schema, profile = large
    dataset = Dataset(
        name=item.name,
        digest=item.digest,
        source_type=item.source_type,
        source=source or "",
        schema=schema,
        profile=profile,
    )
    if _weight(dataset) <= INLINE_BYTES:
        _remembered.put(identity, dataset)
    return dataset


def _place(identity: Identity) -> keys.Key:
    return keys.dataset(identity.experiment_id, _hash(identity))


def _hash(identity: Identity) -> str:
    return hash_of(identity.name, identity.digest)
