"""Rules about the metrics, params, tags and batches that are logged to a run, and about requests
for metric history."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple, Protocol

from mlcore import reserved_tags
from mlcore.entities.metrics import Metric
from mlcore.entities.runs import Param
from mlcore.entities.tags import Tag
from mlcore.errors import BadRequest, InvalidParameterValue
from mlcore.limits.shared_checks import (
    MAX_KEY_LENGTH,
    check_key,
    check_length,
    check_run_id,
    truncated,
)
from mlcore.wire import invalid_value
from mlcore.wire.json_text import parse_json_text

MAX_METRICS_PER_BATCH: Final = 1000
MAX_PARAMS_PER_BATCH: Final = 100
MAX_TAGS_PER_BATCH: Final = 100
MAX_ENTITIES_PER_BATCH: Final = 1000
MAX_PARAM_VALUE_LENGTH: Final = 6000
MAX_TAG_VALUE_LENGTH: Final = 8000
MAX_REWOUND_KEY_BYTES: Final = 10_000
"""Maximum size of the metric names in a request to rewind a run, since the run's item stores them
together."""
MAX_BULK_RUNS: Final = 100
MAX_BULK_RESULTS: Final = 25_000


class MetricFields(Protocol):
    """A point of a run's metric, as a request holds it."""

    key: str
    value: float
    timestamp: int
    step: int


class KeyValue(Protocol):
    """A param or tag of a run, as a request holds it."""

    @property
    def key(self) -> str: ...

    @property
    def value(self) -> str: ...


class LogBatch(NamedTuple):
    """The checked contents of a log-batch request, in the order in which they were sent, with long
    values truncated. Several tags may have the same key; the last one counts."""

    metrics: list[Metric]
    params: list[Param]
    tags: list[Tag]


def check_metric(metric: MetricFields, path: str = "") -> Metric:
    """Returns a point of a metric. Raises InvalidParameterValue if its key or timestamp is invalid.

    Args:
        path: its position in a batch, such as ``metrics[3]``; empty outside batches.
    """
    check_key(metric.key, f"{path}.name" if path else "name")
    if metric.timestamp < 0:
        raise InvalidParameterValue(
            invalid_value(
                f"{path}.timestamp" if path else "timestamp",
                metric.timestamp,
                f"metric '{metric.key}' (value={metric.value}). "
                "Timestamp must be a nonnegative long (64-bit integer) ",
            )
        )
    check_length("Metric name", MAX_KEY_LENGTH, metric.key)
    return Metric(metric.key, metric.value, metric.timestamp, metric.step)


def check_metric_key(key: str) -> None:
    """Checks the name of a metric that the server itself logs. Raises InvalidParameterValue."""
    check_key(key, "name")
    check_length("Metric name", MAX_KEY_LENGTH, key)


def check_param(param: KeyValue, path: str = "") -> Param:
    check_key(param.key, f"{path}.key" if path else "key")
    check_length("Param key", MAX_KEY_LENGTH, param.key)
    return Param(param.key, truncated("Param value", MAX_PARAM_VALUE_LENGTH, param.value))


def check_tag(tag: KeyValue, path: str = "") -> Tag:
    prefix = f"{path}." if path else ""
    check_key(tag.key, f"{prefix}key")
    check_length(f"{prefix}key", MAX_KEY_LENGTH, tag.key)
    return Tag(tag.key, truncated(f"{prefix}value", MAX_TAG_VALUE_LENGTH, tag.value))


def check_tags(tags: Sequence[KeyValue]) -> list[Tag]:
    """Checks the tags of a request, at most as many as a log-batch request may have, and returns
    them. Raises InvalidParameterValue."""
    checked = [check_tag(tag, f"tags[{n}]") for n, tag in enumerate(tags)]
    _check_count("tags", MAX_TAGS_PER_BATCH, len(tags))
    return checked


def check_rewound_metrics(keys: Collection[str]) -> None:
    """Raises InvalidParameterValue if the names of the metrics that a request rewinds (deletes
    their points after a step) have more than MAX_REWOUND_KEY_BYTES together."""
    size = sum(len(key.encode()) for key in keys)
    if size > MAX_REWOUND_KEY_BYTES:
        raise InvalidParameterValue(
            f"The names in 'metric_keys' have {size} bytes; at most {MAX_REWOUND_KEY_BYTES} are "
            "allowed. Name fewer metrics, or leave out 'metric_keys' for all metrics."
        )


def check_log_batch(
    run_id: str,
    metrics: Sequence[MetricFields],
    params: Sequence[KeyValue],
    tags: Sequence[KeyValue],
) -> LogBatch:
    """Checks a log-batch request in MLflow's order (run id, each entry, counts, repeated param
    keys) and returns its contents. Raises InvalidParameterValue."""
    check_run_id(run_id)
    batch = LogBatch(
        _check_metrics(metrics),
        [check_param(param, f"params[{n}]") for n, param in enumerate(params)],
        [check_tag(tag, f"tags[{n}]") for n, tag in enumerate(tags)],
    )
    _check_count("metrics", MAX_METRICS_PER_BATCH, len(metrics))
    _check_count("params", MAX_PARAMS_PER_BATCH, len(params))
    _check_count("tags", MAX_TAGS_PER_BATCH, len(tags))
    _check_count(
        "metrics, params, and tags", MAX_ENTITIES_PER_BATCH, len(metrics) + len(params) + len(tags)
    )
    _check_distinct(batch.params)
    return batch


def _check_metrics(metrics: Sequence[MetricFields]) -> list[Metric]:
    """Checks each metric and returns the metrics. The key of many points is checked only once."""
    checked_keys: set[str] = set()
    checked: list[Metric] = []
    for index, metric in enumerate(metrics):
        if metric.key in checked_keys and metric.timestamp >= 0:
            checked.append(Metric(metric.key, metric.value, metric.timestamp, metric.step))
        else:
            checked.append(check_metric(metric, f"metrics[{index}]"))
            checked_keys.add(metric.key)
    return checked


def _check_count(noun: str, limit: int, count: int) -> None:
    if count > limit:
        raise InvalidParameterValue(
            f"A batch logging request can contain at most {limit} {noun}. "
            f"Got {count} {noun}. Please split up {noun} across multiple requests and try again."
        )


def _check_distinct(params: Sequence[Param]) -> None:
    seen: set[str] = set()
    repeated: list[str] = []
    for param in params:
        if param.key in seen:
            repeated.append(param.key)
        seen.add(param.key)
    if repeated:
        raise InvalidParameterValue(
            f"Duplicate parameter keys have been submitted: {repeated}. Please ensure "
            "the request contains only one param value per param key."
        )


def check_create_run(run_name: str, tags: Sequence[KeyValue]) -> tuple[str | None, list[Tag]]:
    """Checks a create-run request. Returns the run's name (None: one must be generated) and its
    tags, including the tag of the name if the run has one.

    As in MLflow, neither characters nor lengths are checked here. Only an empty key, which a
    DynamoDB map cannot store, a repeated key, and a name other than that of the tag are refused.
    """
    kept: dict[str, Tag] = {}
    for tag in tags:
        if tag.key in kept:
            raise BadRequest(f"The tag '{tag.key}' is given more than once.")
        if not tag.key:
            raise BadRequest("A tag needs a key.")
        kept[tag.key] = Tag(tag.key, tag.value)
    tagged = next((tag.value for tag in tags if tag.key == reserved_tags.RUN_NAME), "")
    if run_name and tagged and run_name != tagged:
        raise InvalidParameterValue(
            "Both 'run_name' argument and 'mlflow.runName' tag are specified, but with different "
            f"values (run_name='{run_name}', mlflow.runName='{tagged}')."
        )
    name = run_name or tagged
    if name:
        kept[reserved_tags.RUN_NAME] = Tag(reserved_tags.RUN_NAME, name)
    else:
        kept.pop(reserved_tags.RUN_NAME, None)
    return name or None, list(kept.values())


def logged_model(model_json: str) -> dict[str, Any]:
    """Returns the parts of a model's description that log-model stores in the tag
    ``mlflow.log-model.history``. Raises InvalidParameterValue if the description is malformed."""
    try:
        model = parse_json_text(model_json, lone_surrogates=True)
    except ValueError:
        raise InvalidParameterValue(
            f"Malformed model info. \n {model_json} \n is not a valid JSON."
        ) from None
    if not isinstance(model, dict):
        raise InvalidParameterValue("Model json is not an object.")
    missing = {"artifact_path", "flavors", "utc_time_created", "run_id"} - model.keys()
    if missing:
        raise InvalidParameterValue(f"Model json is missing mandatory fields: {missing}")
    flavors = model["flavors"]
    if not isinstance(flavors, dict):
        raise InvalidParameterValue("The flavors in the model json are not an object.")
    kept = {
        key: model.get(key) for key in ("run_id", "artifact_path", "utc_time_created", "model_uuid")
    }
    kept["flavors"] = {
        name: {key: value for key, value in flavor.items() if key != "config"}
        if isinstance(flavor, dict)
        else flavor
        for name, flavor in flavors.items()
    }
    return kept


def check_history_page(max_results: int) -> None:
    """Checks that the page size of a request for metric history is positive. (A request without one
    gets as many points as fit into a response.) Raises InvalidParameterValue otherwise."""
    if max_results <= 0:
        raise InvalidParameterValue(
            f"Invalid value {max_results} for parameter 'max_results' supplied. "
            "It must be a positive integer."
        )


def check_history_bulk(run_ids: Sequence[str], has_metric_key: bool) -> None:
    if not run_ids:
        raise InvalidParameterValue(
            "GetMetricHistoryBulk request must specify at least one run_id."
        )
    if len(run_ids) > MAX_BULK_RUNS:
        raise InvalidParameterValue(
            f"GetMetricHistoryBulk request cannot specify more than {MAX_BULK_RUNS} run_ids. "
            f"Received {len(run_ids)} run_ids."
        )
    if not has_metric_key:
        raise InvalidParameterValue("GetMetricHistoryBulk request must specify a metric_key.")


def check_step_range(start_step: int | None, end_step: int | None) -> None:
    """Checks the steps of a get-history-bulk-interval request: both or none are given, in order.
    Raises InvalidParameterValue otherwise."""
    if start_step is not None and end_step is not None:
        if start_step > end_step:
            raise InvalidParameterValue(
                "end_step must be greater than start_step. "
                f"Found start_step={start_step} and end_step={end_step}."
            )
    elif start_step is not None or end_step is not None:
        raise InvalidParameterValue(
            "If either start step or end step are specified, both must be specified."
        )
