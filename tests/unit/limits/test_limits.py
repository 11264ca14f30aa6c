"""MLflow's rules by example; the comparison with its own functions is in tests/differential."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mlcore.entities import metrics as metric_entities
from mlcore.entities import runs as run_entities
from mlcore.entities import tags as tag_entities
from mlcore.errors import BadRequest, InvalidParameterValue, MlflowError
from mlcore.limits import artifact_locations, experiments, run_datasets, runs, shared_checks
from runs.messages import Dataset, DatasetInput, InputTag, Metric, Param, RunTag


def refusal(function: Any, *arguments: Any) -> str:
    with pytest.raises(MlflowError) as failure:
        function(*arguments)
    assert isinstance(failure.value, InvalidParameterValue | BadRequest)
    return failure.value.message


def metric(key: str = "m", value: float = 1.0, timestamp: int = 1) -> Metric:
    return Metric(key=key, value=value, timestamp=timestamp)


def param(key: str = "p", value: str = "v") -> Param:
    return Param(key=key, value=value)


def tag(key: str = "t", value: str = "v") -> RunTag:
    return RunTag(key=key, value=value)


@pytest.mark.parametrize("key", ["a", "a/b", "a b.c-d:e_f", "é", "1", ".a"])
def test_good_keys(key: str) -> None:
    shared_checks.check_key(key, "key")


@pytest.mark.parametrize(
    "key", ["", ".", "..", "...", "/a", "a//b", "a/../b", "a/", "../a", "a#b", "a\tb", "a\x00"]
)
def test_bad_keys(key: str) -> None:
    assert refusal(shared_checks.check_key, key, "key").startswith("Invalid value ")


def test_the_longest_allowed_values() -> None:
    runs.check_metric(metric("k" * 250))
    assert refusal(runs.check_metric, metric("k" * 251)) == (
        "'Metric name' exceeds the maximum length of 250 characters"
    )
    assert runs.check_param(param(value="v" * 6001)).value == "v" * 6000
    assert runs.check_tag(tag(value="v" * 8001)).value == "v" * 8000
    assert "'params[2].key'" not in refusal(runs.check_param, param("k" * 251), "params[2]")
    assert "'tags[2].key'" in refusal(runs.check_tag, tag("k" * 251), "tags[2]")


def test_truncation_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRUNCATE_LONG_VALUES", "false")
    assert "'Param value' exceeds" in refusal(runs.check_param, param(value="v" * 6001))


def test_negative_timestamps() -> None:
    assert refusal(runs.check_metric, metric(timestamp=-1)) == (
        "Invalid value -1 for parameter 'timestamp' supplied: metric 'm' (value=1.0). "
        "Timestamp must be a nonnegative long (64-bit integer) "
    )


def test_batches() -> None:
    batch = runs.check_log_batch("r", [metric()], [param()], [tag(), tag()])
    assert batch.metrics == [metric_entities.Metric("m", 1.0, 1, 0)]
    assert batch.params == [run_entities.Param("p", "v")]
    assert batch.tags == [tag_entities.Tag("t", "v")] * 2
    assert "metrics[1].name" in refusal(
        runs.check_log_batch, "r", [metric(), metric("#")], [param("#")], []
    )
    assert refusal(runs.check_log_batch, "r/", [], [], []) == (
        "Invalid value \"r/\" for parameter 'run_id' supplied."
    )
    assert "Duplicate parameter keys have been submitted: ['p', 'p']" in refusal(
        runs.check_log_batch, "r", [], [param()] * 3, []
    )


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((1001, 0, 0), "at most 1000 metrics. Got 1001 metrics."),
        ((0, 101, 0), "at most 100 params. Got 101 params."),
        ((0, 0, 101), "at most 100 tags. Got 101 tags."),
        (
            (900, 100, 1),
            "at most 1000 metrics, params, and tags. Got 1001 metrics, params, and tags.",
        ),
    ],
)
def test_batch_sizes(counts: tuple[int, int, int], words: str) -> None:
    metrics, params, tags = counts
    assert words in refusal(
        runs.check_log_batch,
        "r",
        [metric()] * metrics,
        [param(f"p{n}") for n in range(params)],
        [tag()] * tags,
    )


def test_create_run() -> None:
    assert runs.check_create_run("", []) == (None, [])
    name_tag = tag_entities.Tag("mlflow.runName", "n")
    assert runs.check_create_run("n", []) == ("n", [name_tag])
    assert runs.check_create_run("", [tag("mlflow.runName", "n")]) == ("n", [name_tag])
    assert runs.check_create_run("n", [tag("mlflow.runName", "")]) == ("n", [name_tag])
    assert runs.check_create_run("", [tag("mlflow.runName", "")]) == (None, [])
    assert "but with different values (run_name='a', mlflow.runName='b')" in refusal(
        runs.check_create_run, "a", [tag("mlflow.runName", "b")]
    )
    assert "more than once" in refusal(runs.check_create_run, "", [tag(), tag()])


def test_logged_models() -> None:
    model = {"artifact_path": "m", "flavors": {"f": {"config": 1, "x": 2}, "g": 3}, "run_id": "r"}
    model["utc_time_created"] = "now"
    assert runs.logged_model(json.dumps({**model, "more": 1})) == {
        **model,
        "flavors": {"f": {"x": 2}, "g": 3},
        "model_uuid": None,
    }
    assert refusal(runs.logged_model, "{") == "Malformed model info. \n { \n is not a valid JSON."
    assert "missing mandatory fields: {'run_id'}" in refusal(
        runs.logged_model, json.dumps({**model, "run_id": None}).replace('"run_id"', '"other"')
    )
    refusal(runs.logged_model, "[]")
    refusal(runs.logged_model, json.dumps({**model, "flavors": []}))


def test_history_arguments() -> None:
    runs.check_history_page(1)
    assert refusal(runs.check_history_page, 0).endswith("It must be a positive integer.")
    runs.check_history_bulk(["a"], True)
    assert "at least one run_id" in refusal(runs.check_history_bulk, [], True)
    assert "Received 101 run_ids" in refusal(runs.check_history_bulk, ["a"] * 101, True)
    assert "must specify a metric_key" in refusal(runs.check_history_bulk, ["a"], False)
    runs.check_step_range(None, None)
    runs.check_step_range(1, 1)
    assert "Found start_step=2 and end_step=1." in refusal(runs.check_step_range, 2, 1)
    assert "both must be specified" in refusal(runs.check_step_range, 2, None)


def test_page_sizes() -> None:
    shared_checks.check_max_results(50_000)
    assert refusal(shared_checks.check_max_results, 0).endswith("It must be a positive integer")
    assert refusal(shared_checks.check_max_results, 50_001).endswith("It must be at most 50000")


def test_inputs() -> None:
    dataset = Dataset(name="n", digest="d", source_type="t", source="s", schema="")
    tagged = DatasetInput(dataset=dataset, tags=[InputTag(key="k", value="v")])
    [kept] = run_datasets.check_log_inputs("r", [tagged, DatasetInput(dataset=dataset)])
    assert kept.dataset == run_entities.Dataset("n", "d", "t", "s", None, None)
    assert kept.tags == (tag_entities.Tag("k", "v"),)
    assert run_datasets.check_log_inputs("r", [DatasetInput()])[0].dataset.name == ""
    for field, limit in (
        ("name", 500),
        ("digest", 36),
        ("source", 65_535),
        ("schema", 1_048_575),
        ("profile", 16_777_215),
    ):
        fits = DatasetInput(dataset=Dataset(**{field: "x" * limit}))
        run_datasets.check_log_inputs("r", [fits])
        beyond = DatasetInput(dataset=Dataset(**{field: "x" * (limit + 1)}))
        assert f"'{field}' exceeds the maximum length of {limit}" in refusal(
            run_datasets.check_log_inputs, "r", [beyond]
        )
    long_key = DatasetInput(dataset=dataset, tags=[InputTag(key="k" * 256)])
    assert "'key' exceeds the maximum length of 255" in refusal(
        run_datasets.check_log_inputs, "r", [long_key]
    )
    long_value = DatasetInput(dataset=dataset, tags=[InputTag(value="v" * 501)])
    assert "'value' exceeds" in refusal(run_datasets.check_log_inputs, "r", [long_value])


def test_searched_experiments() -> None:
    run_datasets.check_search_datasets(["0"] * 20)
    assert "at least one" in refusal(run_datasets.check_search_datasets, [])
    assert "Received 21" in refusal(run_datasets.check_search_datasets, ["0"] * 21)


def test_experiment_ids() -> None:
    assert experiments.experiment_id("0") == "0"
    assert experiments.experiment_id("007") == "7"
    for bad in ("x y", "", "-x", "é", "7/8", "x" * 65, "0" * 5000 + "x"):
        assert refusal(experiments.experiment_id, bad).startswith("Invalid experiment ID '")
    for other in ("x", "01JCAB3DEFGHJKMNPQRSTVWXYZ", "team_a-2"):
        assert experiments.experiment_id(other) == other
        assert not experiments.is_numeric_id(other)
    for number in ("0", "-3", "823149582371645290"):
        assert experiments.is_numeric_id(experiments.experiment_id(number))


def test_create_experiment() -> None:
    assert experiments.check_create_experiment("n", "s3://b/p", [tag()]) == [
        tag_entities.Tag("t", "v")
    ]
    assert refusal(experiments.check_create_experiment, "", "", []) == "Invalid experiment name: ''"
    assert "'name' exceeds" in refusal(experiments.check_create_experiment, "n" * 501, "", [])
    assert "only once" in refusal(experiments.check_create_experiment, "n", "", [tag(), tag()])
    views = [tag(f"mlflow.customView.view.v1.{n}") for n in range(51)]
    experiments.check_create_experiment("n", "", views[:50])
    assert "another custom view; the maximum" in refusal(
        experiments.check_create_experiment, "n", "", views
    )


def test_custom_views() -> None:
    keys = [f"mlflow.customView.view.v1.{n}" for n in range(50)]
    experiments.check_custom_views("7", keys[3], keys)
    experiments.check_custom_views("7", "other", keys)
    experiments.check_custom_views("7", "mlflow.customView.view.new", keys[1:])
    assert "another custom view for experiment 7;" in refusal(
        experiments.check_custom_views, "7", "mlflow.customView.view.new", keys
    )


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("#", "", "Names may only contain"),
        ("k" * 251, "", "'key' exceeds the maximum length of 250"),
        ("k", "v" * 20_001, "'value' exceeds the maximum length of 20000"),
        ("mlflow.trace.archivalRetention", "30d", "must be encoded as a JSON object"),
        ("mlflow.trace.archivalRetention", "{}", "must use type 'duration'"),
        ("mlflow.trace.archivalRetention", '{"type":"duration"}', "must be in the form"),
        (
            "mlflow.trace.archivalRetention",
            '{"type":"duration","value":"0d"}',
            "must be in the form",
        ),
        (
            "mlflow.trace.archivalRetention",
            json.dumps({"type": "duration", "value": "9" * 33 + "d"}),
            "at most 32 characters",
        ),
        ("mlflow.trace.archiveNow", '{"older_than":5}', "must be in the form"),
    ],
)
def test_bad_experiment_tags(key: str, value: str, words: str) -> None:
    assert words in refusal(experiments.check_tag, key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("k", ""),
        ("mlflow.trace.archivalRetention", '{"type":"duration","value":" 30d "}'),
        ("mlflow.trace.archiveNow", "{}"),
        ("mlflow.trace.archiveNow", '{"older_than":"1h"}'),
    ],
)
def test_good_experiment_tags(key: str, value: str) -> None:
    assert experiments.check_tag(key, value) == tag_entities.Tag(key, value)


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("s3://b/a#f", "can't include fragments or params"),
        ("http://x/a;b", "can't include fragments or params"),
        ("s3://b?x=..%2f", "Invalid query string"),
        ("s3://b?x=%25252e%25252e", "Invalid query string"),
        ("HTTP://169.254.169.254/", "'f' cannot use the 'http' scheme"),
        ("mlflow-artifacts://h/x", "cannot use the 'mlflow-artifacts' scheme"),
        ("ftp:///x", "cannot use the 'ftp' scheme"),
        ("http://[bad", "not a valid URL"),
        ("runs:/a", "cannot be a runs:/ URI"),
        ("s3://" + "b" * 2048, "cannot be greater than 2048 characters"),
    ],
)
def test_bad_locations(location: str, words: str) -> None:
    assert words in refusal(artifact_locations.check_location, location, "f")


@pytest.mark.parametrize(
    "location", ["s3://b/p", "mlflow-artifacts:/p", "/tmp/x", "s3://b/a;p", "gs://b?x=1"]
)
def test_good_locations(location: str) -> None:
    artifact_locations.check_location(location, "f")


def test_schemes_can_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOWED_HOST_ADDRESSED_ARTIFACT_SCHEMES", "FTP, http")
    artifact_locations.check_location("http://x/y", "f")
