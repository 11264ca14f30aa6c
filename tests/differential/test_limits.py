"""Our rules against the functions of MLflow's server that hold them, on generated values."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlcore.errors import MlflowError
from mlcore.limits import artifact_locations, experiments, run_datasets, runs
from runs import messages as m

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    handlers = pytest.importorskip("mlflow.server.handlers")
    stock = pytest.importorskip("mlflow.utils.validation")
    uri = pytest.importorskip("mlflow.utils.uri")
    stock_entities = pytest.importorskip("mlflow.entities")
    MlflowException = pytest.importorskip("mlflow.exceptions").MlflowException

pytestmark = pytest.mark.e2e

EXAMPLES = int(os.environ.get("DIFFERENTIAL_EXAMPLES", "40"))

keys = st.one_of(
    st.text(max_size=5),
    st.text("abé._-/ :#\n\\\x00", max_size=6),
    st.sampled_from(["k", "k" * 250, "k" * 251, "a/../b", "mlflow.runName", "²"]),
)
values = st.one_of(
    st.text(max_size=5),
    st.integers(0, 2).flatmap(
        lambda more: st.sampled_from([500, 6000, 8000, 20_000]).map(
            lambda size: "v" * (size + more)
        )
    ),
)
pairs = st.lists(st.tuples(keys, values), max_size=4)


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except (MlflowError, MlflowException) as error:
        return error.message
    except Exception:
        return "crash"


def agree(stock_outcome: Any, our_outcome: Any) -> None:
    if stock_outcome != "crash":
        assert our_outcome == stock_outcome


def stock_batch(run_id: str, metrics: Any, params: Any, tags: Any) -> Any:
    stock._validate_run_id(run_id)
    checked = stock._validate_batch_log_data(
        [stock_entities.Metric(*metric) for metric in metrics],
        [stock_entities.Param(*param) for param in params],
        [stock_entities.RunTag(*tag) for tag in tags],
    )
    stock._validate_batch_log_limits(*checked)
    stock._validate_param_keys_unique(checked[1])
    return [[tuple(item)[:4] for item in _plain(kind)] for kind in checked]


def our_batch(run_id: str, metrics: Any, params: Any, tags: Any) -> Any:
    names = ("key", "value", "timestamp", "step")
    checked = runs.check_log_batch(
        run_id,
        [m.Metric(**dict(zip(names, metric, strict=True))) for metric in metrics],
        [m.Param(key=key, value=value) for key, value in params],
        [m.RunTag(key=key, value=value) for key, value in tags],
    )
    return [[tuple(item) for item in kind] for kind in checked]


def _plain(items: Any) -> Any:
    for item in items:
        if hasattr(item, "timestamp"):
            yield item.key, item.value, item.timestamp, item.step
        else:
            yield item.key, item.value


@settings(max_examples=EXAMPLES * 5, deadline=None, database=None)
@given(
    run_id=st.one_of(st.just("r"), keys),
    metrics=st.lists(
        st.tuples(keys, st.floats(allow_nan=False), st.integers(-2, 9), st.integers(-5, 5)),
        max_size=3,
    ),
    params=pairs,
    tags=pairs,
)
def test_log_batch(run_id: str, metrics: Any, params: Any, tags: Any) -> None:
    agree(
        outcome(stock_batch, run_id, metrics, params, tags),
        outcome(our_batch, run_id, metrics, params, tags),
    )


@settings(max_examples=EXAMPLES, deadline=None, database=None)
@given(
    key=st.one_of(
        keys, st.sampled_from(["mlflow.trace.archivalRetention", "mlflow.trace.archiveNow"])
    ),
    value=st.one_of(
        values,
        st.sampled_from([
            "{}", "[]", "null", "{", '{"type":"duration","value":"3d"}', '{"type":"duration"}',
            '{"type":"duration","value":"3w"}', '{"older_than":"3d"}', '{"older_than":3}',
            '{"type":"duration","value":" 03d "}', '{"older_than":" 3h "}', '{"older_than":""}',
        ]),
    ),
)  # fmt: skip
def test_experiment_tags(key: str, value: str) -> None:
    ours = outcome(experiments.check_tag, key, value)
    agree(
        outcome(stock._validate_experiment_tag, key, value),
        None if isinstance(ours, tuple) else ours,
    )


@settings(max_examples=EXAMPLES * 5, deadline=None, database=None)
@given(
    st.lists(
        st.sampled_from([
            "s3://", "http:", "//", "mlflow-artifacts:", "FTP://", "runs:/", "abfss://", "file:",
            "h", "a", "/",
            "?", "#", ";", "%2e", "%252e", "..", "=", "[", "]", "é", " ", "\\", ":99999999",
            "x" * 2048, "hdfs:",
        ]),
        max_size=7,
    ).map("".join)
)  # fmt: skip
def test_locations(location: str) -> None:
    if location:
        agree(
            outcome(stock_location, location),
            outcome(artifact_locations.check_location, location, "f"),
        )


def stock_location(location: str) -> None:
    """The handler's check, then the store's."""
    handlers._validate_storage_location_uri(location, "f")
    stock._validate_experiment_artifact_location_length(uri.resolve_uri_if_local(location))


@settings(max_examples=EXAMPLES, deadline=None, database=None)
@given(
    fields=st.fixed_dictionaries(
        {
            name: st.sampled_from(["", "x", "x" * limit, "x" * (limit + 1)])
            for name, limit in (
                ("name", 500),
                ("digest", 36),
                ("source", 65_535),
                ("schema", 1_048_575),
            )
        }
    ),
    # A repeated key is an integrity error of the stock server's database.
    tags=st.lists(
        st.tuples(st.sampled_from(["", "k" * 255, "k" * 256]), values),
        max_size=2,
        unique_by=lambda tag: tag[0],
    ),
)
def test_dataset_inputs(fields: dict[str, str], tags: Any) -> None:
    theirs = stock_entities.DatasetInput(
        stock_entities.Dataset(source_type="t", **fields),
        [stock_entities.InputTag(*tag) for tag in tags],
    )
    mine = m.DatasetInput(
        dataset=m.Dataset(source_type="t", **fields),
        tags=[m.InputTag(key=key, value=value) for key, value in tags],
    )
    ours = outcome(run_datasets.check_log_inputs, "r", [mine])
    agree(
        outcome(stock._validate_dataset_inputs, [theirs]), None if isinstance(ours, list) else ours
    )


@settings(max_examples=EXAMPLES, deadline=None, database=None)
@given(st.sampled_from(["", "n", "n" * 500, "n" * 501, " "]))
def test_experiment_names(name: str) -> None:
    agree(outcome(stock._validate_experiment_name, name), outcome(experiments.check_name, name))
