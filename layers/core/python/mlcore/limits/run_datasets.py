"""Rules about the datasets that a run logs as inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from mlcore.entities.runs import Dataset, DatasetInput
from mlcore.entities.tags import Tag
from mlcore.errors import BadRequest, InvalidParameterValue
from mlcore.limits.shared_checks import check_length, check_run_id

MAX_NAME_LENGTH: Final = 500
MAX_DIGEST_LENGTH: Final = 36
MAX_SOURCE_LENGTH: Final = 65_535
MAX_SCHEMA_LENGTH: Final = 1_048_575
MAX_PROFILE_LENGTH: Final = 16_777_215
MAX_TAG_KEY_LENGTH: Final = 255
MAX_TAG_VALUE_LENGTH: Final = 500
MAX_SEARCHED_EXPERIMENTS: Final = 20


class TagFields(Protocol):
    """A tag of a run's input (such as the dataset's context), as a request holds it."""

    key: str
    value: str


class DatasetFields(Protocol):
    """A dataset that a run uses, as a request holds it."""

    name: str
    digest: str
    source_type: str
    source: str
    schema: str
    profile: str

    def has(self, field: str) -> bool:
        """Whether the request set this field of the run's dataset."""


class DatasetInputFields(Protocol):
    """A dataset and the tags that describe its use by the run, as a request holds them."""

    @property
    def tags(self) -> Sequence[TagFields]:
        """The tags of the run's input (such as its context), not tags of the dataset."""

    @property
    def dataset(self) -> DatasetFields | None:
        """The dataset; None if the request omits it."""


def check_log_inputs(run_id: str, inputs: Sequence[DatasetInputFields]) -> list[DatasetInput]:
    """Checks a log-inputs request. Returns its inputs; of inputs with the same dataset only the
    first. Raises InvalidParameterValue, or BadRequest if a tag key is repeated."""
    check_run_id(run_id)
    checked = [_check_input(item) for item in inputs]
    first: dict[tuple[str, str], DatasetInput] = {}
    for item in checked:
        first.setdefault((item.dataset.name, item.dataset.digest), item)
    return list(first.values())


def _check_input(item: DatasetInputFields) -> DatasetInput:
    dataset = item.dataset
    if dataset is None:
        # MLflow's server treats a missing dataset as one whose fields are all empty.
        checked = Dataset("", "", "", "")
    else:
        check_length("name", MAX_NAME_LENGTH, dataset.name)
        check_length("digest", MAX_DIGEST_LENGTH, dataset.digest)
        check_length("source", MAX_SOURCE_LENGTH, dataset.source)
        check_length("schema", MAX_SCHEMA_LENGTH, dataset.schema)
        check_length("profile", MAX_PROFILE_LENGTH, dataset.profile)
        checked = Dataset(
            dataset.name,
            dataset.digest,
            dataset.source_type,
            dataset.source,
            dataset.schema or None,
            dataset.profile or None,
        )
    tags = []
    for tag in item.tags:
        check_length("key", MAX_TAG_KEY_LENGTH, tag.key)
        check_length("value", MAX_TAG_VALUE_LENGTH, tag.value)
        tags.append(Tag(tag.key, tag.value))
    if len({tag.key for tag in tags}) < len(tags):
        raise BadRequest("Each tag key of an input can be given only once.")
    return DatasetInput(checked, tuple(tags))


def check_search_datasets(experiment_ids: Sequence[str]) -> None:
    if not experiment_ids:
        raise InvalidParameterValue(
            "SearchDatasets request must specify at least one experiment_id."
        )
    if len(experiment_ids) > MAX_SEARCHED_EXPERIMENTS:
        raise InvalidParameterValue(
            f"SearchDatasets request cannot specify more than {MAX_SEARCHED_EXPERIMENTS} "
            f"experiment_ids. Received {len(experiment_ids)} experiment_ids."
        )
