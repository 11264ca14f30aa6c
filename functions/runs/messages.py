"""Requests of the run and metric RPCs, in the field order of MLflow's service.proto."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from mlcore.wire import (
    ArgumentInt,
    Check,
    Int32,
    Message,
    array,
    at_most,
    boolean,
    enum,
    fields_present,
    floatlike,
    intlike,
    item_type_string,
    length_at_most,
    required,
    string,
    within,
)

RunStatus = Annotated[str | None, enum(RUNNING=1, SCHEDULED=2, FINISHED=3, FAILED=4, KILLED=5)]
ViewType = Annotated[str | None, enum(ACTIVE_ONLY=1, DELETED_ONLY=2, ALL=3)]

MAX_SEARCH_RESULTS = 50_000
MAX_INTERVAL_RUNS = 100
MAX_TAGGED_RUNS = 100
MAX_DELETED_TAGS = 100
MAX_MOVED_RUNS = 20
MAX_REWOUND_METRICS = 100
MAX_INTERVAL_RESULTS = 2500


def _strings_at_most(limit: int, text: Callable[[int], str]) -> tuple[Check, ...]:
    """Returns the checks of a list of at most ``limit`` strings. ``text`` takes the length of a
    longer list and returns the error message."""
    return array, item_type_string, length_at_most(limit, text)


class Metric(Message):
    key: str
    value: float
    timestamp: int
    step: int
    dataset_name: str
    dataset_digest: str
    model_id: str
    run_id: str


class Param(Message):
    key: str
    value: str


class RunTag(Message):
    key: str
    value: str


class InputTag(Message):
    key: str
    value: str


class Dataset(Message):
    name: str
    digest: str
    source_type: str
    source: str
    schema: str
    profile: str


class DatasetInput(Message):
    tags: list[InputTag]
    dataset: Dataset | None


class ModelInput(Message):
    model_id: str


class ModelOutput(Message):
    model_id: str
    step: int


class CreateRun(Message):
    experiment_id: str
    user_id: str
    run_name: str
    start_time: int
    tags: list[RunTag]
    checks = {"experiment_id": (string,), "start_time": (intlike,), "run_name": (string,)}


class PromptlabParameter(Message):
    """A parameter of a prompt or a model, whose value may be of any type."""

    key: str
    value: Any


class CreatePromptlabRun(Message):
    """The request to create a run from MLflow's prompt lab. MLflow has no protobuf RPC for it;
    :mod:`mlcore.limits.promptlab` checks its arguments."""

    experiment_id: Any
    run_name: str
    tags: list[RunTag]
    prompt_template: str
    prompt_parameters: list[PromptlabParameter]
    model_route: str
    model_parameters: list[PromptlabParameter]
    model_input: Any
    model_output: Any
    model_output_parameters: list[PromptlabParameter]
    mlflow_version: Any
    user_id: str
    start_time: int


class GetRun(Message):
    run_id: str
    run_uuid: str
    checks = {"run_id": (required, string)}


class UpdateRun(Message):
    run_id: str
    run_uuid: str
    status: RunStatus
    end_time: int
    run_name: str
    checks = {
        "run_id": (required, string),
        "end_time": (intlike,),
        "status": (string,),
        "run_name": (string,),
    }


class DeleteRun(Message):
    run_id: str
    checks = {"run_id": (required, string)}


class RestoreRun(Message):
    run_id: str
    checks = {"run_id": (required, string)}


class LogMetric(Message):
    run_id: str
    run_uuid: str
    key: str
    value: float
    timestamp: int
    step: int
    model_id: str
    dataset_name: str
    dataset_digest: str
    checks = {
        "run_id": (required, string),
        "key": (required, string),
        "value": (required, floatlike),
        "timestamp": (intlike, required),
        "step": (intlike,),
        "model_id": (string,),
        "dataset_name": (string,),
        "dataset_digest": (string,),
    }


class LogParam(Message):
    run_id: str
    run_uuid: str
    key: str
    value: str
    checks = {"run_id": (required, string), "key": (required, string), "value": (string,)}


class LogBatch(Message):
    run_id: str
    metrics: list[Metric]
    params: list[Param]
    tags: list[RunTag]
    checks = {
        "run_id": (string, required),
        "metrics": (array, fields_present("metrics", "key", "value", "timestamp")),
        "params": (array, fields_present("params", "key")),
        "tags": (array, fields_present("tags", "key")),
    }


class LogModel(Message):
    run_id: str
    model_json: str
    checks = {"run_id": (string, required), "model_json": (string, required)}


class SetTag(Message):
    run_id: str
    run_uuid: str
    key: str
    value: str
    checks = {"run_id": (required, string), "key": (required, string), "value": (string,)}


class DeleteTag(Message):
    run_id: str
    key: str
    checks = {"run_id": (required, string), "key": (required, string)}


class ChangeTagsOfRuns(Message):
    """The request to set and delete tags of up to ``MAX_TAGGED_RUNS`` runs. MLflow's API has no
    such request."""

    run_ids: list[str]
    tags: list[RunTag]
    delete_keys: list[str]
    checks = {
        "run_ids": (
            required,
            *_strings_at_most(
                MAX_TAGGED_RUNS,
                lambda length: (
                    f"A request names at most {MAX_TAGGED_RUNS} runs. It names {length}."
                ),
            ),
        ),
        "tags": (array,),
        "delete_keys": _strings_at_most(
            MAX_DELETED_TAGS,
            lambda length: f"A request deletes at most {MAX_DELETED_TAGS} tags. It names {length}.",
        ),
    }


class RewindRun(Message):
    """The request to delete the points of a run after a step, or all of them (``delete_all``).
    MLflow's API has no such request."""

    run_id: str
    metric_keys: list[str]
    after_step: int
    delete_all: bool
    checks = {
        "run_id": (required, string),
        "metric_keys": _strings_at_most(
            MAX_REWOUND_METRICS,
            lambda length: (
                f"A request names at most {MAX_REWOUND_METRICS} metrics. It names {length}. Leave "
                "out 'metric_keys' for all metrics."
            ),
        ),
        "after_step": (intlike,),
        "delete_all": (boolean,),
    }


class MoveRuns(Message):
    """The request to move up to ``MAX_MOVED_RUNS`` runs to an experiment. MLflow's API has no such
    request."""

    run_ids: list[str]
    experiment_id: str
    checks = {
        "run_ids": (
            required,
            *_strings_at_most(
                MAX_MOVED_RUNS,
                lambda length: f"A request moves at most {MAX_MOVED_RUNS} runs. It names {length}.",
            ),
        ),
        "experiment_id": (required, string),
    }


class LogInputs(Message):
    run_id: str
    datasets: list[DatasetInput]
    models: list[ModelInput]
    checks = {"run_id": (required, string), "datasets": (array,), "models": (array,)}


class LogOutputs(Message):
    run_id: str
    models: list[ModelOutput]
    checks = {"run_id": (required, string), "models": (required, array)}


class SearchRuns(Message):
    experiment_ids: list[str]
    filter: str
    run_view_type: ViewType
    max_results: Int32 = 1000
    order_by: list[str]
    page_token: str
    checks = {
        "experiment_ids": (array,),
        "filter": (string,),
        "max_results": (intlike, at_most(MAX_SEARCH_RESULTS)),
        "order_by": (array, item_type_string),
    }


class GetMetricHistory(Message):
    run_id: str
    run_uuid: str
    metric_key: str
    page_token: str
    # An Int32 in MLflow's API, whose server reads a larger one as none.
    max_results: int
    checks = {
        "run_id": (string, required),
        "metric_key": (string, required),
        "page_token": (string,),
    }


class GetMetricHistoryBulk(Message):
    """The request for the history of a metric in several runs. MLflow has no protobuf RPC for it;
    :mod:`runs.metric_history` checks its arguments."""

    run_id: list[str]
    metric_key: str
    max_results: int = 25_000
    checks = {"max_results": (intlike,)}


class GetMetricHistoryBulkInterval(Message):
    run_ids: list[str]
    metric_key: str
    # Steps may exceed 32 bits, and the UI asks for those that its chart shows.
    start_step: ArgumentInt
    end_step: ArgumentInt
    max_results: ArgumentInt = MAX_INTERVAL_RESULTS
    checks = {
        "run_ids": (
            required,
            *_strings_at_most(
                MAX_INTERVAL_RUNS,
                lambda length: (
                    "GetMetricHistoryBulkInterval request must specify at most "
                    f"{MAX_INTERVAL_RUNS} run_ids. Received {length} run_ids."
                ),
            ),
        ),
        "metric_key": (required, string),
        "start_step": (intlike,),
        "end_step": (intlike,),
        "max_results": (
            intlike,
            within(
                1,
                MAX_INTERVAL_RESULTS,
                f"max_results must be between 1 and {MAX_INTERVAL_RESULTS}.",
            ),
        ),
    }
