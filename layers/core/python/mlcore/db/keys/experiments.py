"""DynamoDB keys of experiments, of their unique names, and of the datasets of their runs."""

from __future__ import annotations

from mlcore.db.keys.pattern import Key, Pattern, remembering

_EXP = "EXP#<experiment_id>"

EXPERIMENT = Pattern("experiment", _EXP, "E#META", "an experiment with its tags")
EXPERIMENT_TAG = Pattern("experiment_tag", _EXP, "E#TAG#<key>", "one tag", "overflow")
EXPERIMENT_NAME_REV = Pattern(
    "experiment_name_rev", _EXP, "E#NAME_REV", "the name reversed, for suffix search", "indexer"
)
EXPERIMENT_NAME_LOCK = Pattern(
    "experiment_name_lock",
    "EXPNAME#<workspace>#<experiment_name>",
    "EXPNAME#LOCK",
    "makes the name unique and finds the experiment consistently",
)
DATASET = Pattern("dataset", _EXP, "D#<dataset_hash>", "a dataset; the hash is of name and digest")
DATASET_PART = Pattern(
    "dataset_part",
    _EXP,
    "D#<dataset_hash>#PART#<field>#<number>",
    "a piece of a field that is too large for the dataset's item",
)


EXPERIMENT_PATTERNS = (
    EXPERIMENT,
    EXPERIMENT_TAG,
    EXPERIMENT_NAME_REV,
    EXPERIMENT_NAME_LOCK,
    DATASET,
    DATASET_PART,
)

_partition = remembering(EXPERIMENT.pk.build)


def experiment_id_of(pk: str) -> str:
    """Returns the id of the experiment with this partition key. Raises ValueError for other
    keys."""
    fields = EXPERIMENT.pk.parse(pk)
    if fields is None:
        raise ValueError(f"{pk!r} is not the partition of an experiment")
    experiment_id: str = fields["experiment_id"]
    return experiment_id


def experiment(experiment_id: str) -> Key:
    return Key(_partition(experiment_id), EXPERIMENT.sk.text)


def experiment_tag(experiment_id: str, key: str) -> Key:
    return Key(_partition(experiment_id), EXPERIMENT_TAG.sk.build(key))


def experiment_tag_prefix() -> str:
    return EXPERIMENT_TAG.sk.prefix()


def experiment_name_rev(experiment_id: str) -> Key:
    return Key(_partition(experiment_id), EXPERIMENT_NAME_REV.sk.text)


def experiment_name_lock(workspace: str, name: str) -> Key:
    return Key(EXPERIMENT_NAME_LOCK.pk.build(workspace, name), EXPERIMENT_NAME_LOCK.sk.text)


def dataset(experiment_id: str, dataset_hash: str) -> Key:
    return Key(_partition(experiment_id), DATASET.sk.build(dataset_hash))


def dataset_prefix() -> str:
    return DATASET.sk.prefix()


def dataset_part(experiment_id: str, dataset_hash: str, field: str, number: int) -> Key:
    return Key(_partition(experiment_id), DATASET_PART.sk.build(dataset_hash, field, number))
