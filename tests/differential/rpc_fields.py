"""Every field of every RPC with the values that it is given; sends nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.differential.rest import AJAX, Ref

ABSENT = object()
EXPERIMENT = Ref("experiment")
RUN = Ref("run")


class Variant(NamedTuple):
    """A value for one field. ``lenient`` where stock's parser drops it and acts on the rest."""

    value: Any
    lenient: bool = False


STRING = (
    *(Variant(value) for value in (ABSENT, None, "", " ", "x" * 300, "x" * 600, "é☃", "a/../b")),
    *(Variant(value, lenient=True) for value in (5, 1.5, True, ["x"], {"a": 1}, [])),
)
INTEGER = (
    *(
        Variant(value)
        for value in (ABSENT, None, 0, 1, -1, "12", "-3", 2.0, 2**31 - 1, 2**53 + 1, 2**63 - 1)
    ),
    *(
        Variant(value, lenient=True)
        for value in (-(2**63), "", "x", "1.5", 1.5, True, 2**63, [1], {}, " 5", "1_0")
    ),
)
DOUBLE = (
    *(
        Variant(value)
        for value in (
            ABSENT,
            None,
            0,
            -1.5,
            "1.5",
            "NaN",
            "Infinity",
            "-Infinity",
            True,
            1e308,
            5e-324,
        )
    ),
    *(Variant(value, lenient=True) for value in ("", "x", "nan", "inf", [1], {}, "1_0", " 1")),
)
MESSAGES = (
    *(Variant(value) for value in (ABSENT, [])),
    *(
        Variant(value, lenient=True)
        for value in (None, "", "x", 5, {}, {"key": "k"}, ["x"], [5], [None], [[]])
    ),
)
STATUS = (
    *(Variant(value) for value in (ABSENT, None, "FINISHED", "KILLED", 3, "3")),
    *(
        Variant(value, lenient=True)
        for value in ("", "BOGUS", "finished", 9, -1, 1.5, True, [], {})
    ),
)
VIEW = (
    *(
        Variant(value)
        for value in (ABSENT, None, "ACTIVE_ONLY", "DELETED_ONLY", "ALL", 1, 2, 3, "2")
    ),
    *(Variant(value, lenient=True) for value in ("bogus", "all", 9, 0, 1.5, [], {})),
)


class Field(NamedTuple):
    name: str
    variants: tuple[Variant, ...]


class Case(NamedTuple):
    """An RPC whose body ``valid`` succeeds; its ``fields`` are replaced one at a time.

    ``repeatable``: a second call on the same experiment and run means as much as the first.
    """

    path: str
    valid: dict[str, Any]
    fields: tuple[Field, ...]
    repeatable: bool = True


def strings(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, STRING) for name in names)


def integers(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, INTEGER) for name in names)


METRIC = {"key": "m", "value": 1.5, "timestamp": 3, "step": 4}
DATASET = {"name": "d", "digest": "1", "source_type": "local", "source": "s"}
POSTS = (
    Case(
        "experiments/create",
        {"name": "{unique}"},
        (*strings("name", "artifact_location"), Field("tags", MESSAGES)),
    ),
    Case(
        "experiments/update",
        {"experiment_id": EXPERIMENT, "new_name": "{unique}"},
        strings("experiment_id", "new_name"),
    ),
    Case("experiments/delete", {"experiment_id": EXPERIMENT}, strings("experiment_id"), False),
    Case("experiments/restore", {"experiment_id": EXPERIMENT}, strings("experiment_id"), False),
    Case(
        "experiments/set-experiment-tag",
        {"experiment_id": EXPERIMENT, "key": "k", "value": "v"},
        strings("experiment_id", "key", "value"),
    ),
    Case(
        "experiments/delete-experiment-tag",
        {"experiment_id": EXPERIMENT, "key": "k"},
        strings("experiment_id", "key"),
        repeatable=False,
    ),
    Case(
        "experiments/search",
        {"max_results": 3, "filter": "name LIKE 'fields-nothing-%'"},
        (
            *integers("max_results"),
            *strings("filter", "page_token"),
            Field("view_type", VIEW),
            Field("order_by", MESSAGES),
        ),
    ),
    Case(
        "runs/create",
        {"experiment_id": EXPERIMENT, "run_name": "n", "user_id": "u", "start_time": 7},
        (
            *strings("experiment_id", "run_name", "user_id"),
            *integers("start_time"),
            Field("tags", MESSAGES),
        ),
    ),
    Case(
        "runs/update",
        {"run_id": RUN, "run_name": "n", "status": "RUNNING", "end_time": 9},
        (
            *strings("run_id", "run_uuid", "run_name"),
            *integers("end_time"),
            Field("status", STATUS),
        ),
    ),
    Case("runs/delete", {"run_id": RUN}, strings("run_id"), False),
    Case("runs/restore", {"run_id": RUN}, strings("run_id")),
    Case(
        "runs/set-tag",
        {"run_id": RUN, "key": "k", "value": "v"},
        strings("run_id", "run_uuid", "key", "value"),
    ),
    Case("runs/delete-tag", {"run_id": RUN, "key": "k"}, strings("run_id", "key"), False),
    Case(
        "runs/log-parameter",
        {"run_id": RUN, "key": "k", "value": "v"},
        strings("run_id", "run_uuid", "key", "value"),
        repeatable=False,
    ),
    Case(
        "runs/log-metric",
        {"run_id": RUN, **METRIC},
        (
            *strings("run_id", "run_uuid", "key", "dataset_name", "dataset_digest"),
            *integers("timestamp", "step"),
            Field("value", DOUBLE),
        ),
    ),
    Case(
        "runs/log-batch",
        {
            "run_id": RUN,
            "metrics": [METRIC],
            "params": [{"key": "p", "value": "1"}],
            "tags": [{"key": "t", "value": "1"}],
        },
        (*strings("run_id"), *(Field(name, MESSAGES) for name in ("metrics", "params", "tags"))),
    ),
    Case(
        "runs/log-inputs",
        {"run_id": RUN, "datasets": [{"dataset": DATASET, "tags": [{"key": "a", "value": "b"}]}]},
        (*strings("run_id"), Field("datasets", MESSAGES), Field("models", MESSAGES)),
    ),
    Case(
        "runs/outputs",
        {"run_id": RUN, "models": [{"model_id": "m-1", "step": 1}]},
        (*strings("run_id"), Field("models", MESSAGES)),
        repeatable=False,
    ),
    Case(
        "runs/log-model",
        {
            "run_id": RUN,
            "model_json": '{"run_id":"r","artifact_path":"m","utc_time_created":"x","flavors":{}}',
        },
        strings("run_id", "model_json"),
    ),
    Case(
        "runs/search",
        {"experiment_ids": [EXPERIMENT], "max_results": 3},
        (
            *integers("max_results"),
            *strings("filter", "page_token"),
            *(Field(name, MESSAGES) for name in ("order_by", "experiment_ids")),
            Field("run_view_type", VIEW),
        ),
    ),
)
# The same inside the items of a list: (path, list, valid item, field, variants).
ITEMS = (
    *(
        ("runs/log-batch", "metrics", METRIC, name, kind)
        for name, kind in (
            ("key", STRING),
            ("value", DOUBLE),
            ("timestamp", INTEGER),
            ("step", INTEGER),
            ("dataset_name", STRING),
        )
    ),
    *(
        ("runs/log-batch", name, {"key": "k", "value": "v"}, field, STRING)
        for name in ("params", "tags")
        for field in ("key", "value")
    ),
    *(
        ("runs/outputs", "models", {"model_id": "m-1", "step": 1}, name, kind)
        for name, kind in (("model_id", STRING), ("step", INTEGER))
    ),
    *(
        ("experiments/create", "tags", {"key": "k", "value": "v"}, field, STRING)
        for field in ("key", "value")
    ),
)


QUERIES = (
    ("experiments/get", {"experiment_id": EXPERIMENT}),
    ("experiments/get-by-name", {"experiment_name": "Default"}),
    ("experiments/search", {"max_results": 3, "filter": "name = 'no such'", "view_type": "ALL"}),
    ("runs/get", {"run_id": RUN}),
    ("metrics/get-history", {"run_id": RUN, "metric_key": "m", "max_results": 3, "page_token": ""}),
    (
        "metrics/get-history-bulk-interval",
        {"run_ids": RUN, "metric_key": "m", "start_step": 0, "end_step": 9, "max_results": 3},
    ),
    (AJAX + "metrics/get-history-bulk", {"run_id": RUN, "metric_key": "m", "max_results": 3}),
)
TEXTS = (ABSENT, "", " ", "x", "98765432", "-1", "0", "1.5", "x" * 600, "é☃", ["x", "y"])
RAW = (
    b"",
    b"{",
    b"null",
    b"[]",
    b"[1]",
    b"5",
    b'"x"',
    b'"{}"',
    b"{}",
    b"\xff",
    b'{"a":NaN}',
    b'{"run_id":"{{run}}","run_id":"x"}',
    b'{"runId":"{{run}}"}',
    b'{"run_id":"{{run}}","runId":"{{run}}"}',
    b'"{\\"run_id\\":\\"{{run}}\\"}"',
    b'{"run_id":"{{run}}","nonsense":[{}]}',
)
