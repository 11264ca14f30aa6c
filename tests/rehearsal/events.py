"""What the events of events/ need to be there, and what is right to answer."""

from __future__ import annotations

import json
import os
from base64 import b64decode
from collections.abc import Callable
from typing import Any, NamedTuple

from mlcore.artifacts.local_folder_store import Folder
from mlcore.auth.passwords import hash_password
from mlcore.db import keys
from mlcore.db.table import table
from mlcore.entities.runs import Run
from mlcore.entities.webhooks import ACTIVE, EventName, Webhook
from mlcore.models.base import Item
from mlcore.repos import webhooks
from mlcore.repos.experiments import experiments
from mlcore.repos.runs.core import creations
from mlcore.repos.users import users
from mlcore.system_tables import landing_objects
from tests.engines import ROOT
from tests.receiver import Receiver

EVENTS = {
    # Not every machine resolves names.
    path.stem: json.loads(path.read_text().replace("https://example.com", "https://127.0.0.1"))
    for path in (ROOT / "events").glob("*.json")
}

RUN = "01M7YWVS7VNYH43R80BVKFQX3K"
"""The run of the stream's event, which others are about."""
EXPERIMENT = "7"
FILE = "MLmodel"

_HERE = {
    "MLFLOW_WEBHOOK_ALLOWED_SCHEMES": "http,https",
    "MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS": "true",
}
"""The receiver is on this machine."""

SETTINGS = {
    "demo": {"API_URL": "http://127.0.0.1:9"},
    "agent_tools": {"API_URL": "http://127.0.0.1:9"},
    "publisher": {"SYSTEM_TABLES_FOLDER": "/tmp/system-tables-of-nobody"},
    "authorizer": {"AUTHENTICATION": "basic"},
    "users": {"AUTHENTICATION": "basic"},
    "workspaces": {"MLFLOW_ENABLE_WORKSPACES": "true"},
    "webhooks": _HERE,
    "webhook_sender": _HERE,
}
"""What a function needs besides; all others let everybody in."""


class Expected(NamedTuple):
    body: Any
    """A part of the answer's body; of an answer without one, of the answer."""
    status: int = 200


IS_SHORT = {
    "name": "is_short",
    "value": True,
    "rationale": "4 words",
    "metadata": {},
    "source_id": "default",
    "error": None,
}

ANSWERS = {
    "authorize": Expected(
        {"isAuthorized": True, "context": {"username": "admin", "is_admin": True}}
    ),
    "create_evaluation_dataset": Expected({"dataset": {"name": "questions"}}),
    "create_experiment": Expected({"experiment_id": str}),
    "create_kubeflow_model": Expected(
        {
            "name": "sample-kubeflow-model",
            "state": "LIVE",
            "customProperties": {
                "accuracy": {"metadataType": "MetadataDoubleValue", "double_value": 0.95}
            },
        },
        201,
    ),
    "create_logged_model": Expected(
        {"model": {"info": {"name": "baseline", "experiment_id": "0"}}}
    ),
    "create_mcp_server": Expected({"name": "com.example/weather", "workspace": "default"}),
    "create_skill": Expected(
        {"name": "code-review", "organization": "acme", "latest_version": None}
    ),
    "create_registered_model": Expected(
        {"registered_model": {"name": "churn", "tags": [{"key": "team", "value": "retention"}]}}
    ),
    "create_gateway_budget": Expected(
        {"budget_policy": {"budget_amount": 100.0, "duration": {"unit": "MONTHS", "value": 1}}}
    ),
    "create_run": Expected(
        {"run": {"info": {"run_name": "baseline", "experiment_id": "0", "status": "RUNNING"}}}
    ),
    "create_user": Expected({"user": {"username": "ada", "is_admin": False}}),
    "create_webhook": Expected({"webhook": {"name": "chat", "status": "ACTIVE"}}),
    "create_workspace": Expected({"workspace": {"name": "team-a"}}, 201),
    "file_removal": Expected({"batchItemFailures": []}),
    # The demo calls the API that the function is part of, and there is none beside one function.
    "generate_demo": Expected({"error_code": "TEMPORARILY_UNAVAILABLE"}, 503),
    "list_agent_tools": Expected({"jsonrpc": "2.0", "id": 1}),
    "list_gateway_models": Expected({"object": "list", "data": []}),
    "get_run": Expected({"run": {"info": {"run_id": RUN, "experiment_id": "0"}}}),
    "graphql": Expected({"data": {"mlflowGetExperiment": {"experiment": {"experimentId": "0"}}}}),
    "begin_sign_in": Expected({"error_code": "ENDPOINT_NOT_FOUND"}),
    "health": Expected("OK"),
    "judge_job": Expected({"batchItemFailures": []}),
    "list_catalog_models": Expected({"items": [], "nextPageToken": "", "size": 0}),
    "load_catalog": Expected({"changed": False, "models": 0, "servers": 0, "errors": 0}),
    "land_changes": Expected({"batchItemFailures": []}),
    "list_artifacts": Expected({"files": [{"path": FILE, "is_dir": False, "file_size": 2}]}),
    "log_batch": Expected({}),
    # Nothing waits in a folder of its own, so the engines are not loaded.
    "publish_tables": Expected({}),
    "query_system_tables": Expected({"columns": ["runs"], "types": ["BIGINT"], "rows": list}),
    "run_code_scorer": Expected({"failure": None, "feedback": [IS_SHORT]}),
    "search_runs": Expected({"runs": [{"info": {"run_id": RUN}}]}),
    "start_trace": Expected(
        {"trace": {"trace_info": {"trace_id": "tr-0af7651916cd43dd8448eb211c80319c"}}}
    ),
    "table_stream": Expected({"batchItemFailures": []}),
    "webhook_delivery": Expected({"batchItemFailures": []}),
}


def prepare(folder: str, receiver: Receiver) -> None:
    """The experiment and run of the stream's event, a file, an administrator, and a webhook."""
    for record in EVENTS["table_stream"]["Records"]:
        image = record["dynamodb"]["NewImage"]
        if image["type"]["S"] == keys.EXPERIMENT.name and image["experiment_id"]["S"] == EXPERIMENT:
            table.put(image)
    default = experiments.get("0", "default").experiment
    creations.create(
        Run(
            run_id=RUN,
            experiment_id=default.experiment_id,
            run_name="prepared",
            user_id="ada",
            status="RUNNING",
            start_time=1,
            end_time=None,
            artifact_uri=f"{default.artifact_location}/{RUN}/artifacts",
            lifecycle_stage="active",
            metrics={},
            params={},
            tags={},
        ),
        default,
    )
    files = Folder(folder)
    files.put(f"0/{FILE}", b"{}")
    files.put(_removed(), b"{}")
    os.utime(files.files / _removed(), (0, 0))
    scheme, _, login = EVENTS["authorize"]["headers"]["authorization"].partition(" ")
    assert scheme == "Basic"
    username, _, password = b64decode(login).decode().partition(":")
    users.create(username, hash_password(password), is_admin=True)
    wanted = json.loads(EVENTS["webhook_delivery"]["Records"][0]["body"])
    entity, _, action = wanted["event"].partition(".")
    webhooks.put(
        Webhook(
            webhook_id=wanted["webhook_id"],
            workspace=wanted["workspace"],
            name="hook",
            url=receiver.url("/hook"),
            events=(EventName(entity, action),),
            status=ACTIVE,
            description="",
            sealed_secret="",
            creation_time=1,
            last_update_time=1,
        )
    )


def _removed() -> str:
    """The key of a file that is to go with its run."""
    key: str = json.loads(EVENTS["file_removal"]["Records"][0]["body"])["key"]
    return f"{key}/{FILE}"


def gone(_receiver: Receiver) -> bool:
    return Folder(os.environ["ARTIFACT_FOLDER"]).find(_removed()) is None


def indexed(_receiver: Receiver) -> bool:
    """Whether the experiment of the stream's event is found by its name's end."""
    items = table.query_all(keys.experiment(EXPERIMENT).pk, attributes=[Item.type])
    return keys.EXPERIMENT_NAME_REV.name in {item["type"]["S"] for item in items}


def delivered(receiver: Receiver) -> bool:
    wanted = json.loads(EVENTS["webhook_delivery"]["Records"][0]["body"])
    return [(delivery.event, delivery.body["data"]) for delivery in receiver.deliveries][:1] == [
        (wanted["event"], wanted["data"])
    ]


def landed(_receiver: Receiver) -> bool:
    """Whether the changes of the stream's event wait for the publisher."""
    return bool(landing_objects.waiting())


EFFECTS: dict[str, Callable[[Receiver], bool]] = {
    "file_removal": gone,
    "land_changes": landed,
    "table_stream": indexed,
    "webhook_delivery": delivered,
}
"""What an event brings about that its answer does not tell."""


def differences(name: str, answer: Any) -> list[str]:
    """What is not as it should be, in words."""
    expected = ANSWERS[name]
    body = answer
    if "statusCode" in answer:
        if answer["statusCode"] != expected.status:
            return [f"status {answer['statusCode']} instead of {expected.status}: {answer}"]
        body = answer["body"]
        if not isinstance(expected.body, str):
            body = json.loads(body)
    return list(_missing(expected.body, body, ""))


def _missing(expected: Any, actual: Any, path: str) -> list[str]:
    if isinstance(expected, type):
        return [] if isinstance(actual, expected) and actual else [f"{path}: {actual!r}"]
    if isinstance(expected, dict) and isinstance(actual, dict):
        return [
            text
            for key, value in expected.items()
            for text in _missing(value, actual.get(key), f"{path}.{key}")
        ]
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return [
            text
            for number, (wanted, given) in enumerate(zip(expected, actual, strict=True))
            for text in _missing(wanted, given, f"{path}[{number}]")
        ]
    return [] if expected == actual else [f"{path}: {actual!r} instead of {expected!r}"]
