"""What reads, derives or reports redacted traces has nothing private, and nobody without the right
changes the rules or gets around them."""

from __future__ import annotations

import base64
import json
import logging
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import traces.app
import workspaces.app
from mlcore import observability, queues
from mlcore.entities.webhooks import ACTIONS, ACTIVE, EventName, Webhook
from mlcore.environment import AUTHENTICATION
from mlcore.errors import InvalidParameterValue
from mlcore.http import lambda_handler
from mlcore.repos import webhooks
from mlcore.repos.settings import stored_settings
from mlcore.repos.users import users
from operate.transfer import files as transferred_files
from operate.transfer.mlflow_client import Server
from operate.transfer.transfer_item import differences
from tests.contract import span_files
from tests.contract.artifact_folder import artifacts_in
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.full_text_setting import setting
from tests.contract.index_state import deliver
from tests.contract.lake import Tables, tables
from tests.contract.logins import called_as, named
from tests.contract.private_texts import (
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
from tests.contract.streams import following
from tests.contract.trace_calls import ask, export, info, resource_spans, span, start, tell

json_format = pytest.importorskip("google.protobuf.json_format")
trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

__all__ = ["tables"]

Json = dict[str, Any]
TIME = "2023-11-14T22:13:20Z"
SLOW = r"(?:a|aa)+\d"


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> Iterator[Path]:
    with artifacts_in(tmp_path / "artifacts") as folder:
        yield folder


@pytest.fixture
def experiment(store: Store) -> str:
    stored_settings.put("redaction", RULES)
    return store.api.new_experiment("private")


def write_everything(experiment: str) -> None:
    """A trace with private texts in its spans, report, tags and assessments."""
    assert export(experiment, [private_span()], {"owner": SECRET}).status == 200
    fields = {
        "request_time": TIME,
        "request_preview": f"for {SECRET}",
        "tags": {"note": SECRET},
        "trace_metadata": {"m": PASSWORD},
    }
    tell("POST", "3.0/traces", start(experiment, TRACE, **fields))
    assessment = {
        "assessment_name": f"by {SECRET}",
        "feedback": {"value": SECRET},
        "rationale": PASSWORD,
    }
    tell("POST", f"3.0/traces/{TRACE}/assessments", {"assessment": assessment})


def private_in(text: str) -> list[str]:
    return [private for private in PRIVATE if private.lower() in text.lower()]


def test_spans_in_protobuf(store: Store, files: Path, experiment: str) -> None:
    body = resource_spans([private_span()], {"owner": SECRET})
    scope = {"name": SECRET, "version": SECRET}
    body["resourceSpans"][0]["scopeSpans"][0]["scope"] = scope
    for made in body["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for part in (made, *made["links"]):
            for name in ("traceId", "spanId"):
                part[name] = base64.b64encode(bytes.fromhex(part[name])).decode()
    message = json_format.ParseDict(body, trace_service.ExportTraceServiceRequest())
    event = {
        "version": "2.0",
        "rawPath": "/v1/traces",
        "rawQueryString": "",
        "headers": {
            "content-type": "application/x-protobuf",
            "host": "localhost",
            "x-mlflow-experiment-id": experiment,
        },
        "requestContext": {"http": {"method": "POST"}, "requestId": "test"},
        "isBase64Encoded": True,
        "body": base64.b64encode(message.SerializeToString()).decode(),
    }
    assert traces.app.handler(event, None)["statusCode"] == 200
    assert_nothing_private(store, files)
    assert "[REDACTED email]" in info(TRACE)["request_preview"]


def test_full_text_finds_nothing_private(store: Store, files: Path, experiment: str) -> None:
    setting(store, ["traces.content", "traces.tags.*", "traces.metadata.*"])
    with following(store) as stream:
        write_everything(experiment)
        deliver(stream.fresh())
    assert_nothing_private(store, files)
    location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}}

    def count(condition: str) -> int:
        body = {"locations": [location], "filter": condition}
        return len(tell("POST", "3.0/traces/search", body).get("traces", ()))

    assert count("trace.text ILIKE '%[REDACTED email]%'") == 1
    for text in ("ann.secret", PASSWORD):
        assert count(f"trace.text ILIKE '%{text}%'") == 0
        assert count(f"tags.note ILIKE '%{text}%'") == 0


def test_system_tables(store: Store, tables: Tables, experiment: str) -> None:
    write_everything(experiment)
    tables.follow()
    for name in ("traces", "spans", "assessments"):
        rows = json.dumps(tables.rows(name), default=str, ensure_ascii=False)
        assert "[REDACTED email]" in rows, name
        assert private_in(rows) == [], name
    assert span_files.assert_columns_are_the_map() == [True]
    (file,) = span_files.files()
    (row,) = span_files.rows(file)
    assert row["inner_attribute_mlflow_spantype"] == row["inner_attribute_user_id"]
    assert row["inner_attribute_user_id"] == "[REDACTED email]"
    assert private_in(json.dumps(row, default=str, ensure_ascii=False)) == []


def test_rules_that_come_later_replace_what_columns_held(
    store: Store, tables: Tables, experiment: str
) -> None:
    stored_settings.put("redaction", {"rules": []})
    write_everything(experiment)
    tables.follow()
    (file,) = span_files.files()
    assert SECRET in span_files.rows(file)[0]["inner_attribute_user_id"]
    stored_settings.put("redaction", RULES)
    write_everything(experiment)
    tables.follow()
    (file,) = span_files.files()
    (row,) = span_files.rows(file)
    assert span_files.assert_columns_are_the_map() == [True]
    assert private_in(json.dumps(row, default=str, ensure_ascii=False)) == []


def test_webhooks_log_lines_and_audit(
    store: Store,
    experiment: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    sent: list[str] = []
    lines: list[str] = []

    def send(_: str, messages: list[queues.QueueMessage]) -> None:
        sent.extend(message.body for message in messages)

    monkeypatch.setenv("WEBHOOK_QUEUE_URL", "queue")
    monkeypatch.setattr(queues, "send", send)
    monkeypatch.setattr(
        observability._requests,
        "info",
        lambda message, extra: lines.append(json.dumps([message, extra], default=str)),
    )
    events = tuple(EventName(entity, action) for entity in ACTIONS for action in ACTIONS[entity])
    webhooks.put(Webhook("w", "default", "n", "https://x", events, ACTIVE, "", "", 0, 0))
    caplog.set_level(logging.DEBUG)
    with following(store) as stream:
        write_everything(experiment)
        bad = start(experiment, "a/" + SECRET, request_preview=SECRET, tags={"k": 7})
        assert ask("POST", "3.0/traces", bad).status == 400
        deliver(stream.fresh())
    assert len(lines) >= 4
    printed = "".join(capfd.readouterr())
    for text in (*sent, *lines, caplog.text, printed):
        assert private_in(text) == []


@pytest.mark.parametrize("way", ["spans", "report", "tag"])
def test_an_expression_that_backtracks_takes_no_longer_than_its_time(
    store: Store, files: Path, experiment: str, way: str
) -> None:
    stored_settings.put("redaction", {"rules": [{"pattern": SLOW, "replacement": "[slow]"}]})
    texts = [f"{number} {SECRET} " + "a" * 4_000 + "!" for number in range(60)]
    started = time.process_time()
    if way == "spans":
        made = [span("a" * 32, number + 1, text=text) for number, text in enumerate(texts)]
        assert export(experiment, made).status == 200
    else:
        tags = {f"k{number}": text for number, text in enumerate(texts)}
        report = start(experiment, TRACE, request_time=TIME, tags=tags if way == "report" else {})
        tell("POST", "3.0/traces", report)
        tell("PATCH", f"3.0/traces/{TRACE}/tags", {"key": "one", "value": texts[0]})
    assert time.process_time() - started < 10
    assert "[slow]" in stored(store, files)
    assert_nothing_private(store, files)


class FilesOfTrace(Server):
    """A server whose trace has these files."""

    contents: Mapping[str, bytes]

    def get(self, path: str, /, **parameters: Any) -> Any:
        listed = [{"path": name, "file_size": len(self.contents[name])} for name in self.contents]
        return {"files": listed}

    def stream(self, path: str) -> Iterator[bytes]:
        yield self.contents[path.rpartition("/")[2]]


@pytest.mark.parametrize("known", [True, False])
def test_imported_files(store: Store, files: Path, experiment: str, *, known: bool) -> None:
    if known:
        tell("POST", "3.0/traces", start(experiment, TRACE, request_time="2023-11-14T22:13:20Z"))
    spans = {"spans": [{"name": f"for {SECRET}", "attributes": {"mlflow.spanInputs": NESTED}}]}
    server = FilesOfTrace("http://old")
    server.contents = {
        "traces.json": json.dumps(spans).encode(),
        "attachment.bin": SECRET.encode(),
        "more.json": json.dumps(spans).encode(),
    }
    path = f"{experiment}/traces/{TRACE}/artifacts"
    item = transferred_files.item(server, path)
    for _ in range(2):
        item.write(item.want(), item.have())
        assert differences(item, item.want(), item.have()) == []
    assert_nothing_private(store, files)
    (kept,) = [file for file in files.rglob("*.*") if file.is_file()]
    assert kept.as_posix().endswith(f"{path}/traces.json")
    assert json.loads(kept.read_bytes())["spans"][0]["name"] == "for [REDACTED email]"
    assert list(item.want()) == ["traces.json"]
    server.contents = {"traces.json": b"{no json"}
    with pytest.raises(InvalidParameterValue, match="no JSON of spans"):
        item.want()
    stored_settings.put("redaction", {"rules": []})
    server.contents = {"attachment.bin": b"data"}
    item.write(item.want(), item.have())
    assert "attachment.bin" in (item.have() or {})


class TestHostileUsers:
    """With basic authentication and workspaces."""

    @pytest.fixture
    def ask_for(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> Any:
        enable_workspaces(monkeypatch, "other")
        monkeypatch.setenv(AUTHENTICATION, "basic")
        handler = lambda_handler(workspaces.app.RPCS)
        users.create("root", "", is_admin=True)
        users.create("eve", "", is_admin=False)

        def send(user: str, method: str, key: str, body: str = "") -> tuple[int, str]:
            caller = named(user, is_admin=user == "root")
            path = f"/api/3.0/mlflow-serverless/config{key}"
            return called_as(caller, handler, method, path, body)

        return send

    @pytest.mark.parametrize("key", ["/redaction", "/Redaction", "/redaction%20", "/re%64action"])
    def test_rules_are_for_administrators(self, experiment: str, ask_for: Any, key: str) -> None:
        for method, body in (
            ("PUT", '{"value": {"rules": []}}'),
            ("DELETE", ""),
            ("GET", ""),
        ):
            status, text = ask_for("eve", method, key, body)
            assert status == 403, (method, text)
            assert "hunter2" not in text
        assert ask_for("eve", "GET", "")[0] == 403
        assert stored_settings.get("redaction") == RULES

    @pytest.mark.parametrize(
        "body",
        [
            '{"value": null}',
            '{"value": []}',
            '{"value": {"Rules": []}}',
            '{"value": {"rules": [], "RULES": []}}',
            '{"value": {"rules": [{"Entities": ["email"]}]}}',
            '{"value": {"rules": [{"entities": ["email"], "experiment_ids": ["1"]}]}}',
            '{"value": {"rules": [{"entities": ["email"], "experiments": ["01"]}]}}',
            '{"value": {"rules": [{"entities": ["email"], "experiments": [1]}]}}',
            '{"value": {"rules": [{"entities": ["email"], "experiments": []}]}}',
            '{"value": {"rules": [{"pattern": "(?R)"}]}}',
            '{"value": {"rules": [{"pattern": "a", "replacement": null}]}}',
        ],
    )
    def test_nearly_right_rules_are_refused(self, experiment: str, ask_for: Any, body: str) -> None:
        status, text = ask_for("root", "PUT", "/redaction", body)
        assert (status, json.loads(text)["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
        assert stored_settings.get("redaction") == RULES

    def test_spellings_of_an_experiment_do_not_leave_its_scope(
        self, store: Store, files: Path, experiment: str
    ) -> None:
        stored_settings.put(
            "redaction", {"rules": [{**RULES["rules"][0], "experiments": [experiment]}]}
        )
        for number, spelling in enumerate((f"0{experiment}", f"00{experiment}", f"+{experiment}")):
            made = span(f"{number + 1:032x}", 1, mlflow__spanInputs=json.dumps(SECRET))
            export(spelling, [made])
            report = start(spelling, f"tr-{number + 7:032x}", request_time=TIME)
            report["trace"]["trace_info"]["request_preview"] = SECRET
            ask("POST", "3.0/traces", report)
        assert info(f"tr-{1:032x}")["request_preview"] == '"[REDACTED email]"'
        assert_nothing_private(store, files)

    def test_another_workspace_is_no_way_around_rules(
        self, store: Store, files: Path, experiment: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        enable_workspaces(monkeypatch, "other")
        stored_settings.put(
            "redaction", {"rules": [{**RULES["rules"][0], "workspaces": ["default"]}]}
        )
        for spelling, is_known in (("other", False), ("Other", False), ("default ", True)):
            headers = {"x-mlflow-workspace": spelling}
            report = start(experiment, TRACE, request_time=TIME, tags={"note": SECRET})
            status = ask("POST", "3.0/traces", report, headers).status
            assert (status == 200) is is_known
            headers["x-mlflow-experiment-id"] = experiment
            status = ask("POST", "/v1/traces", resource_spans([private_span()]), headers).status
            assert (status == 200) is is_known
        assert "ann.secret" not in stored(store, files)
        assert export(experiment, [span("a" * 32, 1, note=SECRET)]).status == 200
        assert "ann.secret" not in stored(store, files)
