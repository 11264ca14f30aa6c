"""Our request decoding against that of MLflow's own server, on generated requests.

Each request goes through the stock handler of its RPC, real protobuf message and real checks
included, up to the point where the handler would call the store.
"""

from __future__ import annotations

import json
import os
import warnings
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qsl

import pytest
from hypothesis import HealthCheck, example, given, settings

from experiments import messages as experiments
from mlcore.errors import InvalidParameterValue
from mlcore.http import Sent
from mlcore.http.message_parsing import decode_request
from mlcore.wire import ArgumentInt, Message
from mlcore.wire.message import fields_of
from runs import messages as runs
from tests.differential.generated import is_enum, queries, raw_bodies

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    flask = pytest.importorskip("flask")
    handlers = pytest.importorskip("mlflow.server.handlers")
    json_format = pytest.importorskip("google.protobuf.json_format")
    parse_dict = handlers.parse_dict
    MlflowException = pytest.importorskip("mlflow.exceptions").MlflowException

pytestmark = pytest.mark.e2e

EXAMPLES = int(os.environ.get("DIFFERENTIAL_EXAMPLES", "30"))

RPCS: list[tuple[type[Message], str, Any]] = [
    (experiments.CreateExperiment, "POST", handlers._create_experiment),
    (experiments.GetExperiment, "GET", handlers._get_experiment),
    (experiments.GetExperimentByName, "GET", handlers._get_experiment_by_name),
    (experiments.SearchExperiments, "POST", handlers._search_experiments),
    (experiments.SearchExperiments, "GET", handlers._search_experiments),
    (experiments.UpdateExperiment, "POST", handlers._update_experiment),
    (experiments.DeleteExperiment, "POST", handlers._delete_experiment),
    (experiments.RestoreExperiment, "POST", handlers._restore_experiment),
    (experiments.SetExperimentTag, "POST", handlers._set_experiment_tag),
    (experiments.DeleteExperimentTag, "POST", handlers._delete_experiment_tag),
    (experiments.SearchDatasets, "POST", handlers._search_datasets_handler),
    (runs.CreateRun, "POST", handlers._create_run),
    (runs.GetRun, "GET", handlers._get_run),
    (runs.UpdateRun, "POST", handlers._update_run),
    (runs.DeleteRun, "POST", handlers._delete_run),
    (runs.RestoreRun, "POST", handlers._restore_run),
    (runs.LogMetric, "POST", handlers._log_metric),
    (runs.LogParam, "POST", handlers._log_param),
    (runs.LogBatch, "POST", handlers._log_batch),
    (runs.LogModel, "POST", handlers._log_model),
    (runs.SetTag, "POST", handlers._set_tag),
    (runs.DeleteTag, "POST", handlers._delete_tag),
    (runs.LogInputs, "POST", handlers._log_inputs),
    (runs.LogOutputs, "POST", handlers._log_outputs),
    (runs.SearchRuns, "POST", handlers._search_runs),
    (runs.GetMetricHistory, "GET", handlers._get_metric_history),
    (
        runs.GetMetricHistoryBulkInterval,
        "GET",
        handlers.get_metric_history_bulk_interval_handler,
    ),
]
IDS = [f"{method}-{message.__name__}" for message, method, _ in RPCS]

app = flask.Flask("oracle")


class _Reached(Exception):
    """The handler has its message; the rest is not the subject."""


# -- both sides ------------------------------------------------------------------------------------


class Leniency:
    """Notes, while protobuf's parser runs, what it drops without an error that reaches the caller:
    everything from a misfit on, unknown names of enums, and lists and texts in place of objects."""

    def __init__(self) -> None:
        self.seen = False
        self.no_object = False

    def __enter__(self) -> None:
        leniency = self

        class UnknownName(json_format.EnumStringValueParseError):  # type: ignore[misc,name-defined]
            def __init__(self, *args: Any) -> None:
                super().__init__(*args)
                leniency.seen = True

        def convert_message(parser: Any, value: Any, message: Any, path: Any) -> None:
            leniency.no_object |= not isinstance(value, dict)
            leniency.seen |= leniency.no_object
            original_convert(parser, value, message, path)

        def noting_parse_dict(data: Any, message: Any) -> None:
            try:
                parse_dict(data, message)
            except json_format.ParseError:
                leniency.seen = True
                raise

        original_convert = json_format._Parser.ConvertMessage
        self._patches = (
            patch.object(json_format, "EnumStringValueParseError", UnknownName),
            patch.object(json_format._Parser, "ConvertMessage", convert_message),
            patch.object(handlers, "parse_dict", noting_parse_dict),
        )
        for patcher in self._patches:
            patcher.start()

    def __exit__(self, *_: object) -> None:
        for patcher in self._patches:
            patcher.stop()


def stock_outcome(
    handler: Any, method: str, query: str, body: bytes, content_type: str | None
) -> Any:
    """("message", fields), ("lenient", what came of a lenient reading), ("error", text) or
    ("crash", text)."""
    outcome: list[Any] = []
    original = handlers._get_request_message
    leniency = Leniency()

    def spy(message: Any, *args: Any, **kwargs: Any) -> Any:
        with leniency:
            original(message, *args, **kwargs)
        outcome.append(("lenient" if leniency.seen else "message", _proto_fields(message)))
        raise _Reached

    handlers._get_request_message = spy
    try:
        with app.test_request_context(
            "/?" + query, method=method, data=body, content_type=content_type
        ):
            response = handler()
    except _Reached:
        return outcome[0]
    except MlflowException as error:
        # Where the stock server took something else for an object, other checks ran.
        return ("lenient" if leniency.no_object else "error", error.message)
    except Exception as error:
        return ("crash", repr(error))
    finally:
        handlers._get_request_message = original
    return (
        "lenient" if leniency.no_object else "error",
        json.loads(response.get_data())["message"],
    )


def our_outcome(
    cls: type[Message], method: str, query: str, body: bytes, content_type: str | None
) -> Any:
    event = {
        "rawQueryString": query,
        "body": body.decode("utf-8", "surrogateescape") if body else None,
    }
    headers = {} if content_type is None else {"content-type": content_type}
    try:
        message = decode_request(cls, Sent(method, "/", headers, event))
    except InvalidParameterValue as error:
        return ("error", error.message)
    return ("message", _our_fields(message))


def _proto_fields(message: Any) -> dict[str, Any]:
    fields = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.is_repeated:
            fields[field.name] = [_proto_value(field, item) for item in value]
        elif message.HasField(field.name):
            fields[field.name] = _proto_value(field, value)
    return fields


def _proto_value(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return _proto_fields(value)
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    return repr(value)


def _our_fields(message: Message) -> dict[str, Any]:
    fields = {}
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if field.repeated:
            fields[field.name] = [_our_value(field, item) for item in value]
        elif message.has(field.name):
            fields[field.name] = _our_value(field, value)
    return fields


def _our_value(field: Any, value: Any) -> Any:
    if isinstance(value, Message):
        return _our_fields(value)
    return value if is_enum(field) else repr(value)


# -- the comparison --------------------------------------------------------------------------------


def is_unlimited(cls: type[Message], query: str) -> bool:
    """Whether a request for a history has a limit beyond 32 bits, with which the stock server drops
    the limit, and checks the other arguments in other words."""
    limits = [
        text for name, text in parse_qsl(query) if name.lower() in {"max_results", "maxresults"}
    ]
    return cls is runs.GetMetricHistory and any(len(limit) > 9 for limit in limits)


def with_arguments(cls: type[Message], query: str, outcome: Any) -> Any:
    """Returns an outcome of the stock server with the arguments that its handler reads beside the
    message. One that it cannot read or store is to be refused."""
    given = dict(reversed(parse_qsl(query, keep_blank_values=True)))
    read = {field.name for field in fields_of(cls) if field.hint == ArgumentInt} & given.keys()
    try:
        values = {name: int(given[name]) for name in read}
    except ValueError:
        return ("lenient", {})
    if any(not -(2**63) <= value < 2**63 for value in values.values()):
        return ("lenient", {})
    if not read or outcome[0] not in {"message", "lenient"}:
        return outcome
    return ("message", outcome[1] | {name: repr(value) for name, value in values.items()})


def compare(
    cls: type[Message], method: str, handler: Any, query: str, body: bytes, content_type: str | None
) -> None:
    if is_unlimited(cls, query):
        our_outcome(cls, method, query, body, content_type)
        return
    stock = stock_outcome(handler, method, query, body, content_type)
    stock = with_arguments(cls, query, stock)
    ours = our_outcome(cls, method, query, body, content_type)
    if stock[0] == "crash":
        return  # a crash has no right answer; ours must only be no crash
    if stock[0] == "lenient":
        assert ours[0] == "error" or body.strip() == b"[]"
    else:
        assert ours == stock


@pytest.mark.parametrize(
    ("cls", "method", "handler"),
    [rpc for rpc in RPCS if rpc[0] is not runs.GetMetricHistoryBulkInterval],  # reads queries only
    ids=[name for name in IDS if name != "GET-GetMetricHistoryBulkInterval"],
)
def test_bodies(cls: type[Message], method: str, handler: Any) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(body=raw_bodies(cls))
    @example(body=b"[]")
    @example(body=b"5")
    @example(body=b"null")
    @example(body=b"{bad")
    def check(body: bytes) -> None:
        compare(cls, method, handler, "", body, "application/json")

    check()


@pytest.mark.parametrize(("cls", "method", "handler"), RPCS, ids=IDS)
@pytest.mark.parametrize(
    "content_type", [None, "", "text/plain", "application/json; charset=utf-8", "Application/JSON"]
)
def test_content_types(
    cls: type[Message], method: str, handler: Any, content_type: str | None
) -> None:
    compare(cls, method, handler, "", b"{}", content_type)


@pytest.mark.parametrize(
    ("cls", "method", "handler"),
    [rpc for rpc in RPCS if rpc[1] == "GET"],
    ids=[name for name in IDS if name.startswith("GET")],
)
def test_queries(cls: type[Message], method: str, handler: Any) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(query=queries(cls))
    def check(query: str) -> None:
        compare(cls, method, handler, query, b"", None)

    check()
