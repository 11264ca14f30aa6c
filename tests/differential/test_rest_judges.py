"""Judges and their jobs, and calls of the gateway, as far as no model is asked: what is refused,
and how.

MLflow's server runs here without its job runners, so it answers 500 to what it would take and makes
no job of it, where ours makes one. Searches therefore name jobs that nobody has asked for.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mlcore.entities.evaluation.detection_schedule import State, parse_schedule
from mlcore.entities.evaluation.fire_times import following
from tests.differential.calls import name
from tests.differential.pair import Pair
from tests.differential.rest import Call, Ref, post
from tests.differential.review_traces import trace

pytestmark = pytest.mark.e2e

AJAX_3 = "/ajax-api/3.0/mlflow/"
JUDGE = {
    "name": "quality",
    "aggregations": [],
    "is_session_level_scorer": False,
    "mlflow_version": "3.18.0",
    "serialization_version": 1,
    "builtin_scorer_class": None,
    "builtin_scorer_pydantic_data": None,
    "call_source": None,
    "call_signature": None,
    "original_func_name": None,
    "instructions_judge_pydantic_data": {
        "instructions": "Is {{ outputs }} fine?",
        "model": "openai:/gpt-4o-mini",
        "feedback_value_type": {"type": "string"},
    },
}
SERIALIZED = json.dumps(JUDGE)
CODE = json.dumps({**JUDGE, "instructions_judge_pydantic_data": None, "call_source": "return 1"})
TRACE = f"tr-{'4a' * 16}"
"""In the second experiment."""
ABSENT: Any = "absent"


def invoked(**more: Any) -> Call:
    body = {"experiment_id": Ref("experiment"), "serialized_scorer": SERIALIZED, **more}
    body = {"trace_ids": [TRACE], **body}
    kept = {key: value for key, value in body.items() if value != ABSENT}
    return Call("POST", f"{AJAX_3}scorer/invoke", kept)


def evaluated(**more: Any) -> Call:
    body = {"experiment_id": Ref("experiment"), "serialized_scorers": [SERIALIZED], **more}
    body = {"trace_ids": [TRACE], **body}
    kept = {key: value for key, value in body.items() if value != ABSENT}
    return Call("POST", f"{AJAX_3}genai/evaluate/invoke", kept)


def detected(**more: Any) -> Call:
    body = {
        "experiment_id": Ref("experiment"),
        "trace_ids": [TRACE],
        "categories": ["correctness"],
        "provider": "openai",
        "endpoint_name": "e",
        **more,
    }
    kept = {key: value for key, value in body.items() if value != ABSENT}
    return Call("POST", f"{AJAX_3}issues/invoke", kept)


def experiments() -> list[Call]:
    def made(saved: str) -> Call:
        body = {"name": name()}
        return post("experiments/create", body)._replace(saves={saved: "experiment_id"})

    return [made("experiment"), made("second"), trace(TRACE, "second")]


def test_judging_is_refused_alike(both: Pair) -> None:
    both.send_all(
        [
            *experiments(),
            *(invoked(experiment_id=value) for value in (ABSENT, None, "", "0")),
            *(invoked(serialized_scorer=value) for value in (ABSENT, None, "", CODE)),
            *(invoked(trace_ids=value) for value in (ABSENT, None, [], "x", [1], {"a": 1})),
            invoked(trace_ids=["tr-0"]),
            invoked(),
            *(invoked(scorer_name=value) for value in ("quality", 5)),
            *(invoked(scorer_version=value) for value in (1, "1")),
            *(
                invoked(scorer_name=named, scorer_version=version)
                for named, version in (("quality", "1"), (5, 1), ("quality", True))
            ),
            invoked(scorer_name="quality", scorer_version=1),
            *(evaluated(experiment_id=value) for value in (ABSENT, None, "", 5)),
            *(evaluated(trace_ids=value) for value in (ABSENT, None, [], "x", [1])),
            *(evaluated(serialized_scorers=value) for value in (ABSENT, None, [], "x")),
            evaluated(serialized_scorers=[CODE]),
            *(evaluated(scorer_versions=value) for value in ([], [1, 2], "x", ["1"], [True])),
            evaluated(trace_ids=["tr-0"]),
            evaluated(),
            evaluated(scorer_versions=[1]),
        ]
    )


def test_detections_of_issues_are_refused_alike(both: Pair) -> None:
    both.send_all(
        [
            *experiments(),
            *(detected(experiment_id=value) for value in (ABSENT, None, "", 5, ["0"])),
            *(detected(trace_ids=value) for value in (ABSENT, None, [], "x", [1], {"a": 1})),
            *(detected(categories=value) for value in (ABSENT, None, "x", {"a": 1})),
            *(detected(provider=value) for value in (ABSENT, None, "", 5, ["openai"])),
            *(
                detected(**{field: value})
                for field in ("instructions", "model", "secret_id", "endpoint_name")
                for value in (5, ["x"], {"a": 1})
            ),
            *(detected(endpoint_name=value) for value in (ABSENT, "")),
        ]
    )


def scheduled(**fields: Any) -> list[Call]:
    """A schedule of issue detection and the request for its next time. It is paused, as stock does
    not look at its model."""
    values = {"version": 1, "cadence": "daily", "timezone": "UTC", "paused": True, **fields}
    return [tagged("schedule", json.dumps(values)), *next_time()]


def tagged(key: str, value: str) -> Call:
    tag = {"key": f"mlflow.issueDetection.{key}", "value": value}
    return post("experiments/set-experiment-tag", {"experiment_id": Ref("experiment"), **tag})


def next_time() -> list[Call]:
    body = {"experiment_id": Ref("experiment")}
    return [Call("POST", f"{AJAX_3}issues/schedule/state", body)]


def test_schedules_of_detections_fire_alike(both: Pair) -> None:
    """A minute of a day and a week that is not now: both are asked one after the other."""
    now = datetime.now(UTC)
    later = now + timedelta(minutes=95)
    at, day = f"{later:%H:%M}", later.weekday()
    zones = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "America/New_York", "Nowhere", 5, None)
    cadences = ("hourly", "daily", "weekly")
    lasted = parse_schedule(json.dumps({"version": 1, "cadence": "daily", "fireTime": at}))
    assert lasted is not None
    last = int(now.timestamp() * 1000) - 86_400_000
    state = State(last, lasted.timing, following(lasted, last))
    both.send_all(
        [
            *experiments(),
            *next_time(),
            *(
                call
                for text in ("", "[]", "{")
                for call in (tagged("schedule", text), *next_time())
            ),
            *scheduled(version=2),
            *(call for cadence in ("off", None, 1) for call in scheduled(cadence=cadence)),
            *(
                call
                for zone in zones
                for cadence in cadences
                for call in scheduled(cadence=cadence, timezone=zone, fireTime=at, weekday=day)
            ),
            *(
                call
                for time in (None, "25:00", 9, f" {at} ")
                for call in scheduled(cadence="daily", fireTime=time)
            ),
            *(
                call
                for weekday in (None, 7, -1, True, "1", (day + 2) % 7)
                for call in scheduled(cadence="weekly", fireTime=at, weekday=weekday)
            ),
            tagged("scheduleState", state.to_json()),
            *scheduled(fireTime=at),
            tagged("scheduleState", state._replace(timing=None).to_json()),
            *scheduled(fireTime=at),
            *(
                call
                for text in ("", "[]", "{", json.dumps({"version": 1, "lastFireTimeMs": "1"}))
                for call in (tagged("scheduleState", text), *scheduled(fireTime=at))
            ),
        ]
    )


def test_jobs_are_refused_alike(both: Pair) -> None:
    search = "/ajax-api/3.0/jobs/search"
    of_none = {"job_name": "none"}
    searches = (
        *({}, {"statuses": []}, {"statuses": None}, {"statuses": ["PENDING", "NEEDS_RECOVERY"]}),
        *({"params": None}, {"params": {"a": 1}}, {"unknown": 1}),
    )
    misfits = (
        *([], 5, "x", {"job_name": 5}, {"params": "x"}, {"statuses": "x"}),
        {"job_name": {"a": 1}, "params": [1], "statuses": {"a": 1}},
        {"statuses": ["NOPE", 5, None, "PENDING", "pending", True, 1.5, {"a": 1}, []]},
    )
    texts = (b"", b"null", b"{", b"{} x", b'"a', b'{"a"', b'{"a":', b'{"a":1 "b"}', b"[1", b" ")
    both.send_all(
        [
            *(
                Call(method, f"/ajax-api/3.0/{path}/none")
                for method, rest in (("GET", ""), ("PATCH", "/cancel"))
                for path in (f"mlflow/jobs{rest}", f"jobs{rest}")
            ),
            *(Call("POST", search, {**of_none, **more}) for more in searches),
            *(Call("POST", search, body) for body in misfits),
            *(Call("POST", search, raw=text) for text in texts),
            Call("POST", search, of_none, content_type="application/problem+json"),
            Call("POST", search, of_none, content_type="text/plain"),
        ]
    )


def test_calls_of_the_gateway_are_refused_alike(both: Pair) -> None:
    chat: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}]}
    chats = "/gateway/mlflow/v1/chat/completions"
    both.send_all(
        [
            *(
                Call("POST", chats, {**chat, **more})
                for more in ({}, {"model": None}, {"model": ""}, {"model": "none"})
            ),
            *(
                Call("POST", "/gateway/none/mlflow/invocations", body)
                for body in (chat, {}, {"input": "x"}, {"messages": "x"})
            ),
            *(
                Call("POST", f"/gateway/{path}", {**chat, "model": "none", "input": "x"})
                for path in (
                    *("openai/v1/chat/completions", "openai/v1/embeddings", "openai/v1/responses"),
                    "anthropic/v1/messages",
                    "gemini/v1beta/models/none:generateContent",
                )
            ),
            *(Call("POST", chats, raw=raw) for raw in (b"", b"{", b"[]", b"5")),
            Call("GET", "/gateway/mlflow/v1/models"),
        ]
    )
