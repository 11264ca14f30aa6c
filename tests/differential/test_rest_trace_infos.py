"""What is told about traces without their spans, by clients old and new: stock MLflow and the
product answer the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.differential.trace_pair import ID, TOLD, Two, comparable, new_id, two

__all__ = ["two"]

V2, V3 = "/api/2.0/mlflow/traces", "/api/3.0/mlflow/traces"
TIME = "2023-11-14T22:13:20.123Z"
WHERE = TOLD["trace_location"]
SOURCE = {"source_type": "HUMAN", "source_id": "me"}
GOOD = {"assessment_name": "good", "feedback": {"value": True}, "source": SOURCE}


def info_body(trace_id: str, **fields: Any) -> Any:
    info = {"trace_id": trace_id, "trace_location": WHERE, "request_time": TIME, "state": "OK"}
    return {"trace": {"trace_info": {**info, **fields}}}


INFOS: list[dict[str, Any]] = [
    {"execution_duration": "0.5s", "client_request_id": "c"},
    {"state": "ERROR", "client_request_id": ""},
    {"state": "IN_PROGRESS", "request_preview": ""},
    {"state": 1, "execution_duration": "-1s"},
    {"request_preview": "x" * 3000, "response_preview": "y" * 5000},
    {"client_request_id": "c" * 60, "trace_metadata": {"a": "b" * 9000}},
    {"trace_metadata": {"k" * 300: "b"}},
    {"tags": {"k" * 300: "b"}},
    {"tags": {"k": "b" * 9000}},
    {"tags": {"mlflow.traceName": "n" * 600}},
    {"trace_metadata": {"mlflow.trace.session": "s" * 260}},
    {"trace_metadata": {"mlflow.trace.tokenUsage": "bad", "mlflow.sourceRun": "r"}},
    {"trace_metadata": {"mlflow.trace.cost": '{"input_cost":1,"x":2}'}},
    {"request_time": "2023-11-14T22:13:20+02:00", "execution_duration": "0.0005s"},
    {"request_time": "1969-12-31T23:59:59.5Z"},
    {"assessments": [GOOD]},
    {
        "trace_location": {
            "type": "MLFLOW_EXPERIMENT",
            "mlflow_experiment": {"experiment_id": "7777777"},
        }
    },
    {"trace_location": {"mlflow_experiment": {"experiment_id": "7777777"}}},
]


@pytest.mark.parametrize("fields", INFOS, ids=str)
def test_infos(two: Two, fields: dict[str, Any]) -> None:
    trace_id = f"tr-{new_id()}"
    two.same("POST", V3, info_body(trace_id, **fields))
    for path in (f"{V3}/{trace_id}", f"{V2}/{trace_id}/info"):
        two.same("GET", path)
    two.same("GET", f"/ajax-api/3.0/mlflow/get-trace-artifact?request_id={trace_id}")


def test_infos_of_one_trace(two: Two) -> None:
    """Told again, tagged, linked and deleted."""
    trace_id = f"tr-{new_id()}"
    more = {"request_preview": "r", "client_request_id": "c", "execution_duration": "1s"}
    metadata: Any = {"m": "1"}
    two.same(
        "POST", V3, info_body(trace_id, tags={"a": "1", "b": "1"}, trace_metadata=metadata, **more)
    )
    metadata = {"n": "2"}
    two.same(
        "POST", V3, info_body(trace_id, tags={"b": "2"}, trace_metadata=metadata, state="ERROR")
    )
    two.same("GET", f"{V3}/{trace_id}")
    tags = f"{V2}/{trace_id}/tags"
    for tag in (
        {"key": "b", "value": "3"},
        {"key": "", "value": "3"},
        {"key": "x"},
        {"key": 5, "value": 6},
        {"key": "k" * 251, "value": "v"},
        {"key": "mlflow.traceName", "value": "named"},
        {"key": "mlflow.trace.spansLocation", "value": "here"},
    ):
        two.same("PATCH", tags, tag)
    two.same("GET", f"{V3}/{trace_id}")
    for key in ("mlflow.traceName", "mlflow.trace.spansLocation", "nothing"):
        two.same("DELETE", tags, {"key": key})
    two.same("DELETE", tags, {})
    two.same("DELETE", f"{tags}?key=b")
    two.same("GET", f"{V3}/{trace_id}")
    for body in (
        {},
        {"run_id": "r"},
        {"trace_ids": ["a"]},
        {"trace_ids": [], "run_id": "r"},
        {"trace_ids": ["a", 5], "run_id": "r"},
        {"trace_ids": "a", "run_id": "r"},
        {"trace_ids": [trace_id, "other"], "run_id": "nope"},
        {"trace_ids": [trace_id, "more"], "run_id": "nope"},
    ):
        two.same("POST", f"{V2}/link-to-run", body)
    search = {"locations": [WHERE], "filter": "run_id = 'nope'"}
    two.same("POST", f"{V3}/search", search)
    for ids in ([], [trace_id, trace_id, "none"], "text", ["none"] * 600):
        two.same("POST", f"{V3}/batchGetInfos", {"trace_ids": ids})
    two.same(
        "POST", f"{V3}/batchGetInfos", {"trace_ids": [trace_id], "experiment_ids": ["7777777"]}
    )
    for path in (V2, V3):
        two.same("POST", f"{path}/delete-traces", {"experiment_id": ID, "request_ids": [trace_id]})
    two.same("GET", f"{V3}/{trace_id}")


def test_deletions(two: Two) -> None:
    second = 1_577_836_800_000
    ids = [f"tr-{new_id()}" for _ in range(6)]
    for number, trace_id in enumerate(ids):
        two.same("POST", V3, info_body(trace_id, request_time=f"2020-01-01T00:00:0{number}Z"))
    for more in (
        {},
        {"request_ids": []},
        {"max_traces": 3},
        {"max_timestamp_millis": 0, "max_traces": 0},
        {"max_timestamp_millis": 100, "max_traces": -1},
        {"max_timestamp_millis": 100, "request_ids": ["a"]},
        {"request_ids": ["x", "y"]},
        {"request_ids": "x"},
        {"request_ids": ["x"] * 101},
        {"max_timestamp_millis": second, "max_traces": 5},
        {"max_timestamp_millis": second + 3000, "max_traces": 2},
        {"max_timestamp_millis": str(second + 3000)},
        {"request_ids": [ids[4], ids[4], "none"]},
    ):
        two.same("POST", f"{V3}/delete-traces", {"experiment_id": ID, **more})
        for trace_id in ids:
            two.same("GET", f"{V3}/{trace_id}")
    two.same("POST", f"{V3}/delete-traces", {"experiment_id": "7777777", "request_ids": [ids[5]]})
    two.same("GET", f"{V3}/{ids[5]}")


STARTS: list[dict[str, Any]] = [
    {"experiment_id": ID},
    {"experiment_id": ID, "timestamp_ms": "5"},
    {"experiment_id": ID, "timestamp_ms": -5},
    {"experiment_id": ID, "timestamp_ms": "x"},
    {"experiment_id": "nope", "timestamp_ms": 1},
    {"experiment_id": "7777777", "timestamp_ms": 1},
    {"experiment_id": ID, "timestamp_ms": 1, "tags": [{"key": "k"}]},
    {"experiment_id": ID, "timestamp_ms": 1, "tags": "text"},
    {"experiment_id": ID, "timestamp_ms": 1, "tags": [{"key": "k" * 300, "value": "v"}]},
    {"experiment_id": ID, "timestamp_ms": 1, "request_metadata": [{"value": "v"}]},
]
ENDS: list[dict[str, Any]] = [
    {"timestamp_ms": 2000, "status": "OK"},
    {"timestamp_ms": 500, "status": "ERROR"},
    {"timestamp_ms": 2000, "status": "IN_PROGRESS"},
    {"timestamp_ms": "x", "status": "OK"},
    {"status": "OK"},
    {
        "timestamp_ms": 2000,
        "status": "OK",
        "request_metadata": [{"key": "m", "value": "new"}, {"key": "mlflow.trace.session"}],
        "tags": [{"key": "t", "value": "new"}, {"key": "mlflow.traceName", "value": "named"}],
    },
]


class Named:
    """Calls about a trace that each server names itself, ``TRACE`` in paths."""

    def __init__(self, two: Two) -> None:
        self._sides = (two.stock, two.product)
        self._ids = ["", ""]

    def same(self, method: str, path: str, body: Any = None) -> None:
        answers = []
        for number, side in enumerate(self._sides):
            own_path = path.replace("TRACE", self._ids[number])
            status, reply, kind = side.ask(method, own_path, body)
            if method == "POST" and status == 200:
                self._ids[number] = reply["trace_info"]["request_id"]
            shown = json.dumps(comparable(reply), sort_keys=True)
            answers.append((status, kind, shown.replace(self._ids[number] or "-", "TRACE")))
        assert answers[1] == answers[0], (method, path, body)


def test_traces_of_version_2(two: Two) -> None:
    named = Named(two)
    for body in STARTS:
        named.same("POST", V2, body)
    began = {
        "experiment_id": ID,
        "timestamp_ms": 1000,
        "request_metadata": [{"key": "m", "value": "x" * 400}],
        "tags": [{"key": "t", "value": "apple"}],
    }
    for end in ENDS:
        named.same("POST", V2, began)
        for _ in range(2):
            named.same("PATCH", f"{V2}/TRACE", end)
        for path in (f"{V2}/TRACE/info", f"{V3}/TRACE"):
            named.same("GET", path)
