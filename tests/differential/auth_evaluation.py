"""The calls about evaluation in the matrix of permissions; sends nothing."""

from __future__ import annotations

from typing import Any

from tests.differential.rest import Call, Ref

V3 = "/api/3.0/mlflow/"
E = {"experiment_id": Ref("experiment")}
DATASET, QUEUE, ISSUE = "datasets/{{dataset}}", {"queue_id": Ref("queue")}, "issues/{{issue}}"
SCHEMA = {"schema_id": Ref("schema")}
YES_NO = {"pass_fail": {"positive_label": "yes", "negative_label": "no"}}


def send(method: str, path: str, body: Any = None, **more: Any) -> Call:
    return Call(method, V3 + path, {} if body is None else body, **more)


def read(path: str, **query: Any) -> Call:
    return Call("GET", V3 + path, query=query)


def evaluation_things(scene: object) -> list[Call]:
    """One thing of each kind in the scene's experiment."""
    queue = {**E, "name": "Friday", "queue_type": "CUSTOM"}
    return [
        send(
            "POST",
            "datasets/create",
            {"name": "d", "experiment_ids": [Ref("experiment")]},
            saves={"dataset": "dataset.dataset_id"},
        ),
        send("POST", "scorers/register", {**E, "name": "a/b", "serialized_scorer": "{}"}),
        send("POST", "scorers/register", {**E, "name": "a/b", "serialized_scorer": "{}"}),
        send(
            "POST",
            "label-schemas/create",
            {**E, "name": "good?", "type": "FEEDBACK", "input": YES_NO},
            saves={"schema": "label_schema.schema_id"},
        ),
        send("POST", "review-queues/create", queue, saves={"queue": "review_queue.queue_id"}),
        send(
            "POST",
            "review-queues/create",
            {**queue, "name": "Monday", "users": [str(scene).upper()]},
            saves={"assigned": "review_queue.queue_id"},
        ),
        send(
            "POST",
            "issues",
            {**E, "name": "n", "description": "d", "source_run_id": Ref("run")},
            saves={"issue": "issue.issue_id"},
        ),
    ]


def evaluation_calls(scene: object) -> list[Call]:
    here, assigned = {"experiment_ids": [Ref("experiment")]}, {"queue_id": Ref("assigned")}
    item = {"item_ids": [f"tr-{scene}"]}
    done = {"item_id": f"tr-{scene}", "status": "COMPLETE", "completed_by": "me"}
    scorer = {**E, "name": "a/b"}
    return [
        send("POST", "datasets/create", {"name": "d", **here}),
        send("POST", "datasets/create", {"name": "d"}),
        send("POST", "datasets/search", here),
        send("POST", "datasets/search"),
        read(DATASET),
        read("datasets/d-none"),
        send("PATCH", f"{DATASET}/tags", {"tags": '{"k": "v"}'}),
        send("DELETE", f"{DATASET}/tags/k"),
        send("POST", f"{DATASET}/records", {"records": '[{"inputs": {"q": 1}}]'}),
        read(f"{DATASET}/records"),
        send("DELETE", f"{DATASET}/records", {"dataset_record_ids": []}),
        read(f"{DATASET}/experiment-ids"),
        send("POST", f"{DATASET}/add-experiments", here),
        send("POST", f"{DATASET}/add-experiments", {"experiment_ids": ["0"]}),
        send("POST", f"{DATASET}/remove-experiments", {"experiment_ids": ["0"]}),
        send("DELETE", DATASET),
        read("scorers/get", **scorer),
        read("scorers/get", **E, name="none"),
        read("scorers/versions", **scorer),
        read("scorers/list", **E),
        send("DELETE", "scorers/delete", {**scorer, "version": 1}),
        send("POST", "scorers/register", {**scorer, "serialized_scorer": "{}"}),
        send("POST", "scorers/register", {**E, "name": "new", "serialized_scorer": "{}"}),
        send("DELETE", "scorers/delete", {**E, "name": "new"}),
        send("DELETE", "scorers/delete", scorer),
        read("label-schemas/get", **SCHEMA),
        read("label-schemas/get-by-name", **E, name="good?"),
        read("label-schemas/list", **E),
        send("PATCH", "label-schemas/update", {**SCHEMA, "instruction": "i"}),
        send(
            "POST",
            "label-schemas/create",
            {**E, "name": "better?", "type": "FEEDBACK", "input": YES_NO},
        ),
        send("DELETE", "label-schemas/delete", SCHEMA),
        *(
            call
            for queue in (QUEUE, assigned)
            for call in (
                read("review-queues/get", **queue),
                send("POST", "review-queues/items/add", {**queue, **item}),
                read("review-queues/items/list", **queue),
                send("POST", "review-queues/items/set-status", {**queue, **done}),
                send("POST", "review-queues/items/remove", {**queue, **item}),
                send("POST", "review-queues/update", {**queue, "update_users": True}),
                send("POST", "review-queues/update", {**queue, "new_owner": "me"}),
            )
        ),
        read("review-queues/get-by-name", **E, name="friday"),
        read("review-queues/list", **E),
        send("POST", "review-queues/get-or-create-user", {**E, "user": "me"}),
        send("POST", "review-queues/create", {**E, "name": "Sunday", "queue_type": "CUSTOM"}),
        send("POST", "review-queues/create", {**E, "name": "ADMIN", "queue_type": "CUSTOM"}),
        send("POST", "review-queues/delete", QUEUE),
        read(ISSUE),
        send("POST", "issues", {**E, "name": "n", "description": "d"}),
        send("PATCH", ISSUE, {"issue_id": Ref("issue"), "name": "o"}),
        send("POST", "issues/search", E),
        send("POST", "issues/search", {**E, "filter_string": "source_run_id = 'r'"}),
        send("POST", "issues/search"),
    ]
