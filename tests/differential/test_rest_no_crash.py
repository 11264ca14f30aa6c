"""Whatever JSON a caller sends, the product never answers with a server error."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

FIELDS = [
    "run_id",
    "run_uuid",
    "runId",
    "experiment_id",
    "experiment_ids",
    "name",
    "new_name",
    "key",
    "value",
    "timestamp",
    "step",
    "tags",
    "params",
    "metrics",
    "datasets",
    "dataset",
    "models",
    "model_id",
    "model_json",
    "status",
    "end_time",
    "start_time",
    "run_name",
    "user_id",
    "filter",
    "order_by",
    "max_results",
    "page_token",
    "view_type",
    "run_view_type",
    "digest",
    "source",
    "source_type",
    "schema",
    "profile",
    "artifact_location",
    "dataset_name",
    "dataset_digest",
    "metric_key",
    "run_ids",
    "start_step",
    "end_step",
    "experiment_name",
]
POSTS = [
    "experiments/create",
    "experiments/update",
    "experiments/delete",
    "experiments/restore",
    "experiments/search",
    "experiments/set-experiment-tag",
    "experiments/delete-experiment-tag",
    "experiments/search-datasets",
    "runs/create",
    "runs/update",
    "runs/delete",
    "runs/restore",
    "runs/set-tag",
    "runs/delete-tag",
    "runs/log-parameter",
    "runs/log-metric",
    "runs/log-batch",
    "runs/log-inputs",
    "runs/outputs",
    "runs/log-model",
    "runs/search",
]
GETS = [
    "experiments/get",
    "experiments/get-by-name",
    "experiments/search",
    "runs/get",
    "metrics/get-history",
    "metrics/get-history-bulk",
    "metrics/get-history-bulk-interval",
]
WORDS = (
    "0",
    "m",
    "p",
    "t",
    "NaN",
    "-Infinity",
    "1e400",
    "ACTIVE_ONLY",
    "FINISHED",
    "metrics.m > 1",
    "tags.a = 'b'",
    "start_time DESC",
    "eyJvZmZzZXQiOiAyfQ==",
    "s3://b/x",
    "mlflow.runName",
    "{}",
)

texts = st.one_of(
    st.text(max_size=20),
    st.sampled_from(WORDS),
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.floats(),
    texts,
)


def values(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.one_of(st.sampled_from(FIELDS), st.text(max_size=5))
    return st.one_of(st.lists(inner, max_size=3), st.dictionaries(fields, inner, max_size=5))


anything = st.recursive(scalars, values, max_leaves=12)
bodies = st.dictionaries(st.sampled_from(FIELDS), anything, max_size=8)


class Caller:
    """Sends to the product with the ids of an experiment and a run that exist."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
        self.experiment = ""
        self.run = ""

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        headers = {"Content-Type": "application/json"}
        data = None if body is None else json.dumps(body)
        self._connection.request(method, path, data, headers)
        reply = self._connection.getresponse()
        return reply.status, reply.read().decode()

    def subject(self) -> None:
        """An experiment and a run that are active, whatever the examples before did to them."""
        body = {"name": f"no crash {id(self)}"}
        if not self.experiment:
            _, text = self.send("POST", "/api/2.0/mlflow/experiments/create", body)
            self.experiment = json.loads(text)["experiment_id"]
            body = {"experiment_id": self.experiment}
            _, text = self.send("POST", "/api/2.0/mlflow/runs/create", body)
            self.run = json.loads(text)["run"]["info"]["run_id"]
        self.send("POST", "/api/2.0/mlflow/experiments/restore", {"experiment_id": self.experiment})
        self.send("POST", "/api/2.0/mlflow/runs/restore", {"run_id": self.run})

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def caller(product_url: str) -> Any:
    caller = Caller(product_url)
    caller.subject()
    yield caller
    caller.close()


def known(body: dict[str, Any], caller: Caller, ids: int) -> dict[str, Any]:
    """The body with real ids for some examples, so that it gets past the first checks."""
    if ids & 1:
        body = {**body, "run_id": caller.run}
    if ids & 2:
        body = {**body, "experiment_id": caller.experiment}
    if ids & 4:
        body = {**body, "experiment_ids": [caller.experiment], "run_ids": [caller.run]}
    return body


@pytest.mark.parametrize("path", POSTS)
def test_post(caller: Caller, path: str) -> None:
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(body=st.one_of(bodies, anything), ids=st.integers(0, 7))
    def check(body: Any, ids: int) -> None:
        if isinstance(body, dict):
            body = known(body, caller, ids)
        status, text = caller.send("POST", f"/ajax-api/2.0/mlflow/{path}", body)
        # INVALID_STATE is the one 500 that stock promises for a caller's mistake.
        assert status < 500 or json.loads(text)["error_code"] == "INVALID_STATE", text

    check()
    caller.subject()


@pytest.mark.parametrize("path", GETS)
def test_get(caller: Caller, path: str) -> None:
    queries = st.dictionaries(
        st.sampled_from(FIELDS),
        st.one_of(texts, st.integers().map(str), st.lists(texts, max_size=3)),
        max_size=6,
    )

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(query=queries, ids=st.integers(0, 7))
    def check(query: dict[str, Any], ids: int) -> None:
        text = urlencode(known(query, caller, ids), doseq=True, errors="replace")
        status, answer = caller.send("GET", f"/ajax-api/2.0/mlflow/{path}?{text}")
        assert status < 500, answer

    check()
