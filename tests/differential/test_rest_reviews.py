"""Label schemas and review queues."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.differential.calls import E, experiment
from tests.differential.pair import Pair
from tests.differential.rest import Call, Ref
from tests.differential.review_traces import V3, send, trace

pytestmark = pytest.mark.e2e
LONG = "x" * 300
YES_NO = {"pass_fail": {"positive_label": "yes", "negative_label": "no"}}
GONE = Ref("gone")


def read(path: str, **query: Any) -> Call:
    return Call("GET", V3 + path, query=query)


def deleted_experiment() -> list[Call]:
    deleting = Call("POST", "/api/2.0/mlflow/experiments/delete", {"experiment_id": GONE})
    return [experiment("gone"), deleting]


def schema(name: str = "good?", save: str = "schema", **fields: Any) -> Call:
    given = {"experiment_id": E, "name": name, "type": "FEEDBACK", "input": YES_NO, **fields}
    body = {key: value for key, value in given.items() if value is not None}
    saves = {save: "label_schema.schema_id"}
    return send("POST", "label-schemas/create", body, saves=saves)


def with_input(kind: str, **fields: Any) -> Call:
    return schema(f"{kind} {sorted(fields.items())}"[:200], "other", input={kind: fields})


def update(**fields: Any) -> Call:
    return send("PATCH", "label-schemas/update", {"schema_id": Ref("schema"), **fields})


def test_label_schemas(both: Pair) -> None:
    both.send_all(
        [
            experiment(),
            *deleted_experiment(),
            read("label-schemas/list", experiment_id=E),
            read("label-schemas/get-by-name", experiment_id=E, name="Feedback"),
            schema(instruction="look", enable_comment=True),
            schema(),
            schema("good?", type="EXPECTATION"),
            schema("Good?", "other", type="EXPECTATION"),
            *(
                schema(name, "none", **fields)
                for name, fields in (
                    ("", {}),
                    (LONG, {}),
                    ("feedback ", {}),
                    ("a", {"type": None}),
                    ("a", {"type": "LABEL_SCHEMA_TYPE_UNSPECIFIED"}),
                    ("a", {"input": None}),
                    ("a", {"input": {}}),
                    ("a", {"instruction": LONG * 4}),
                    ("a", {"experiment_id": "9" * 9}),
                    ("a", {"experiment_id": GONE}),
                    ("a", {"experiment_id": None}),
                )
            ),
            with_input("pass_fail"),
            with_input("pass_fail", positive_label="a", negative_label="a"),
            with_input("pass_fail", positive_label="a", negative_label=LONG),
            with_input("categorical", options=["a", "b"], multi_select=True),
            with_input("categorical", options=[]),
            with_input("categorical", options=["a", "a"]),
            with_input("categorical", options=["a", ""]),
            with_input("categorical", options=["a", LONG]),
            with_input("categorical", options=[str(number) for number in range(11)]),
            with_input("numeric"),
            with_input("numeric", min_value=1, max_value=2.5),
            with_input("numeric", min_value=2, max_value=2),
            with_input("text", max_length=5),
            with_input("text", max_length=0),
            read("label-schemas/get", schema_id=Ref("schema")),
            read("label-schemas/get", schema_id="ls-none"),
            read("label-schemas/get"),
            read("label-schemas/get-by-name", experiment_id=E, name="good?"),
            read("label-schemas/get-by-name", experiment_id=E, name="none"),
            read("label-schemas/get-by-name", experiment_id=GONE, name="none"),
            update(name="better?", instruction="look again", enable_comment=False),
            update(name="Good?"),
            update(name="FEEDBACK"),
            update(name=""),
            update(),
            update(schema_id="ls-none", name="x"),
            update(input={"pass_fail": {"positive_label": "j", "negative_label": "n"}}),
            update(input={"text": {}}),
            update(input={}),
            read("label-schemas/get", schema_id=Ref("schema")),
            schema("good?", "third"),
            *(
                read("label-schemas/list", experiment_id=E, max_results=most)
                for most in (0, 1, 50_001, "x")
            ),
            read("label-schemas/list", experiment_id=GONE),
            read("label-schemas/list"),
            send("DELETE", "label-schemas/delete", {"schema_id": Ref("schema")}),
            send("DELETE", "label-schemas/delete", {"schema_id": Ref("schema")}),
            send("DELETE", "label-schemas/delete", {}),
            read("label-schemas/get", schema_id=Ref("schema")),
            schema("better?"),
        ]
    )
    for side in (both.stock, both.product):
        listed = side.send(read("label-schemas/list", experiment_id=E)).body["label_schemas"]
        side.values["default"] = next(each["schema_id"] for each in listed if each["is_default"])
    both.send_all(
        [
            update(schema_id=Ref("default"), name="x"),
            send("DELETE", "label-schemas/delete", {"schema_id": Ref("default")}),
        ]
    )


def queue(name: str = "Friday", save: str = "queue", **fields: Any) -> Call:
    given = {"experiment_id": E, "name": name, "queue_type": "CUSTOM", **fields}
    body = {key: value for key, value in given.items() if value is not None}
    return send("POST", "review-queues/create", body, saves={save: "review_queue.queue_id"})


def in_queue(path: str, **fields: Any) -> Call:
    return send("POST", f"review-queues/{path}", {"queue_id": Ref("queue"), **fields})


def status(item_id: str, to: str, **fields: Any) -> Call:
    return in_queue("items/set-status", item_id=item_id, status=to, **fields)


def test_review_queues(both: Pair) -> None:
    one, two, elsewhere = (f"tr-{uuid4().hex}" for _ in range(3))
    shown = read("review-queues/items/list", queue_id=Ref("queue"))
    both.send_all(
        [
            experiment(),
            experiment("second"),
            *deleted_experiment(),
            schema(),
            schema(save="foreign", experiment_id=Ref("second")),
            *(trace(trace_id) for trace_id in (one, two)),
            trace(elsewhere, "second"),
            queue(users=[" Ann ", "bob", "ANN"], schema_ids=[Ref("schema")], created_by="me"),
            queue("FRIDAY"),
            *(
                queue(name, "none", **fields)
                for name, fields in (
                    ("", {}),
                    ("  ", {}),
                    (LONG, {}),
                    ("Default", {}),
                    ("a", {"queue_type": None}),
                    ("a", {"users": [""]}),
                    ("a", {"users": [LONG]}),
                    ("a", {"users": [f"u{number}" for number in range(11)]}),
                    ("a", {"schema_ids": [""]}),
                    ("a", {"schema_ids": ["ls-none"]}),
                    ("a", {"schema_ids": [Ref("foreign")]}),
                    ("a", {"experiment_id": "9" * 9}),
                    ("a", {"experiment_id": GONE}),
                    ("ann", {"queue_type": "USER", "users": ["bob"]}),
                    ("ann", {"queue_type": "USER", "schema_ids": [Ref("schema")]}),
                )
            ),
            queue("Carl", "carl", queue_type="USER"),
            *(
                send("POST", "review-queues/get-or-create-user", {"experiment_id": E, "user": user})
                for user in ("CARL", "dora", "dora", "friday", "")
            ),
            read("review-queues/get", queue_id=Ref("queue")),
            read("review-queues/get", queue_id="rq-none"),
            read("review-queues/get-by-name", experiment_id=E, name="friDAY"),
            read("review-queues/get-by-name", experiment_id=E, name="none"),
            *(
                in_queue("update", **fields)
                for fields in (
                    {},
                    {"name": "Monday", "new_owner": " Eve "},
                    {"name": "MONDAY"},
                    {"name": "carl"},
                    {"name": " "},
                    {"name": "default"},
                    {"new_owner": ""},
                    {"update_users": True, "users": ["zoe"]},
                    {"users": ["ignored"]},
                    {"update_schema_ids": True},
                    {"update_schema_ids": True, "schema_ids": ["ls-none"]},
                    {"update_schema_ids": True, "schema_ids": [Ref("schema")]},
                    {"queue_id": Ref("carl"), "name": "x"},
                    {"queue_id": "rq-none", "name": "x"},
                )
            ),
            read("review-queues/get", queue_id=Ref("queue")),
            queue("Friday", "again"),
            *(
                in_queue("items/add", **fields)
                for fields in (
                    {"item_ids": [one, f" {one} "], "item_type": "TRACE"},
                    {"item_ids": [one]},
                    {"item_ids": []},
                    {"item_ids": [" "]},
                    {"item_ids": [LONG]},
                    {"item_ids": [one, "tr-none", elsewhere]},
                    {"item_ids": [one], "queue_id": "rq-none"},
                )
            ),
            shown,
            in_queue("update", update_schema_ids=True),
            status(one, "COMPLETE"),
            status(one, "PENDING", completed_by="ann"),
            status(one, "COMPLETE", completed_by=" "),
            status(one, "COMPLETE", completed_by=LONG),
            status(one, "COMPLETE", completed_by=" Ann"),
            status(one, "COMPLETE", completed_by="bob"),
            status(one, "DECLINED", completed_by="bob"),
            status(two, "DECLINED", completed_by="bob"),
            status(one, "REVIEW_STATUS_UNSPECIFIED"),
            in_queue("items/set-status", item_id=one),
            in_queue("items/set-status", status="PENDING"),
            shown,
            *(
                read("review-queues/items/list", **{"queue_id": Ref("queue"), **query})
                for query in (
                    {"status": "DECLINED"},
                    {"status": "PENDING"},
                    {"max_results": 1},
                    {"max_results": 0},
                    {"queue_id": "rq-none"},
                )
            ),
            status(one, "PENDING"),
            *(
                read("review-queues/list", experiment_id=E, **query)
                for query in (
                    {"user": "ZOE"},
                    {"user": "nobody"},
                    {"item_id": one},
                    {"item_id": "tr-none"},
                    {"max_results": 1},
                    {"max_results": 0},
                )
            ),
            read("review-queues/list", experiment_id=GONE),
            in_queue("items/add", item_ids=[two]),
            in_queue("items/remove", item_ids=[one]),
            in_queue("items/remove", item_ids=[one]),
            in_queue("items/remove", item_ids=[]),
            shown,
            send("POST", "traces/delete-traces", {"experiment_id": E, "trace_ids": [two]}),
            shown,
            read("review-queues/list", experiment_id=E, item_id=two),
            status(two, "DECLINED", completed_by="bob"),
            in_queue("update", update_schema_ids=True, schema_ids=[Ref("schema")]),
            in_queue("delete"),
            in_queue("delete"),
            read("review-queues/get", queue_id=Ref("queue")),
            shown,
            queue("Monday"),
        ]
    )
