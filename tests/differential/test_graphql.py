"""GraphQL: the schema is stock's, and so are the answers, errors among them."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
from graphql import lexicographic_sort_schema, print_schema

from tests.differential.calls import E, batch, experiment, metric, pairs, run
from tests.differential.pair import Pair
from tests.differential.rest import Call, Ref, Reply, Side, post
from ui.graphql.schema import SCHEMA

pytestmark = pytest.mark.e2e

GET_EXPERIMENT = """
query MlflowGetExperimentQuery($input: MlflowGetExperimentInput!) @component(name: "MLflow.X") {
  mlflowGetExperiment(input: $input) {
    apiError { code message __typename }
    experiment {
      artifactLocation creationTime effectiveTraceArchivalRetention experimentId lastUpdateTime
      lifecycleStage name workspace tags { key value __typename } __typename
    }
    __typename
  }
}
"""
RUN = """
fragment RunParts on MlflowRunExtension {
  info {
    runName status runUuid runId experimentId artifactUri endTime lifecycleStage startTime userId
    __typename
  }
  experiment {
    experimentId name tags { key value __typename } artifactLocation lifecycleStage __typename
  }
  modelVersions { status version name source __typename }
  data {
    metrics { key value step timestamp datasetName modelId runId __typename }
    params { key value __typename }
    tags { key value __typename }
    __typename
  }
  inputs {
    datasetInputs {
      dataset { digest name profile schema source sourceType __typename }
      tags { key value __typename }
      __typename
    }
    modelInputs { modelId __typename }
    __typename
  }
  outputs { modelOutputs { modelId step __typename } __typename }
  __typename
}
"""
GET_RUN = (
    """
query GetRun($data: MlflowGetRunInput!) @component(name: "MLflow.X") {
  mlflowGetRun(input: $data) {
    apiError { helpUrl code message __typename } run { ...RunParts } __typename
  }
}
"""
    + RUN
)
SEARCH_RUNS = (
    """
mutation SearchRuns($data: MlflowSearchRunsInput!) {
  mlflowSearchRuns(input: $data) { apiError { code } runs { ...RunParts } nextPageToken }
}
"""
    + RUN
)
HISTORY = """
query GetMetricHistoryBulkInterval($data: MlflowGetMetricHistoryBulkIntervalInput!) {
  mlflowGetMetricHistoryBulkInterval(input: $data) {
    __typename metrics { timestamp step runId key value __typename } apiError { code message }
  }
}
"""
DATASETS = """
mutation SearchDatasets($data: MlflowSearchDatasetsInput!) {
  mlflowSearchDatasets(input: $data) {
    apiError { code } datasetSummaries { experimentId digest name context }
  }
}
"""
VERSIONS = """
query Versions($data: MlflowSearchModelVersionsInput!) {
  mlflowSearchModelVersions(input: $data) {
    apiError { code } nextPageToken
    modelVersions {
      name version userId currentStage description source runId status statusMessage runLink
      aliases modelId tags { key value } modelParams { name } modelMetrics { key }
      deploymentJobState { jobId runId currentTaskName }
    }
  }
}
"""
FILES = """
query Files($data: MlflowListArtifactsInput!) {
  mlflowListArtifacts(input: $data) {
    apiError { code } rootUri nextPageToken files { path isDir fileSize __typename } __typename
  }
}
"""
DATASET = {"name": "d", "digest": "1", "source_type": "s", "source": "x", "schema": "c"}
STORY = [
    experiment(),
    post("experiments/set-experiment-tag", {"experiment_id": E, "key": "k", "value": "v"}),
    run("full", start_time=5),
    run("bare"),
    batch(
        Ref("full"),
        metrics=[metric("a", 1.5, 7, 3), metric("n", "NaN", 7, 0), metric("a", 0.5, 6, 1)],
        params=pairs(p="1"),
        tags=pairs(t="x"),
    ),
    post(
        "runs/log-inputs",
        {
            "run_id": Ref("full"),
            "datasets": [
                {"tags": [{"key": "mlflow.data.context", "value": "c"}], "dataset": DATASET}
            ],
        },
    ),
    post("runs/update", {"run_id": Ref("full"), "status": "FINISHED", "end_time": 9}),
]


REGISTERED = [
    post("registered-models/create", {"name": "graphql model"}),
    post(
        "model-versions/create",
        {
            "name": "graphql model",
            "source": "s3://b/x",
            "run_id": Ref("full"),
            "tags": [{"key": "k", "value": "v"}],
        },
    ),
    post("registered-models/alias", {"name": "graphql model", "alias": "a", "version": "1"}),
]


def ask(query: str, variables: Any = None, operation: str | None = None) -> Call:
    body = {"query": query, "variables": variables, "operationName": operation}
    return Call("POST", "/graphql", {key: part for key, part in body.items() if part is not None})


def snake_case(value: Any) -> Any:
    """Field names and int64 as in REST, so that what is compared there is compared here."""
    if isinstance(value, dict):
        return {
            re.sub("[A-Z]", lambda c: "_" + c[0].lower(), key): (
                int(part) if key in {"creationTime", "lastUpdateTime"} else snake_case(part)
            )
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [snake_case(part) for part in value]
    return value


def reply_of(side: Side, call: Call) -> Reply:
    reply = side.send(call)
    if reply.status == 200:
        assert set(reply.body) == {"data", "errors"}
    body = {"data_of": snake_case(reply.body["data"]), "message": reply.body["errors"]}
    return side.comparable(Reply(reply.status, body))


def same(both: Pair, call: Call) -> Reply:
    stock, ours = reply_of(both.stock, call), reply_of(both.product, call)
    assert ours == stock, call
    return ours


def test_schema_is_stocks() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mlflow.server.graphql.graphql_schema_extensions import schema  # noqa: PLC0415 - slow

    stock = print_schema(lexicographic_sort_schema(schema.graphql_schema))
    assert print_schema(lexicographic_sort_schema(SCHEMA)) == stock


def test_ui_queries(both: Pair) -> None:
    both.send_all([*STORY, *REGISTERED])
    for variables in ({"experimentId": E}, {"experimentId": "0"}):
        reply = same(both, ask(GET_EXPERIMENT, {"input": variables}, "MlflowGetExperimentQuery"))
        assert reply.body["message"] is None
    for run_id in (Ref("full"), Ref("bare")):
        for name in ("runId", "runUuid"):
            reply = same(both, ask(GET_RUN, {"data": {name: run_id}}, "GetRun"))
            assert reply.body["message"] is None
    reply = same(both, ask(SEARCH_RUNS, {"data": {"experimentIds": [E]}}))
    assert len(reply.body["data_of"]["mlflow_search_runs"]["runs"]) == 2
    wanted = {"experimentIds": [E], "filter": "metrics.a > 1", "maxResults": 1}
    reply = same(both, ask(SEARCH_RUNS, {"data": wanted | {"orderBy": ["params.p"]}}))
    assert len(reply.body["data_of"]["mlflow_search_runs"]["runs"]) == 1
    wanted = {"runIds": [Ref("full"), Ref("bare")], "metricKey": "a", "maxResults": 320}
    reply = same(both, ask(HISTORY, {"data": wanted}))
    assert len(reply.body["data_of"]["mlflow_get_metric_history_bulk_interval"]["metrics"]) == 2
    same(both, ask(HISTORY, {"data": wanted | {"metricKey": "n"}}))
    searches: list[dict[str, Any]] = [
        {"filter": "name='graphql model'"},
        {"filter": "name='graphql model'", "maxResults": 10},
        {"filter": "name='graphql model'", "orderBy": ["name"]},
    ]
    for search in searches:
        reply = same(both, ask(VERSIONS, {"data": search}))
        versions = reply.body["data_of"]["mlflow_search_model_versions"]["model_versions"]
        assert "graphql model" in {version["name"] for version in versions}, reply
    reply = same(both, ask(DATASETS, {"data": {"experimentIds": [E]}}))
    assert len(reply.body["data_of"]["mlflow_search_datasets"]["dataset_summaries"]) == 1
    same(both, ask(DATASETS, {"data": {"experimentIds": []}}))


def test_files(both: Pair) -> None:
    both.send_all([experiment(), run("files")])
    proxy = "/api/2.0/mlflow-artifacts/artifacts/{{experiment}}/{{files}}/artifacts"
    for path in ("a.txt", "model/MLmodel", "model/data/w.bin"):
        both.send(Call("PUT", f"{proxy}/{path}", raw=b"12345", content_type=None))
    counts = []
    for folder in (None, "", "model", "a.txt", "nothing", "model/data"):
        wanted = {"runId": Ref("files")} | ({} if folder is None else {"path": folder})
        listed = same(both, ask(FILES, {"data": wanted})).body["data_of"]["mlflow_list_artifacts"]
        counts.append(len(listed["files"]))
    assert counts == [2, 2, 2, 0, 0, 1]
    same(both, ask(FILES, {"data": {"runUuid": Ref("files"), "path": "model"}}))
    for path in ("..", "../x", "/etc", "%2e%2e/x", "a#b"):
        same(both, ask(FILES, {"data": {"runId": Ref("files"), "path": path}}))
    same(both, ask(FILES, {"data": {"runId": "0" * 32}}))
    same(both, ask(FILES, {"data": {}}))


TEST = 'query A($s: String = "d", $on: Boolean = true) { one: test(inputString: $s) { output } '
DEEP = "{ a " * 12 + "}" * 12


@pytest.mark.parametrize(
    ("query", "variables", "operation"),
    [
        (TEST + "}", None, None),
        (TEST + "}", {"s": "x\u2028é"}, "A"),
        (TEST + '... on Query { test(inputString: "z") { output __typename } } }', None, None),
        (TEST + '} query B { test(inputString: "b") { output } }', None, "B"),
        (TEST + '} query B { test(inputString: "b") { output } }', None, None),
        (TEST + '} query B { test(inputString: "b") { output } }', None, "C"),
        (TEST + "}", {"s": 5}, None),
        (TEST + "nothing }", None, None),
        (TEST + "...F } fragment F on Query { ...F }", None, None),
        (TEST + "...F }", None, None),
        ('{ test(inputString: "x") }', None, None),
        ("{ test(other: 1) { output } }", None, None),
        ("{ __schema { queryType { name } mutationType { name } } }", None, None),
        ('{ __type(name: "MlflowRunInfo") { fields { name type { name kind } } } }', None, None),
        (DEEP, None, None),
        ("{ test { output " + "output " * 1_000 + "} }", None, None),
        ("{" + "".join(f"a{n}: test {{ output }} " for n in range(11)) + "}", None, None),
        ("{ test {" + "".join(f"a{n}: output " for n in range(11)) + "} }", None, None),
        (
            "{ test { ...F ... on Test { a: output } } } fragment F on Test {"
            + "".join(f"b{n}: output " for n in range(10))
            + "}",
            None,
            None,
        ),
        ("{ a { ...F } } fragment F on Query { a { ...F } }", None, None),
        (GET_EXPERIMENT, {"input": {"experimentId": "999999"}}, None),
        (GET_EXPERIMENT, {"input": {"nothing": 1}}, None),
        (GET_EXPERIMENT, {}, None),
        (GET_RUN, {"data": {"runId": "0" * 32}}, None),
        (SEARCH_RUNS, {"data": {"experimentIds": ["0"], "filter": "nonsense"}}, None),
        (SEARCH_RUNS, {"data": {"experimentIds": ["0"], "runViewType": "NONE"}}, None),
        (HISTORY, {"data": {"runIds": [], "metricKey": "m"}}, None),
        (DATASETS, {"data": {"experimentIds": ["0"] * 21}}, None),
    ],
    ids=str,
)
def test_language_and_errors(both: Pair, query: str, variables: Any, operation: str) -> None:
    same(both, ask(query, variables, operation))
