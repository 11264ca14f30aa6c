"""Traces on a real engine: whatever comes in whatever order, the same trace comes out."""

from __future__ import annotations

import itertools
import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore import artifacts
from mlcore.db import capacity
from mlcore.db import table as table_module
from mlcore.repos import document
from mlcore.repos.traces import span_packs
from mlcore.spans.names import COST_KEYS, TOKEN_KEYS
from tests.contract.api import Api
from tests.contract.artifact_folder import artifacts_in
from tests.contract.conftest import Store, examples, forget
from tests.contract.faults import FAULTS
from tests.contract.threads import at_once
from tests.contract.trace_calls import (
    Fields,
    ask,
    export,
    info,
    span,
    span_ids,
    start,
    tell,
    whole,
)
from tests.contract.trace_story import TOLD, USAGE, new_trace, seen, story
from tests.doubles.fixtures import Doubles


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> Iterator[None]:
    with artifacts_in(tmp_path):
        yield


def round_trips() -> int:
    last = capacity.last_measurement()
    assert last is not None
    return last.round_trips


@examples(25)
@given(data=st.data())
def test_any_order_any_split_any_repetition(shared_store: Store, data: st.DataObject) -> None:
    whole_at_once, in_pieces = new_trace(), new_trace()
    with_info = data.draw(st.booleans())
    resource = {"service.name": "svc", "zone": 3}
    export("0", story(whole_at_once), resource)
    if with_info:
        tell("POST", "3.0/traces", start("0", f"tr-{whole_at_once}", **TOLD))
    spans = data.draw(st.permutations(story(in_pieces)))
    cuts = sorted(data.draw(st.lists(st.integers(1, 5), max_size=3)))
    pieces = [spans[a:b] for a, b in itertools.pairwise([0, *cuts, 6]) if a < b]
    steps: list[Callable[[], Any]] = [partial(export, "0", piece, resource) for piece in pieces]
    if with_info:
        body = start("0", f"tr-{in_pieces}", **TOLD)
        steps.append(partial(tell, "POST", "3.0/traces", body))
    repeated = data.draw(st.lists(st.sampled_from(steps), max_size=2))
    for step in data.draw(st.permutations([*steps, *repeated])):
        step()
    assert seen(in_pieces) == seen(whole_at_once)


def amounts(names: Sequence[str]) -> st.SearchStrategy[dict[str, int]]:
    return st.dictionaries(st.sampled_from(names), st.integers(1, 9), min_size=1)


@examples(15)
@given(data=st.data())
def test_reports_of_usage_and_cost_add_to_each_other(
    shared_store: Store, data: st.DataObject
) -> None:
    trace = new_trace()
    expected: dict[str, dict[str, int]] = {}
    parts = {
        "mlflow.trace.tokenUsage": amounts(TOKEN_KEYS),
        "mlflow.trace.cost": amounts(COST_KEYS),
    }
    reports = data.draw(st.lists(st.fixed_dictionaries({}, optional=parts), min_size=2, max_size=4))
    for report in reports:
        if data.draw(st.booleans()):  # the totals of spans neither join reports nor replace them
            export("0", story(trace))
        metadata = {key: json.dumps(part) for key, part in report.items()}
        for _ in range(data.draw(st.integers(1, 2))):
            tell("POST", "3.0/traces", start("0", f"tr-{trace}", trace_metadata=metadata))
        for key, part in report.items():
            expected[key] = {**expected.get(key, {}), **part}
    shown = info(f"tr-{trace}")["trace_metadata"]
    assert {key: json.loads(shown[key]) for key in expected} == expected


def test_exports_side_by_side_lose_nothing(store: Store) -> None:
    trace = new_trace()
    usage: Fields = {
        "mlflow.chat.tokenUsage": {"input_tokens": 1, "output_tokens": 0, "total_tokens": 1}
    }
    store.api.get("experiments/get", experiment_id="0")

    def write(writer: int) -> None:
        if writer == 7:
            tell("POST", "3.0/traces", start("0", f"tr-{trace}", state="OK", tags={"a": "b"}))
        for number in range(4):
            order = 10 * writer + number + 1
            answer = export(
                "0", [span(trace, order, 1 if order > 1 else None, start=order, **usage)]
            )
            assert answer.status == 200, answer
        if writer == 3:
            tell("PATCH", f"2.0/traces/tr-{trace}/tags", {"key": "mine", "value": "x"})

    at_once(8, write)
    whole_trace = whole(f"tr-{trace}")
    assert len(whole_trace["spans"]) == 32
    assert whole_trace["trace_info"]["tags"]["a"] == "b"
    assert whole_trace["trace_info"]["tags"]["mine"] == "x"
    metadata = whole_trace["trace_info"]["trace_metadata"]
    # The root span's own usage stands for all below it.
    assert metadata["mlflow.trace.tokenUsage"].startswith('{"input_tokens": 1,')


@pytest.mark.parametrize("inline_bytes", [300_000, 100])
def test_what_has_no_room_in_the_trace(
    store: Store, monkeypatch: pytest.MonkeyPatch, inline_bytes: int
) -> None:
    monkeypatch.setattr(document, "INLINE_BYTES", inline_bytes)
    monkeypatch.setattr(span_packs, "ITEM_BYTES", inline_bytes)
    trace = new_trace()
    export("0", story(trace), {"service.name": "svc"})
    tell("POST", "3.0/traces", start("0", f"tr-{trace}", **TOLD))
    before = seen(trace)
    assert before["tags"]["service.name"] == "mine"
    assert len(before["spans"]) == 6
    assert tell(
        "POST", "3.0/traces/delete-traces", {"experiment_id": "0", "request_ids": [f"tr-{trace}"]}
    ) == {"traces_deleted": 1}
    assert ask("GET", f"3.0/traces/tr-{trace}").status == 404
    left = [item["SK"]["S"] for item in store.items() if item["SK"]["S"].startswith("T")]
    assert left == []
    folder = Path(os.environ["ARTIFACT_FOLDER"])
    assert [path.name for path in folder.rglob("*") if path.is_file()] in ([], ["secret"])


def test_after_a_deletion_that_was_cut_short(store: Store) -> None:
    trace = new_trace()
    export("0", story(trace))
    store.direct.delete_item(
        TableName=store.table, Key={"PK": {"S": "EXP#0"}, "SK": {"S": f"T#tr-{trace}"}}
    )
    assert ask("GET", f"3.0/traces/tr-{trace}").status == 404
    other = store.api.new_experiment("other")
    assert export(other, story(trace)).status == 200
    forget()
    location = info(f"tr-{trace}")["trace_location"]
    assert location["mlflow_experiment"]["experiment_id"] == other


def test_a_trace_stays_in_its_experiment(store: Store) -> None:
    trace = new_trace()
    export("0", story(trace)[:3])
    other = store.api.new_experiment("other")
    for _ in range(2):
        refused = export(other, story(trace)[3:])
        assert refused.status == 400
        assert "already exists in another experiment" in refused.body["message"]
        forget()
    whole_trace = whole(f"tr-{trace}")
    assert whole_trace["trace_info"]["trace_location"]["mlflow_experiment"]["experiment_id"] == "0"
    assert len(whole_trace["spans"]) == 3


CALLS: dict[str, Callable[[str], tuple[str, str, Any]]] = {
    "start": lambda trace: ("POST", "3.0/traces", start("0", f"tr-{trace}", **TOLD)),
    "tag": lambda trace: (
        "PATCH",
        f"3.0/traces/tr-{trace}/tags",
        {"key": "k", "value": "v"},
    ),
    "assess": lambda trace: (
        "POST",
        f"3.0/traces/tr-{trace}/assessments",
        {"assessment": {**TOLD["assessments"][0], "assessment_name": "again"}},
    ),
    "delete": lambda trace: (
        "POST",
        "3.0/traces/delete-traces",
        {"experiment_id": "0", "request_ids": [f"tr-{trace}"]},
    ),
}


@pytest.mark.parametrize("name", ["export", "export more", *CALLS])
def test_a_fault_at_every_call(
    broken: tuple[Api, Doubles], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    _, doubles = broken
    monkeypatch.setattr(table_module, "back_off", lambda _attempt: None)

    def prepared() -> str:
        trace = new_trace()
        if name != "export":
            assert export("0", story(trace)[:3]).status == 200
        return trace

    def act(trace: str) -> int:
        if name.startswith("export"):
            return export("0", story(trace)[2:] if name == "export more" else story(trace)).status
        return ask(*CALLS[name](trace)).status

    def state(trace: str) -> Any:
        return None if ask("GET", f"3.0/traces/tr-{trace}").status == 404 else seen(trace)

    calm = prepared()
    assert act(calm) == 200
    expected = state(calm)
    for fault in FAULTS:
        for nth in itertools.count(1):
            trace = prepared()
            forget()
            doubles.faulty.arm(fault, nth)
            status = act(trace)
            struck = doubles.faulty.fired
            doubles.faulty.heal()
            if status != 200:
                assert status >= 500 or status == 429, (fault.name, nth, status)
                forget()
                assert act(trace) == 200, (fault.name, nth)
            assert state(trace) == expected, (fault.name, nth)
            if not struck:
                break


def test_round_trips(store: Store) -> None:
    store.api.get("experiments/get", experiment_id="0")
    trace = new_trace()
    ten = [span(trace, n, 1 if n > 1 else None, start=n, x="y" * 50) for n in range(1, 11)]
    export("0", ten)
    assert round_trips() <= 2
    usage: Fields = {"mlflow.chat.tokenUsage": USAGE[3]}
    export("0", [span(trace, 11, 1, **usage)])
    assert round_trips() <= 3
    stats = {"mlflow.trace.sizeStats": '{"num_spans": 11}'}
    tell("POST", "3.0/traces", start("0", f"tr-{trace}", trace_metadata=stats))
    assert round_trips() <= 2
    info(f"tr-{trace}")
    assert round_trips() == 1
    whole(f"tr-{trace}")
    assert round_trips() == 2
    forget()
    whole(f"tr-{trace}")
    assert round_trips() == 3
    location = {"mlflow_experiment": {"experiment_id": "0"}}
    page = tell("POST", "3.0/traces/search", {"locations": [location], "max_results": 25})
    assert len(page["traces"]) == 1
    assert round_trips() == 2


@pytest.mark.parametrize("exported", [range(6), range(3), range(0)])
def test_spans_that_the_client_could_not_export(store: Store, exported: range) -> None:
    """It is not told that the spans are here, so it sends a file."""
    trace = new_trace()
    whole_story = new_trace()
    export("0", story(whole_story))
    data = ask("GET", "/ajax-api/3.0/mlflow/get-trace-artifact", request_id=f"tr-{whole_story}")
    if exported:
        export("0", [story(trace)[number] for number in exported])
    stats = {"mlflow.trace.sizeStats": '{"num_spans": 6, "total_size_bytes": 4000}'}
    body = start("0", f"tr-{trace}", **{**TOLD, "trace_metadata": stats})
    tags = tell("POST", "3.0/traces", body)["trace"]["trace_info"]["tags"]
    assert ("mlflow.trace.spansLocation" in tags) == (len(exported) == 6)
    assert round_trips() <= (5 if len(exported) == 3 else 2)
    if len(exported) < 6:
        location = artifacts.locate(tags["mlflow.artifactLocation"], "default", "traces.json")
        artifacts.store().put(location, json.dumps(data.body).encode())
    whole_trace = tell("GET", "3.0/traces/get", trace_id=f"tr-{trace}")["trace"]
    assert sorted(span_ids(whole_trace["spans"])) == [f"{n:016x}" for n in range(1, 7)]
    file = ask("GET", "/ajax-api/3.0/mlflow/get-trace-artifact", request_id=f"tr-{trace}")
    assert [item["span_id"] for item in file.body["spans"]] == [
        item["span_id"] for item in whole_trace["spans"]
    ]


def test_pages_of_the_newest(store: Store) -> None:
    store.api.get("experiments/get", experiment_id="0")
    traces = [new_trace() for _ in range(12)]
    times = [random.Random(3).choice([1, 2, 3]) for _ in traces]
    for trace, time in zip(traces, times, strict=True):
        tell(
            "POST",
            "3.0/traces",
            start("0", f"tr-{trace}", request_time=f"1970-01-01T00:00:0{time}Z"),
        )
    wanted = sorted(zip(times, traces, strict=True), key=lambda pair: (-pair[0], pair[1]))
    results: list[str] = []
    token = ""
    location = {"mlflow_experiment": {"experiment_id": "0"}}
    for _ in range(9):
        body = {"locations": [location], "max_results": 5, "page_token": token}
        page = tell("POST", "3.0/traces/search", body)
        results += [trace_info["trace_id"] for trace_info in page.get("traces", [])]
        token = page.get("next_page_token", "")
        if not token:
            break
    assert results == [f"tr-{trace}" for _, trace in wanted]


def test_thousands_of_spans(store: Store) -> None:
    """20 MB in as many requests as Lambda takes, and one compressed answer."""
    trace = new_trace()
    text = "lorem ipsum " * 330
    for first in range(1, 5001, 1000):
        numbers = range(first, first + 1000)
        spans = [span(trace, n, 1 if n > 1 else None, start=n, a=f"{n} {text}") for n in numbers]
        assert export("0", spans).status == 200
    answer = ask("GET", "3.0/traces/get", trace_id=f"tr-{trace}")
    assert answer.status == 200
    assert answer.size < 6 * 1024 * 1024
    spans = answer.body["trace"]["spans"]
    assert span_ids(spans) == [f"{n:016x}" for n in range(1, 5001)]
    assert sum(len(str(item)) for item in spans) > 20_000_000
