"""While a rule says so, traces are stored without what was said to a model or by it."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars
import pytest

from lander import app as lander
from mlcore import reserved_tags
from mlcore.errors import InvalidParameterValue
from mlcore.limits.settings import check_setting
from mlcore.observability import logger
from mlcore.repos.settings import stored_settings
from mltables import publisher
from tests.contract import span_files
from tests.contract.artifact_folder import artifacts_in
from tests.contract.conftest import Store
from tests.contract.full_text_setting import setting
from tests.contract.gateway_requests import post
from tests.contract.gateway_world import allow_local, endpoint, model
from tests.contract.index_state import deliver
from tests.contract.lake import Tables, tables
from tests.contract.private_texts import TRACE, stored
from tests.contract.sealing import seal_here
from tests.contract.streams import following
from tests.contract.trace_calls import export, info, infos, span, start, tell
from tests.contract.trace_uploads import upload
from tests.doubles.providers import openai, serving

__all__ = ["tables"]

SAID = "zebra quartz"
TIME = "2023-11-14T22:13:20Z"
RULES = {"rules": [{"content": "none"}]}
USAGE = {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12}


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> Iterator[Path]:
    with artifacts_in(tmp_path / "files") as folder:
        yield folder


@pytest.fixture
def experiment(store: Store) -> str:
    stored_settings.put("redaction", RULES)
    return store.api.new_experiment("content-free")


def assert_nothing_said(store: Store, files: Path) -> None:
    text = stored(store, files).lower()
    assert "zebra" not in text
    assert "quartz" not in text


def said_span(number: int = 1, parent: int | None = None) -> dict[str, Any]:
    made = span(
        "a" * 32,
        number,
        parent,
        mlflow__spanInputs={"q": SAID},
        mlflow__spanOutputs=json.dumps(SAID),
        mlflow__spanType=json.dumps("CHAT_MODEL"),
        mlflow__llm__model=json.dumps("gpt-4o"),
        mlflow__llm__provider=json.dumps("openai"),
        mlflow__chat__tokenUsage=json.dumps({**USAGE, SAID: 1, "note": SAID}),
        mlflow__spanLogLevel=20,
        mlflow__chat__tools=json.dumps([{"function": {"description": SAID}}]),
        mlflow__traceTag__note=SAID,
        user__id=SAID,
        session__id=SAID,
        gen_ai__prompt=SAID,
        input__value=SAID,
        output__value=SAID,
    )
    made["attributes"].append({"key": SAID, "value": {"intValue": "1"}})
    made["status"] = {"code": 2, "message": SAID}
    attributes = [{"key": "exception.message", "value": {"stringValue": SAID}}]
    made["events"] = [{"name": SAID, "timeUnixNano": "1700000000000000001"}]
    made["events"][0]["attributes"] = attributes
    made["links"] = [{"traceId": "b" * 32, "spanId": "c" * 16, "attributes": attributes}]
    return made


def test_spans(store: Store, files: Path, experiment: str) -> None:
    setting(store, ["traces.content", "traces.tags.*", "traces.metadata.*"])
    with following(store) as stream:
        spans = [said_span(), said_span(2, 1)]
        assert export(experiment, spans, {"owner": SAID, "service.name": SAID}).status == 200
        deliver(stream.fresh())
    assert_nothing_said(store, files)
    shown = info(TRACE)
    assert not shown.get("request_preview")
    assert shown["state"] == "ERROR"
    assert json.loads(shown["trace_metadata"]["mlflow.trace.tokenUsage"]) == USAGE
    (trace,) = tell("GET", "3.0/traces/batchGet", trace_ids=TRACE)["traces"]
    assert [made["name"] for made in trace["spans"]] == ["span 1", "span 2"]
    for made in trace["spans"]:
        kept = {entry["key"]: entry["value"] for entry in made["attributes"]}
        assert kept["mlflow.spanType"] == {"string_value": "CHAT_MODEL"}
        assert kept["mlflow.spanLogLevel"] == {"int_value": 20}
        assert kept["mlflow.llm.model"] == {"string_value": "gpt-4o"}
        assert "mlflow.llm.cost" in kept, "costs are computed of what stays"


def test_reports_tags_and_assessments(store: Store, files: Path, experiment: str) -> None:
    def feedback(name: str, value: Any) -> dict[str, Any]:
        source = {"source_type": "HUMAN", "source_id": "bob"}
        return {
            "assessment_name": name,
            "assessment_id": f"a-{name}",
            "feedback": {"value": value},
            "rationale": SAID,
            "metadata": {"why": SAID},
            "source": source,
        }

    values = {"number": 0.5, "flag": True, "word": "Yes", "text": SAID, "list": [SAID]}
    fields = {
        "request_time": TIME,
        "client_request_id": SAID,
        "request_preview": SAID,
        "response_preview": SAID,
        "tags": {"note": SAID, "mlflow.traceName": "chat", SAID: "1"},
        "trace_metadata": {
            "mlflow.traceInputs": SAID,
            "mlflow.traceOutputs": SAID,
            "mlflow.trace.session": "session-7",
            "mlflow.trace.user": SAID,
        },
        "assessments": [feedback(name, value) for name, value in values.items()],
    }
    report = start(experiment, TRACE, **fields)
    assert "quartz" not in json.dumps(tell("POST", "3.0/traces", report))
    tell("POST", "3.0/traces", report)
    tell("PATCH", f"3.0/traces/{TRACE}/tags", {"key": "later", "value": SAID})
    error = {"error_code": "LATE", "error_message": SAID, "stack_trace": SAID}
    failed = {"assessment_name": "failed", "feedback": {"error": error}}
    path = f"3.0/traces/{TRACE}/assessments"
    tell("POST", path, {"assessment": failed})
    serialized = {"serialization_format": "JSON_FORMAT", "value": json.dumps({SAID: SAID})}
    expected = {"assessment_name": "e", "expectation": {"serialized_value": serialized}}
    tell("POST", path, {"assessment": expected})
    update = {"assessment": {"rationale": SAID}, "update_mask": "rationale"}
    tell("PATCH", f"{path}/a-number", update)
    assert_nothing_said(store, files)
    shown = info(TRACE)
    kept = {
        made["assessment_name"]: made["feedback"].get("value")
        for made in shown["assessments"]
        if "feedback" in made
    }
    expected_values = {"number": 0.5, "flag": True, "word": "Yes"}
    assert kept.items() >= expected_values.items()
    assert kept["text"] == kept["list"] == "[REDACTED]"
    assert shown["tags"]["mlflow.traceName"] == "chat"
    assert shown["trace_metadata"]["mlflow.trace.session"] == "session-7"


def test_version_2(store: Store, files: Path, experiment: str) -> None:
    pairs = [{"key": key, "value": SAID} for key in ("mlflow.traceInputs", "mlflow.traceOutputs")]
    body = {
        "experiment_id": experiment,
        "timestamp_ms": 1,
        "request_metadata": pairs,
        "tags": pairs,
    }
    made = tell("POST", "2.0/traces", body)["trace_info"]
    end = {"timestamp_ms": 9, "status": "OK", "request_metadata": pairs, "tags": pairs}
    tell("PATCH", f"2.0/traces/{made['request_id']}", end)
    assert_nothing_said(store, files)


@pytest.mark.parametrize("form", ["new", "old"])
def test_files_of_traces(store: Store, files: Path, experiment: str, form: str) -> None:
    tell("POST", "3.0/traces", start(experiment, TRACE, request_time=TIME))
    made: dict[str, Any] = {
        "name": "ask",
        "attributes": {"mlflow.spanInputs": SAID, "mlflow.spanType": '"LLM"', SAID: 1},
        "events": [{"name": SAID, "attributes": {}}],
        SAID: SAID,
    }
    ids = {"trace_id": "0x" + "1" * 32, "span_id": "0x" + "1" * 16}
    if form == "new":
        made |= {**ids, "start_time_unix_nano": 1, "status": {"code": "OK", "message": SAID}}
    else:
        made |= {"context": ids, "start_time": 1, "status_code": "OK", "status_message": SAID}
    content = json.dumps({"spans": [made], "request": SAID, SAID: 1}).encode()
    path = f"{experiment}/traces/{TRACE}/artifacts"
    assert upload(f"{path}/traces.json", content)["statusCode"] == 200
    assert upload(f"{path}/more.txt", SAID.encode())["statusCode"] == 400
    assert_nothing_said(store, files)
    (file,) = files.rglob("traces.json")
    (kept,) = json.loads(file.read_bytes())["spans"]
    assert kept["attributes"] == {"mlflow.spanType": '"LLM"'}
    assert (kept if form == "new" else kept["context"])["span_id"] == ids["span_id"]


def test_calls_of_the_gateway(
    store: Store, files: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    stored_settings.put("redaction", RULES)
    with serving(openai) as provider:
        made = model("m", "openai", provider.url, model_name="gpt-4o")
        endpoint("chat", [made], [], usage_tracking=True)
        body = {"model": "chat", "messages": [{"role": "user", "content": SAID}]}
        status, _, text = post("mlflow/v1/chat/completions", body)
        assert status == 200
        assert SAID in text, "the caller gets the answer as it is"
    assert_nothing_said(store, files)
    assert "gpt-4o" in stored(store, files)


def test_a_rule_for_one_endpoint(
    store: Store, files: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also if both endpoints trace their calls to one experiment; and what is said of a call
    later."""
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    experiment = store.api.new_experiment("calls")
    more = {"usage_tracking": True, "experiment_id": experiment}
    with serving(openai) as provider:
        made = model("m", "openai", provider.url, model_name="gpt-4o")
        quiet = endpoint("quiet", [made], [], **more)
        endpoint("open", [made], [], **more)
        stored_settings.put("redaction", {"rules": [{"content": "none", "endpoints": [quiet]}]})

        def call(name: str, text: str) -> None:
            body = {"model": name, "messages": [{"role": "user", "content": text}]}
            assert post("mlflow/v1/chat/completions", body)[0] == 200

        call("quiet", SAID)
        (trace,) = infos(experiment)
        trace_id = trace["trace_id"]
        path = f"3.0/traces/{trace_id}"
        taken_out = {reserved_tags.GATEWAY_ENDPOINT: "another", "kept": "by-nobody"}
        tell("POST", "3.0/traces", start(experiment, trace_id, trace_metadata=taken_out))
        assert infos(experiment)[0]["trace_metadata"][reserved_tags.GATEWAY_ENDPOINT] == quiet
        tell("PATCH", f"{path}/tags", {"key": "note", "value": SAID})
        feedback = {"assessment_name": "n", "feedback": {"value": SAID}, "rationale": SAID}
        tell("POST", f"{path}/assessments", {"assessment": feedback})
        more_spans = [said_span()]
        more_spans[0]["traceId"] = trace_id.removeprefix("tr-")
        assert export(experiment, more_spans).status == 200
        file = f"{experiment}/traces/{trace_id}/artifacts/more.txt"
        assert upload(file, SAID.encode())["statusCode"] == 400
        assert_nothing_said(store, files)
        call("open", "an open word")
    assert "an open word" in stored(store, files)


@pytest.mark.parametrize(
    "rule",
    [
        {"content": "all"},
        {"content": None},
        {"content": "None"},
        {"content": "none", "replacement": "x"},
        {"content": "none", "entities": ["email"]},
        {"content": "none", "endpoints": []},
        {"content": "none", "endpoints": "chat"},
    ],
)
def test_rules_that_are_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterValue):
        check_setting("redaction", {"rules": [rule]})


def test_the_rule_holds_in_its_scope_alone(store: Store, experiment: str) -> None:
    stored_settings.put("redaction", {"rules": [{"content": "none", "experiments": [experiment]}]})
    other = store.api.new_experiment("other")
    assert export(other, [said_span()]).status == 200
    assert SAID in info(TRACE)["request_preview"]


def test_columns_of_spans_hold_no_content(store: Store, tables: Tables, experiment: str) -> None:
    """Attributes whose forms are words stay; texts in their place do not, nor do others."""
    texts: dict[str, Any] = {
        key.replace(".", "__"): SAID
        for key in (
            *("mlflow.spanType", "mlflow.llm.model", "mlflow.llm.provider", "session.id"),
            *("user.id", "gen_ai.tool.name", "gen_ai.request.model", "error.type"),
            *("mlflow.chat.tokenUsage", "mlflow.llm.cost", "mlflow.spanFunctionName"),
        )
    }
    spans = [span("a" * 32, 1, None, **texts), said_span(2, 1)]
    assert export(experiment, spans).status == 200
    tables.follow()
    assert span_files.assert_columns_are_the_map() == [True]
    (file,) = span_files.files()
    first, second = sorted(span_files.rows(file), key=lambda row: str(row["span_id"]))
    for row in (first, second):
        text = json.dumps(row, default=str).lower()
        assert "zebra" not in text
        assert "quartz" not in text
    columns = [value for name, value in first.items() if name.startswith("inner_attribute_")]
    assert len(columns) == 27
    assert set(columns) == {None}
    assert second["inner_attribute_mlflow_spantype"] == "CHAT_MODEL"


class Lines(logging.Handler):
    """Keeps all that is logged, with the fields of each line."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += f"{record.getMessage()} {record.__dict__}\n".lower()


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler = Lines()
    loggers = [logging.getLogger(name) for name in ("", logger.name, f"{logger.name}.requests")]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.addHandler(handler)
        each.setLevel(logging.DEBUG)
    yield handler
    for each, level in zip(loggers, levels, strict=True):
        each.removeHandler(handler)
        each.setLevel(level)


def _in_tables(folder: Path) -> str:
    """All that the files of the system tables hold, with columns that no query sees, landing
    objects and logs of the tables."""
    texts = []
    for path in folder.rglob("*"):
        if path.suffix == ".parquet":
            texts.append(str(polars.read_parquet(path, hive_partitioning=False).to_dicts()))
        elif path.suffix == ".gz":
            texts.append(gzip.decompress(path.read_bytes()).decode())
        elif path.is_file():
            texts.append(path.read_bytes().decode(errors="replace"))
    return "\n".join(texts).lower()


@pytest.mark.parametrize("is_free", [True, False])
def test_neither_tables_nor_log_lines_hold_content(
    store: Store, tables: Tables, experiment: str, lines: Lines, is_free: bool
) -> None:
    """Without the rule the same search finds it in all three tables."""
    stored_settings.put("redaction", RULES if is_free else {"rules": []})
    assert export(experiment, [said_span(), said_span(2, 1)], {"owner": SAID}).status == 200
    assessment = {
        "assessment_name": "text",
        "source": {"source_type": "HUMAN", "source_id": "bob"},
        "feedback": {"value": SAID},
        "rationale": SAID,
        "metadata": {"why": SAID},
    }
    tell("POST", f"3.0/traces/{TRACE}/assessments", {"assessment": assessment})
    tell("PATCH", f"3.0/traces/{TRACE}/tags", {"key": "note", "value": SAID})
    fields = {"request_time": TIME, "request_preview": SAID, "trace_metadata": {"note": SAID}}
    tell("POST", "3.0/traces", start(experiment, f"tr-{'d' * 32}", **fields))
    lander.handler({"Records": tables.stream.fresh()}, None)
    landed = _in_tables(tables.folder)
    publisher.publish()
    for name in ("traces", "assessments", "spans"):
        folder = tables.folder / "files/system/mlflow" / name
        assert list(folder.rglob("*.parquet"))
        assert ("zebra" in _in_tables(folder)) is not is_free, name
    assert "zebra" not in landed
    whole = _in_tables(tables.folder)
    assert not is_free or "quartz" not in whole
    assert "3.0/mlflow/traces" in lines.text
    assert "zebra" not in lines.text
    assert "quartz" not in lines.text
