"""A private text that comes in by any way is stored nowhere while a rule of redaction matches."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import workspaces.app
from judge_runner import assessing
from mlcore.db import capacity, keys
from mlcore.db.table import table
from mlcore.entities.traces import Assessment
from mlcore.models.settings import Config
from mlcore.repos.settings import cached_setting, stored_settings
from mlcore.repos.traces import traces
from tests.contract.artifact_folder import artifacts_in
from tests.contract.conftest import Store
from tests.contract.gateway_requests import post
from tests.contract.gateway_world import allow_local, endpoint, model
from tests.contract.index_state import deliver
from tests.contract.private_texts import (
    CARD,
    CUT,
    ESCAPED,
    NESTED,
    PASSWORD,
    PRIVATE,
    RULES,
    SECRET,
    TRACE,
    assert_nothing_private,
    private_span,
    stored,
)
from tests.contract.sealing import seal_here
from tests.contract.streams import following
from tests.contract.trace_calls import ask, export, info, resource_spans, span, start, tell
from tests.contract.trace_uploads import upload
from tests.doubles.providers import openai, serving

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> Iterator[Path]:
    with artifacts_in(tmp_path / "files") as folder:
        yield folder


@pytest.fixture
def experiment(store: Store) -> str:
    stored_settings.put("redaction", RULES)
    return store.api.new_experiment("private")


def test_spans(store: Store, files: Path, experiment: str) -> None:
    with following(store) as stream:
        answer = export(
            experiment, [private_span()], {"owner": SECRET, "secret_tag": "x1-plain-x1"}
        )
        assert answer.status == 200
        assert export(experiment, [private_span(2, 1)]).status == 200
        deliver(stream.fresh())
    assert_nothing_private(store, files)
    assert "x1-plain-x1" not in stored(store, files)
    shown = info(TRACE)
    assert shown["request_preview"].startswith(
        '{"password": "[REDACTED]", "mail": "[REDACTED email]"'
    )
    assert shown["trace_metadata"]["mlflow.trace.user"] == "[REDACTED email]"
    assert shown["tags"]["other"] == "[a password]"
    assert shown["tags"]["secret_tag"] == "[REDACTED]"
    assert shown["tags"]["owner"] == "[REDACTED email]"
    (trace,) = tell("GET", "3.0/traces/batchGet", trace_ids=TRACE)["traces"]
    first = trace["spans"][0]
    assert first["name"] == "GET /users/[REDACTED email]"
    assert first["span_id"] == base64.b64encode(bytes(7) + b"\1").decode()
    inputs = {entry["key"]: entry["value"] for entry in first["attributes"]}
    assert "1.5" in json.dumps(inputs), "what no rule matches stays"


@pytest.mark.parametrize("spelling", ["snake", "camel"])
def test_reports(store: Store, files: Path, experiment: str, spelling: str) -> None:
    fields: Json = {
        "request_time": "2023-11-14T22:13:20Z",
        "state": "OK",
        "client_request_id": f"for {SECRET}",
        "request_preview": CUT,
        "response_preview": json.dumps({"a": NESTED, "credentials": "x1-plain-x1"}),
        "trace_metadata": {"note": NESTED, "mlflow.trace.user": SECRET, SECRET: "k"},
        "tags": {"t": PASSWORD, "secret_tag": "x1-plain-x1", "mlflow.traceName": SECRET},
        "assessments": [
            {
                "assessment_name": "by " + SECRET,
                "feedback": {"value": {"v": [SECRET, PASSWORD]}},
                "rationale": NESTED,
                "metadata": {"m": SECRET},
                "source": {"source_type": "HUMAN", "source_id": SECRET},
                "create_time": "2023-11-14T22:13:20Z",
                "last_update_time": "2023-11-14T22:13:20Z",
            }
        ],
    }
    if spelling == "camel":
        names = {"client_request_id": "clientRequestId", "request_preview": "requestPreview"}
        names |= {"response_preview": "responsePreview", "trace_metadata": "traceMetadata"}
        fields = {names.get(name, name): value for name, value in fields.items()}
    answer = tell("POST", "3.0/traces", start(experiment, TRACE, **fields))
    assert not any(text in json.dumps(answer) for text in PRIVATE)
    again = tell("POST", "3.0/traces", start(experiment, TRACE, **fields))
    assert answer == again
    assert export(experiment, [private_span()]).status == 200
    tell("POST", "3.0/traces", start(experiment, TRACE, **fields))
    assert_nothing_private(store, files)
    assert "x1-plain-x1" not in stored(store, files)
    assert info(TRACE)["request_preview"] == "[REDACTED]", "it may show inputs.password"


def test_version_2(store: Store, files: Path, experiment: str) -> None:
    pairs = [{"key": "a", "value": NESTED}, {"key": "b", "value": PASSWORD}]
    body = {
        "experiment_id": experiment,
        "timestamp_ms": 1,
        "request_metadata": pairs,
        "tags": pairs,
    }
    made = tell("POST", "2.0/traces", body)["trace_info"]
    end = {"timestamp_ms": 9, "status": "OK", "request_metadata": pairs, "tags": pairs}
    tell("PATCH", f"2.0/traces/{made['request_id']}", end)
    tag = {"key": "later", "value": SECRET}
    tell("PATCH", f"2.0/traces/{made['request_id']}/tags", tag)
    assert_nothing_private(store, files)


def test_tags_and_assessments_set_later(store: Store, files: Path, experiment: str) -> None:
    tell("POST", "3.0/traces", start(experiment, TRACE, request_time="2023-11-14T22:13:20Z"))
    for value in (SECRET, PASSWORD, NESTED, CUT):
        tell("PATCH", f"3.0/traces/{TRACE}/tags", {"key": "k", "value": value})
    assessment = {
        "assessment_id": "a-1",
        "assessment_name": "n",
        "feedback": {"value": SECRET, "error": {"error_code": "E", "error_message": PASSWORD}},
        "rationale": SECRET,
    }
    path = f"3.0/traces/{TRACE}/assessments"
    made = tell("POST", path, {"assessment": assessment})
    assert made["assessment"]["rationale"] == "[REDACTED email]"
    expectation = {
        "assessment_name": "e",
        "expectation": {
            "serialized_value": {"serialization_format": "JSON_FORMAT", "value": NESTED}
        },
    }
    tell("POST", path, {"assessment": expectation})
    update = {
        "assessment": {"rationale": PASSWORD, "feedback": {"value": [SECRET]}},
        "update_mask": "rationale,feedback",
    }
    tell("PATCH", f"{path}/a-1", update)
    assert_nothing_private(store, files)


def test_a_repeated_assessment_is_no_second_one(store: Store, experiment: str) -> None:
    tell("POST", "3.0/traces", start(experiment, TRACE, request_time="2023-11-14T22:13:20Z"))
    fields = {
        "assessment_id": "a-1",
        "assessment_name": "n",
        "feedback": {"value": SECRET},
        "create_time": "2023-11-14T22:13:20Z",
        "last_update_time": "2023-11-14T22:13:20Z",
    }
    path = f"3.0/traces/{TRACE}/assessments"
    assert tell("POST", path, {"assessment": fields}) == tell("POST", path, {"assessment": fields})


def test_an_id_of_an_assessment_tells_nothing_of_a_private_text(
    store: Store, experiment: str
) -> None:
    time = "2023-11-14T22:13:20Z"
    fields = {"assessment_name": "n", "create_time": time, "last_update_time": time}
    two = [{**fields, "feedback": {"value": mail}} for mail in (SECRET, "bob@example.com")]
    report = start(experiment, TRACE, request_time=time, assessments=two)
    tell("POST", "3.0/traces", report)
    path = f"3.0/traces/{TRACE}/assessments"
    ids = [
        tell("POST", path, {"assessment": assessment})["assessment"]["assessment_id"]
        for assessment in two
    ]
    ids += [assessment["assessment_id"] for assessment in info(TRACE)["assessments"]]
    assert len(ids) == 3
    assert len(set(ids)) == 1


def test_judges(store: Store, files: Path, experiment: str) -> None:
    tell("POST", "3.0/traces", start(experiment, TRACE, request_time="2023-11-14T22:13:20Z"))
    trace = traces.find(TRACE, "default")
    assert trace is not None
    verdict = Assessment(
        assessment_id="a-7",
        trace_id=TRACE,
        name="judge",
        kind="feedback",
        value=SECRET,
        error=None,
        source_type="LLM_JUDGE",
        source_id=None,
        create_time=1,
        last_update_time=1,
        run_id=None,
        span_id=None,
        rationale=f"{SECRET} wrote {PASSWORD}",
        metadata=None,
        overrides=None,
        valid=True,
    )
    assessing.write(trace, [verdict])
    assert_nothing_private(store, files)
    (shown,) = info(TRACE)["assessments"]
    assert shown["rationale"] == "[REDACTED email] wrote [a password]"


def test_calls_of_the_gateway(
    store: Store, files: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    stored_settings.put("redaction", RULES)
    with serving(openai) as provider:
        made = model("m", "openai", provider.url, model_name="gpt-4o")
        endpoint("chat", [made], [], usage_tracking=True)
        messages = [{"role": "user", "content": f"{SECRET} pays with {CARD}, {PASSWORD}"}]
        body = {"model": "chat", "messages": messages}
        status, _, text = post("mlflow/v1/chat/completions", body, user_agent=f"{SECRET}/1")
        assert status == 200
        assert SECRET in text, "the caller gets the answer as it is"
    assert "[REDACTED email] pays with [REDACTED credit card]" in stored(store, files)
    assert_nothing_private(store, files)


def test_files_of_traces(store: Store, files: Path, experiment: str) -> None:
    tell("POST", "3.0/traces", start(experiment, TRACE, request_time="2023-11-14T22:13:20Z"))
    new = {
        "trace_id": base64.b64encode(b"a" * 16).decode(),
        "span_id": base64.b64encode(b"a" * 8).decode(),
        "parent_span_id": None,
        "name": SECRET,
        "start_time_unix_nano": 1,
        "end_time_unix_nano": 2,
        "events": [{"name": SECRET, "time_unix_nano": 1, "attributes": {"a": PASSWORD}}],
        "status": {"code": "STATUS_CODE_OK", "message": SECRET},
        "attributes": {"mlflow.spanInputs": json.dumps({"password": "x1-plain-x1", "m": ESCAPED})},
        "extra": {"deep": [SECRET]},
    }
    old = {
        "name": SECRET,
        "context": {"span_id": "0x" + "1" * 16, "trace_id": "0x" + "1" * 32, "more": SECRET},
        "parent_id": None,
        "start_time": 1,
        "end_time": 2,
        "status_code": "OK",
        "status_message": SECRET,
        "attributes": {"mlflow.spanOutputs": json.dumps(SECRET)},
        "events": [{"name": "e", "timestamp": 1, "attributes": {"m": SECRET}}],
    }
    content = json.dumps({"spans": [new, old], "request": SECRET}).encode()
    folder = f"{experiment}/traces/{TRACE}/artifacts"
    assert upload(f"{folder}/traces.json", content)["statusCode"] == 200
    assert_nothing_private(store, files)
    assert "x1-plain-x1" not in stored(store, files)
    (path,) = files.rglob("traces.json")
    assert path.as_posix().endswith(f"{folder}/traces.json")
    written = json.loads(path.read_text())
    assert written["spans"][0]["trace_id"] == new["trace_id"]
    assert written["spans"][1]["context"]["span_id"] == "0x" + "1" * 16
    for name, data in (
        ("traces.json", b"{not json"),
        ("traces.json", b'{"spans": [1]}'),
        ("traces.json", b"[]"),
        ("attachment.bin", SECRET.encode()),
        ("TRACES.JSON.bak", SECRET.encode()),
    ):
        assert upload(f"{folder}/{name}", data)["statusCode"] == 400
    unknown = f"{experiment}/TRACES/tr-unknown/Artifacts/a.bin"
    assert upload(unknown, SECRET.encode())["statusCode"] == 400
    parts = json.dumps({"path": "/x/traces.json", "num_parts": 1}).encode()
    assert upload(folder, parts, "POST", "mpu/create")["statusCode"] == 400
    assert_nothing_private(store, files)
    stored_settings.delete("redaction")
    assert upload(f"{folder}/attachment.bin", b"data")["statusCode"] == 200


def test_rules_hold_in_their_scope_alone(store: Store, experiment: str) -> None:
    other = store.api.new_experiment("other")
    stored_settings.put(
        "redaction", {"rules": [{"entities": ["email"], "experiments": [experiment]}]}
    )
    for number, experiment_id in enumerate((experiment, other)):
        made = span(f"{number:032x}", 1, mlflow__spanInputs=json.dumps(SECRET))
        assert export(experiment_id, [made]).status == 200
    shown = [info(f"tr-{number:032x}")["request_preview"] for number in range(2)]
    assert shown == ['"[REDACTED email]"', json.dumps(SECRET)]


@pytest.mark.parametrize("value", ['{"rules": [{"mood": "sad"}]}', '{"rules": 7}', "[1]"])
def test_rules_that_cannot_be_read_let_nothing_in(
    store: Store, files: Path, experiment: str, value: str
) -> None:
    tell("POST", "3.0/traces", start(experiment, TRACE, request_time="2023-11-14T22:13:20Z"))
    key = keys.config("redaction")
    item = Config(PK=key.pk, SK=key.sk, key="redaction", value=value, updated_at=1, version=1)
    table.put(item.serialize())
    cached_setting.forget("redaction")
    answers = [export(experiment, [private_span(trace_number)]) for trace_number in (1, 2)]
    answers.append(ask("POST", "3.0/traces", start(experiment, "tr-1", request_preview=SECRET)))
    answers.append(ask("PATCH", f"3.0/traces/{TRACE}/tags", {"key": "k", "value": SECRET}))
    assessment = {"assessment": {"assessment_name": "n", "feedback": {"value": SECRET}}}
    answers.append(ask("POST", f"3.0/traces/{TRACE}/assessments", assessment))
    assert {answer.status for answer in answers} <= {429, 503}
    assert_nothing_private(store, files)
    assert ask("GET", f"3.0/traces/{TRACE}").status == 200, "reading goes on"


def test_a_warm_process_reads_no_rules(store: Store, experiment: str) -> None:
    export(experiment, [span("1" * 32, 1)])
    costs = []
    for rules in (RULES, {"rules": []}):
        stored_settings.put("redaction", rules)
        export(experiment, [span(f"{len(costs) + 5:032x}", 1)])
        export(experiment, [span(f"{len(costs) + 7:032x}", 1)])
        cost = capacity.last_measurement()
        assert cost is not None
        costs.append(cost.round_trips)
    assert costs == [2, 2]


def test_the_setting_is_checked_by_its_route(store: Store) -> None:
    def put(value: Any) -> Json:
        event = {
            "version": "2.0",
            "rawPath": "/api/3.0/mlflow-serverless/config/redaction",
            "rawQueryString": "",
            "headers": {"content-type": "application/json", "host": "localhost"},
            "requestContext": {"http": {"method": "PUT"}, "requestId": "test"},
            "isBase64Encoded": False,
            "body": json.dumps({"value": value}),
        }
        answer: Json = workspaces.app.handler(event, None)
        return answer

    assert put(RULES)["statusCode"] == 200
    bad = put({"rules": [{"entities": ["mail"]}]})
    assert bad["statusCode"] == 400
    assert "there is no entity 'mail'" in bad["body"]
    assert json.loads(bad["body"])["error_code"] == "INVALID_PARAMETER_VALUE"
    assert stored_settings.get("redaction") == RULES


def test_resource_spans_of_several_traces_share_one_time_budget(experiment: str) -> None:
    body = resource_spans([span(f"{n:032x}", 1, note=SECRET) for n in range(1, 4)])
    headers = {"x-mlflow-experiment-id": experiment}
    assert ask("POST", "/v1/traces", body, headers).status == 200
