"""Nobody writes into a trace of another experiment, takes over its assessments, or says where a
trace's files are, whichever route is used. The caller has an experiment of his own and no right on
the other one."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode

import pytest

import traces.app
from mlcore.auth.permissions import EXPERIMENT, Grant
from mlcore.entities.traces import Trace
from mlcore.environment import AUTHENTICATION
from mlcore.errors import MlflowError
from mlcore.http import lambda_handler
from mlcore.repos.traces import traces as stored_traces
from mlcore.repos.users import grants, users
from operate.transfer import traces as transferred
from operate.transfer.source_reader import SourceReader
from tests.contract.api import Answer
from tests.contract.conftest import Store
from tests.contract.logins import named
from tests.contract.trace_calls import resource_spans, span, start

TRACE = f"{7:032x}"
OWNED = f"tr-{TRACE}"
ASSESSMENT = {
    "assessment_id": "a-of-the-owner",
    "assessment_name": "good",
    "feedback": {"value": True},
    "source": {"source_type": "HUMAN", "source_id": "me"},
    "create_time": "2023-11-14T22:13:20.123Z",
    "last_update_time": "2023-11-14T22:13:20.123Z",
}
FOREIGN = f"Trace with ID '{OWNED}' already exists in another experiment."
SYSTEM_TAGS = (
    "mlflow.artifactLocation",
    "mlflow.trace.spansLocation",
    "mlflow.trace.archiveLocation",
    "mlflow.trace.archivalFailure",
)
EVIL = dict.fromkeys(SYSTEM_TAGS, "mlflow-artifacts:/elsewhere")


class World:
    """The owner's trace, in an experiment on which the other user has no right."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.theirs = store.api.new_experiment("theirs")
        self.mine = store.api.new_experiment("mine")
        self._handler = lambda_handler(traces.app.RPCS, traces.app.PLAIN_ROUTES)
        self.owner, self.other = (named(name) for name in ("owner", "other"))
        for name, experiment in (("owner", self.theirs), ("other", self.mine)):
            user = users.create(name, "", is_admin=False)
            grants.put(user, "default", Grant(EXPERIMENT, experiment, "MANAGE"))
        body = start(self.theirs, OWNED, assessments=[ASSESSMENT], tags={"t": "secret"})
        assert self.ask("POST", "3.0/traces", body, caller=self.owner).status == 200
        assert self.export([span(TRACE, 1)], self.theirs, self.owner).status == 200
        self.before = self.theirs_now()

    def ask(
        self, method: str, path: str, body: Any = None, *, caller: Any = None, **query: Any
    ) -> Answer:
        version, _, rest = path.partition("/")
        event = {
            "version": "2.0",
            "rawPath": path if path.startswith("/") else f"/api/{version}/mlflow/{rest}",
            "rawQueryString": urlencode(query, doseq=True),
            "headers": {
                "content-type": "application/json",
                "host": "localhost",
                "x-mlflow-experiment-id": self.mine,
                **(body or {}).pop("headers", {}),
            },
            "requestContext": {
                "http": {"method": method},
                "requestId": "t",
                "authorizer": caller or self.other,
            },
            "isBase64Encoded": False,
            "body": json.dumps(body),
        }
        answered = self._handler(event, None)
        text = str(answered["body"])
        fields = json.loads(text) if text.startswith("{") else {"text": text}
        return Answer(answered["statusCode"], fields, len(text))

    def export(self, spans: list[Any], experiment: str = "", caller: Any = None) -> Answer:
        headers = {"x-mlflow-experiment-id": experiment or self.mine}
        body = {**resource_spans(spans), "headers": headers}
        return self.ask("POST", "/v1/traces", body, caller=caller)

    def theirs_now(self) -> list[str]:
        """The items of the owner's experiment and of the reference to his trace."""
        return sorted(
            json.dumps(item, sort_keys=True, default=str)
            for item in self.store.items()
            if item["PK"]["S"] in (f"EXP#{self.theirs}", f"TRACE#{OWNED}")
        )

    def info(self, trace_id: str) -> Any:
        answer = self.ask("GET", f"3.0/traces/{trace_id}")
        assert answer.status == 200
        return answer.body["trace"]["trace_info"]


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv(AUTHENTICATION, "basic")
    monkeypatch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
    return World(store)


def test_a_start_or_spans_do_not_enter_another_experiments_trace(world: World) -> None:
    for answer in (
        world.ask("POST", "3.0/traces", start(world.mine, OWNED, tags={"t": "mine"})),
        world.ask("POST", "3.0/traces", start(world.mine, OWNED, assessments=[ASSESSMENT])),
        world.export([span(TRACE, 2), span(f"{8:032x}", 1)]),
        world.export([span(f"{8:032x}", 1), span(TRACE, 1, end=9)]),
    ):
        assert (answer.status, answer.body["message"]) == (400, FOREIGN)
    for refused in (
        world.ask("POST", "3.0/traces", start(world.theirs, OWNED)),
        world.export([span(TRACE, 2)], world.theirs),
        world.export([span(f"{9:032x}", 2)], world.theirs),
    ):
        assert refused.status == 403
    assert world.theirs_now() == world.before
    for trace in (8, 9):  # nothing of an export that is refused is stored
        gone = world.ask("GET", f"3.0/traces/tr-{trace:032x}", caller=world.owner)
        assert gone.status in (403, 404)
    assert not any("TRACE#tr-" in item["PK"]["S"] for item in others(world))


def others(world: World) -> list[Any]:
    return [item for item in world.store.items() if item["PK"]["S"] != f"TRACE#{OWNED}"]


def test_nobody_without_rights_reads_writes_counts_or_guesses(world: World) -> None:
    path = f"3.0/traces/{OWNED}"
    location = {
        "type": "MLFLOW_EXPERIMENT",
        "mlflow_experiment": {"experiment_id": world.theirs},
    }
    update = {"assessment": {"rationale": "x"}, "update_mask": "rationale"}
    tag = {"key": "t", "value": "mine"}
    end = {"request_id": OWNED, "timestamp_ms": 9, "status": "OK"}
    count = {
        "experiment_ids": [world.theirs],
        "view_type": "TRACES",
        "metric_name": "trace_count",
        "aggregations": [{"aggregation_type": "COUNT"}],
    }
    for method, route, body in (
        ("GET", path, None),
        ("PATCH", f"{path}/tags", tag),
        ("DELETE", f"{path}/tags", {"key": "t"}),
        ("PATCH", f"2.0/traces/{OWNED}/tags", tag),
        ("PATCH", f"2.0/traces/{OWNED}", end),
        ("POST", f"{path}/assessments", {"assessment": ASSESSMENT}),
        ("PATCH", f"{path}/assessments/a-of-the-owner", update),
        ("DELETE", f"{path}/assessments/a-of-the-owner", None),
        ("GET", f"{path}/assessments/a-of-the-owner", None),
        ("POST", "3.0/traces/search", {"locations": [location]}),
        ("POST", "3.0/traces/metrics", count),
        (
            "POST",
            "3.0/traces/delete-traces",
            {"experiment_id": world.theirs, "request_ids": [OWNED]},
        ),
    ):
        answer = world.ask(method, route, body)
        assert answer.status == 403, (method, route)
        assert "secret" not in str(answer.body)
    mine = {"experiment_id": world.mine, "request_ids": [OWNED]}
    assert world.ask("POST", "3.0/traces/delete-traces", mine).body["traces_deleted"] == 0
    assert world.theirs_now() == world.before


def test_an_assessment_stays_with_its_trace(world: World) -> None:
    """Assessments are kept by trace: one with the id of another trace's is another one."""
    changed = {**ASSESSMENT, "feedback": {"value": False}}
    mine = f"tr-{8:032x}"
    assert world.ask("POST", "3.0/traces", start(world.mine, mine)).status == 200
    assert world.ask("POST", "3.0/traces", start(world.mine, mine, assessments=[changed]))
    world.ask("POST", f"3.0/traces/{mine}/assessments", {"assessment": changed})
    over = {**changed, "assessment_id": "a-new", "overrides": "a-unknown"}
    answer = world.ask("POST", f"3.0/traces/{mine}/assessments", {"assessment": over})
    assert answer.status == 404
    assert world.ask("DELETE", f"3.0/traces/{mine}/assessments/a-of-the-owner").status == 200
    assert world.theirs_now() == world.before


def test_only_the_server_says_where_files_are(world: World) -> None:
    trace = f"{8:032x}"
    mine = f"tr-{trace}"
    own = f"mlflow-artifacts:/{world.mine}/traces/{mine}/artifacts"
    named_tags: dict[str, Any] = {f"mlflow.traceTag.{key}": text for key, text in EVIL.items()}
    named_tags["mlflow.traceTag.kept"] = "yes"

    def spans_with_tags() -> Answer:
        return world.export([span(trace, 1, **named_tags)])

    def started() -> Answer:
        return world.ask("POST", "3.0/traces", start(world.mine, mine, tags={**EVIL, "z": "v"}))

    for write in (spans_with_tags, started, spans_with_tags, started):
        assert write().status == 200
        tags = world.info(mine)["tags"]
        assert tags["mlflow.artifactLocation"] == own
        assert tags.keys().isdisjoint(SYSTEM_TAGS[2:])
        assert tags.get("mlflow.trace.spansLocation") in (None, "TRACKING_STORE")
    assert (tags["kept"], tags["z"]) == ("yes", "v")
    pairs = [{"key": key, "value": text} for key, text in EVIL.items()]
    body = {"experiment_id": world.mine, "timestamp_ms": 1, "tags": pairs, "request_metadata": []}
    made = world.ask("POST", "2.0/traces", body).body["trace_info"]
    located = f"mlflow-artifacts:/{world.mine}/traces/{made['request_id']}/artifacts"
    assert made["tags"] == [{"key": "mlflow.artifactLocation", "value": located}]
    ended = {"timestamp_ms": 2, "status": "OK", "tags": pairs, "request_metadata": []}
    world.ask("PATCH", f"2.0/traces/{made['request_id']}", ended)
    assert world.info(made["request_id"])["tags"] == {"mlflow.artifactLocation": located}
    for version in ("2.0", "3.0"):
        for key in SYSTEM_TAGS:
            route = f"{version}/traces/{mine}/tags"
            answer = world.ask("PATCH", route, {"key": key, "value": "x"})
            message = f"Tag '{key}' is immutable and cannot be set on a trace."
            assert (answer.status, answer.body["message"]) == (400, message)
        answer = world.ask("DELETE", route, {"key": "mlflow.artifactLocation"})
        message = "Tag 'mlflow.artifactLocation' is immutable and cannot be deleted on a trace."
        assert (answer.status, answer.body["message"]) == (400, message)


COMPONENT = "must be a single path component"
CHARACTERS = "must not contain '%', '?', '#' or control characters"


@pytest.mark.parametrize(
    ("trace_id", "reason"),
    [(text, COMPONENT) for text in ("../x", "a/b", "/x", "..", ".", "x.", "x ", "../../1/t")]
    + [(text, CHARACTERS) for text in ("a%b", "..%2fx", "a?b", "a#b", "a\nb", "a\0b", "a\x7f")],
)
def test_an_id_is_the_name_of_a_folder(world: World, trace_id: str, reason: str) -> None:
    answer = world.ask("POST", "3.0/traces", start(world.mine, trace_id))
    value = json.dumps(trace_id)
    message = f"Invalid value {value} for parameter 'trace_id' supplied: {reason}"
    assert (answer.status, answer.body["message"]) == (400, message)
    assert world.ask("GET", f"3.0/traces/{quote(trace_id, safe='')}").status in (403, 404)
    trace = _imported(trace_id, world.mine)
    with pytest.raises(MlflowError, match="trace_id"):
        _bring(trace)
    assert stored_traces.find(trace_id, "default") is None


def test_an_import_does_not_enter_another_experiments_trace(world: World) -> None:
    with pytest.raises(MlflowError, match="already exists in another experiment"):
        _bring(_imported(OWNED, world.mine))
    assert world.theirs_now() == world.before


def _imported(trace_id: str, experiment_id: str) -> Trace:
    return Trace(
        trace_id=trace_id,
        experiment_id=experiment_id,
        request_time=1,
        execution_duration=None,
        state="OK",
        client_request_id=None,
        request_preview=None,
        response_preview=None,
        trace_metadata={},
        tags=dict(EVIL),
    )


def _bring(trace: Trace) -> None:
    """Writes a trace as the import does, which has read it from a server without spans."""
    reader = SourceReader.__new__(SourceReader)
    vars(reader).update(workspace="default")
    item = transferred.item(reader, trace)
    item.write({"spans": {}}, None)
