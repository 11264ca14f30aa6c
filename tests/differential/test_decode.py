"""Our request decoding against that of MLflow's own server, on generated requests.

Each request goes through the stock handler of its RPC, real protobuf message and real checks
included, up to the point where the handler would call the store.
"""

from __future__ import annotations

import json
import os
import warnings
from typing import Any, get_args
from unittest.mock import patch
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from experiments import messages as experiments
from mlcore.errors import InvalidParameterValue
from mlcore.http import decode_request
from mlcore.wire import Int32, Message
from mlcore.wire.message import fields_of
from mlcore.wire.scalars import Enum
from runs import messages as runs

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    flask = pytest.importorskip("flask")
    handlers = pytest.importorskip("mlflow.server.handlers")
    json_format = pytest.importorskip("google.protobuf.json_format")
    parse_dict = handlers.parse_dict
    MlflowException = pytest.importorskip("mlflow.exceptions").MlflowException

pytestmark = pytest.mark.e2e

EXAMPLES = int(os.environ.get("DIFFERENTIAL_EXAMPLES", "60"))

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
        for one in self._patches:
            one.start()

    def __exit__(self, *_: object) -> None:
        for one in self._patches:
            one.stop()


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
        message = decode_request(cls, event, method, headers, {})
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


def is_enum(field: Any) -> bool:
    return any(isinstance(extra, Enum) for extra in get_args(field.hint))


# -- generated requests ----------------------------------------------------------------------------

numbers = st.one_of(
    st.integers(-3, 3),
    st.sampled_from(
        [
            2**31 - 1,
            2**31,
            -(2**31),
            2**63 - 1,
            2**63,
            -(2**63),
            -(2**63) - 1,
            10**400,
            50000,
            50001,
        ]
    ),
    st.floats(),
    st.sampled_from([1.0, 1.5, 1e30, 1e308, -0.0]),
)
numeric_texts = st.sampled_from([
    "1", "-7", "1.0", "1.5", "1e3", "1e400",
    " 1", "1 ", "\t2\n", "1_000", "٣", "0x10", "", "NaN", "nan",
    "NAN",
    "Infinity", "-Infinity", "inf", "+3", "9223372036854775808",
    "true", "None", "9" * 5000,
])  # fmt: skip
texts = st.one_of(
    # As a key, text in brackets is an extension to protobuf's parser, and unknown to ours.
    st.text(st.characters(exclude_characters="["), max_size=6),
    st.sampled_from(["x", "é", "\ud800", "\udc00x", "😀", "a" * 300, "run_id", "key"]),
)
enums = st.sampled_from(
    [
        "RUNNING",
        "FINISHED",
        "ALL",
        "ACTIVE_ONLY",
        "bogus",
        "",
        "1",
        "99",
        1,
        2,
        99,
        1.5,
        True,
        "running",
    ]
)
scalars = st.one_of(st.none(), st.booleans(), numbers, numeric_texts, texts, enums)
anything = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(texts, st.sampled_from(["key", "value", "name", "step"])), inner, max_size=3
        ),
    ),
    max_leaves=5,
)
strange_keys = st.sampled_from(["", "x", "run", "runID", "Run_Id", "checks", "metrics[0]", "x]"])


def well_typed(field: Any) -> st.SearchStrategy[Any]:
    if field.message is not None:
        return bodies(field.message)
    if is_enum(field):
        return enums
    if field.hint is str:
        return st.sampled_from(["a", "0", "é b/c", ""])
    if field.hint is bool:
        return st.booleans()
    if field.hint in (int, Int32):
        return st.one_of(st.integers(0, 9), st.sampled_from(["5", "6.0", 7.0, "1e2"]))
    return st.one_of(
        st.floats(-5, 5), st.integers(-5, 5), st.sampled_from(["NaN", "Infinity", "1.5", True])
    )


@st.composite
def bodies(draw: Any, cls: type[Message]) -> dict[str, Any]:
    fields = draw(st.permutations(fields_of(cls)))
    strangeness = draw(st.sampled_from([0, 0, 1, 3]))
    body: dict[str, Any] = {}
    for field in fields:
        if draw(st.integers(0, 9)) < 2:
            continue
        name = field.json_name if draw(st.integers(0, 9)) < strangeness else field.name
        if draw(st.integers(0, 9)) < strangeness:
            body[name] = draw(anything)
        elif field.repeated:
            body[name] = draw(st.lists(well_typed(field), max_size=3))
        else:
            body[name] = draw(well_typed(field))
    if strangeness:
        for key, value in draw(st.dictionaries(strange_keys, anything, max_size=2)).items():
            body[key] = value
        if draw(st.integers(0, 9)) == 0 and fields:
            body[fields[0].json_name] = draw(anything)
    return body


@st.composite
def raw_bodies(draw: Any, cls: type[Message]) -> Any:
    form = draw(st.sampled_from(["object"] * 12 + ["twice", "broken", "other", "thrice"]))
    if form == "broken":
        return draw(st.sampled_from([b"", b"{bad", b"null", b'""', b'"x"', b"[[]]", b"{} {}"]))
    value = draw(anything) if form == "other" else draw(bodies(cls))
    text = json.dumps(value)
    if form in ("twice", "thrice"):
        text = json.dumps(text)
    return (json.dumps(text) if form == "thrice" else text).encode()


@st.composite
def queries(draw: Any, cls: type[Message]) -> str:
    pairs: list[tuple[str, str]] = []
    for field in fields_of(cls):
        name = field.json_name if draw(st.integers(0, 9)) == 0 else field.name
        for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2, 3]))):
            value = draw(st.one_of(well_typed(field), scalars)) if field.message is None else "x"
            pairs.append((name, _encodable(str(value))))
    if draw(st.integers(0, 9)) == 0:
        pairs.append(("extra", "1"))
    return urlencode(pairs)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


# -- the comparison --------------------------------------------------------------------------------


def compare(
    cls: type[Message], method: str, handler: Any, query: str, body: bytes, content_type: str | None
) -> None:
    stock = stock_outcome(handler, method, query, body, content_type)
    ours = our_outcome(cls, method, query, body, content_type)
    if stock[0] == "crash":
        return  # a crash has no right answer; ours must only be no crash
    if stock[0] == "lenient":
        assert ours[0] == "error" or body.strip() == b"[]"
    else:
        assert ours == stock


@pytest.mark.parametrize(("cls", "method", "handler"), RPCS, ids=IDS)
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
