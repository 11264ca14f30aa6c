"""What only the UI asks for: GraphQL's requests, limits and directives; the calls without a
backend."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from mlcore import errors
from mlcore.repos.experiments import experiments
from ui.app import handler
from ui.graphql.query_limits import MAX_TOKENS


def call(method: str, path: str, body: Any = None, query: str = "") -> dict[str, Any]:
    return handler(
        {
            "requestContext": {"http": {"method": method}, "requestId": "r"},
            "rawPath": path,
            "rawQueryString": query,
            "headers": {"content-type": "application/json"},
            "body": json.dumps(body),
        },
        None,
    )


def graphql(query: Any, **more: Any) -> tuple[Any, Any]:
    answer = call("POST", "/graphql", {"query": query, **more})
    assert answer["statusCode"] == 200, answer
    body = json.loads(answer["body"])
    assert set(body) == {"data", "errors"}
    return body["data"], body["errors"]


def test_directives() -> None:
    query = """query ($on: Boolean!) @component(name: "x") {
        test(inputString: "a") { output @include(if: $on) other: output @skip(if: $on) } }"""
    assert graphql(query, variables={"on": True}) == ({"test": {"output": "a"}}, None)
    assert graphql(query, variables={"on": False}) == ({"test": {"other": "a"}}, None)


def test_query_string_and_json_in_it() -> None:
    query = "query Q($s: String) { test(inputString: $s) { output } }"
    arguments = {"query": query, "variables": '{"s": "a"}', "operationName": "Q"}
    answer = call("GET", "/graphql", query=urlencode(arguments))
    assert json.loads(answer["body"]) == {"data": {"test": {"output": "a"}}, "errors": None}


@pytest.mark.parametrize(
    ("query", "more", "message"),
    [
        ("", {}, "The request has no query."),
        ("{ test", {}, "Syntax Error: Expected Name, found <EOF>."),
        ("{ test { output } }", {"variables": [1]}, "The variables are not a JSON object."),
        ("{ test { output } }", {"variables": "{"}, "The variables are not JSON."),
        ("{ a " * 5_000, {}, "Syntax Error: Document is nested too deeply. Parsing aborted."),
        ("{ a " * 100 + "}" * 100, {}, "Query exceeds maximum depth of 10"),
        ("[" * 5_000, {}, "Syntax Error: Unexpected '['."),
        (
            "{ " + "a " * MAX_TOKENS + "}",
            {},
            f"Syntax Error: Document contains more than {MAX_TOKENS} tokens. Parsing aborted.",
        ),
        (
            "{ mlflowGetExperiment { experiment { name } } }",
            {},
            "Missing value for required parameter 'input'.",
        ),
    ],
)
def test_mistakes_are_texts(query: str, more: dict[str, Any], message: str) -> None:
    data, problems = graphql(query, **more)
    assert problems == [message]
    assert data in (None, {"mlflowGetExperiment": None})


@pytest.mark.parametrize("depth", [50, 150, 250, 350, 600, 900])
def test_nested_values_are_refused(depth: int) -> None:
    value = "[" * depth + "]" * depth
    data, problems = graphql(f"{{ test(inputString: {value}) {{ output }} }}")
    assert data is None
    assert len(problems) == 1


def test_failures_keep_their_reason_and_defects_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_id: str, _workspace: str) -> Any:
        raise errors.ResourceDoesNotExist("No Experiment with id=1 exists")

    query = '{ mlflowGetExperiment(input: {experimentId: "1"}) { experiment { name } } }'
    monkeypatch.setattr(experiments, "get", missing)
    assert graphql(query) == ({"mlflowGetExperiment": None}, ["No Experiment with id=1 exists"])
    monkeypatch.setattr(experiments, "get", lambda *_: json.loads("secret"))
    problem = "The request failed unexpectedly (request id r)."
    assert graphql(query) == ({"mlflowGetExperiment": None}, [problem])


def test_too_large_an_answer() -> None:
    data, problems = graphql(
        "query ($s: String) {"
        + "".join(f"a{n}: test(inputString: $s) {{output}}" for n in range(9))
        + "}",
        variables={"s": "x" * 700_000},
    )
    assert data is None
    assert "6 MB" in problems[0]


def test_nothing_behind_the_gateway_and_telemetry() -> None:
    for method in ("GET", "POST"):
        answer = call(method, "/ajax-api/2.0/mlflow/gateway-proxy", {"gateway_path": "x"})
        assert json.loads(answer["body"]) == {"endpoints": []}
    telemetry = "/ajax-api/3.0/mlflow/ui-telemetry"
    assert json.loads(call("GET", telemetry)["body"])["disable_ui_telemetry"] is True
    assert json.loads(call("POST", telemetry, {"records": []})["body"]) == {"status": "disabled"}
    assert call("GET", "/api/3.0/mlflow/ui-telemetry")["statusCode"] == 404
