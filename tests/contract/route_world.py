"""Sends requests to the product's routes by their names, such as ``GET /2.0/mlflow/runs/get``, and
makes what they are about; knows no rule."""

from __future__ import annotations

import itertools
import json
from base64 import b64decode
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlencode

import pytest

from catalog_loader.file_store import FolderFiles
from catalog_loader.loading import load
from mlcore.auth.passwords import SERVICE_ACCOUNT_HASH, hash_password
from mlcore.environment import AUTHENTICATION
from mlcore.http import PlainRoute, lambda_handler
from mlcore.http.routes import Route
from mlcore.ids import now_ms
from mlcore.repos.evaluation import jobs
from mlcore.repos.users import api_keys, scim_groups, scim_users, users
from tests.contract import stored_job
from tests.contract.catalog_api import FILES
from tests.contract.logins import ADMIN
from tests.contract.stored_job import optimization_job
from tests.contract.trace_calls import resource_spans, span

Fields = dict[str, Any]

DOMAINS: Final = (
    *("artifacts", "catalog", "evaluation", "experiments", "gateway", "logged_models"),
    *("mcp_servers", "registry", "runs", "server_info", "skills", "traces", "ui", "users"),
    *("webhooks", "workspaces"),
)
KEY: Final = {"key": "k"}
TAG: Final = {**KEY, "value": "v"}
ASSESSMENT: Final = {
    "assessment_name": "good",
    "trace_id": "{trace}",
    "source": {"source_type": "HUMAN", "source_id": "me"},
    "feedback": {"value": 1},
}
WEBHOOK: Final = {
    "name": "hook",
    "url": "https://93.184.216.34/",
    "events": [{"entity": "PROMPT", "action": "CREATED"}],
}
BUDGET: Final = {
    "budget_unit": "USD",
    "budget_amount": 5,
    "duration": {"unit": "DAYS", "value": 1},
    "target_scope": "GLOBAL",
    "budget_action": "ALERT",
}
GUARDRAIL: Final = {
    "name": "guard",
    "scorer_id": "{scorer}",
    "scorer_version": 1,
    "stage": "BEFORE",
    "action": "VALIDATION",
}
YES_NO: Final = {"pass_fail": {"positive_label": "yes", "negative_label": "no"}}
PASSWORD: Final = "password-of-some-length"
TRACES: Final = "/2.0/mlflow/traces"
_JSON: Final = {"content-type": "application/json", "host": "localhost"}
_NUMBERS: Final = itertools.count(1)
_NOW: Final = now_ms()


def routes_of(domain: str) -> dict[str, Route]:
    """The routes of a domain by name, each once: those that are other spellings are left out."""
    app = import_module(f"{domain}.app")
    listed: tuple[Route, ...] = (*getattr(app, "RPCS", ()), *getattr(app, "PLAIN_ROUTES", ()))
    return {
        f"{route.method} {route.path}": route
        for route in listed
        if not getattr(route, "twin_of", "")
    }


class World:
    """``names`` are what requests may call ``{name}``; ``prepare`` makes new ones."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.caller: dict[str, Any] = {}  # what the authorizer says; empty without a login
        self.headers: dict[str, str] = {}
        self._domains = {name: domain for domain in DOMAINS for name in routes_of(domain)}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(AUTHENTICATION, "basic")
            app = import_module("users.app")
            self._users = lambda_handler(app.RPCS, app.PLAIN_ROUTES)

    def send(self, method: str, path: str, fields: Fields) -> tuple[int, Any]:
        """Status and body of the answer to a request of a route, whose path is given as its table
        has it. An administrator asks what is about users."""
        domain = self._domains[f"{method} {path}"]
        route = routes_of(domain)[f"{method} {path}"]
        prefix = "/api"
        if isinstance(route, PlainRoute):
            prefix = ""
        elif route.ajax_only:
            prefix = "/ajax-api"
        experiment = self.names.get("experiment", "")
        event: Fields = {
            "version": "2.0",
            "rawPath": prefix + self._filled(path),
            "rawQueryString": "",
            "headers": {**_JSON, "x-mlflow-experiment-id": experiment, **self.headers},
            "requestContext": {"http": {"method": method}, "requestId": "test"},
            "isBase64Encoded": False,
        }
        if self.caller:
            event["requestContext"]["authorizer"] = self.caller
        sent = json.loads(self._filled(json.dumps(fields)))
        if method == "GET" or "upload-artifact" in path:
            event["rawQueryString"] = urlencode(sent, doseq=True)
        if method != "GET":
            event["body"] = json.dumps(sent)
        handler = import_module(f"{domain}.app").handler
        if domain == "users":
            event["requestContext"].setdefault("authorizer", ADMIN)
            handler = self._users
        answer = handler(event, None)
        text = answer.get("body") or "{}"
        if answer["isBase64Encoded"]:
            return answer["statusCode"], b64decode(text)
        return answer["statusCode"], json.loads(text) if text.startswith("{") else text

    def made(self, method: str, path: str, **fields: Any) -> Any:
        status, body = self.send(method, path, fields)
        assert status in {200, 201}, (path, body)
        return body

    def _filled(self, text: str) -> str:
        for name, value in self.names.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    def prepare(self, domain: str = "") -> None:
        """An experiment with a run, and one of everything that routes of the domain are about;
        without one what ``test_sent_twice`` needs."""
        number = next(_NUMBERS)
        self.names.update(
            {"workspace_name": "other", "key": "ttl_policy", "artifact_path+": "a", "reader": "r"}
        )
        self.names["experiment_name"] = f"experiment {number}"
        self.names["name"] = f"model-{number}"
        self.made("GET", "/2.0/mlflow/experiments/get", experiment_id="0")  # makes it
        made = self.made("POST", "/2.0/mlflow/experiments/create", name="{experiment_name}")
        self.names["experiment"] = made["experiment_id"]
        run = self.made("POST", "/2.0/mlflow/runs/create", experiment_id="{experiment}")
        self.names["run"] = run["run"]["info"]["run_id"]
        parts: dict[str, tuple[Callable[[], None], ...]] = {
            "": (
                *(self._model, self._trace, self._webhook, self._mcp_server, self._deleted_run),
                *(self._saved_query, self._alert),
            ),
            "artifacts": (self._logged_model, self._files),
            "catalog": (self._catalog,),
            "evaluation": (self._trace, self._evaluation),
            "experiments": (self._deleted_experiment,),
            "gateway": (self._scorer, self._gateway),
            "logged_models": (self._logged_model,),
            "mcp_servers": (self._mcp_server,),
            "registry": (self._model,),
            "runs": (self._logged_model, self._logged, self._deleted_run),
            "skills": (self._skill,),
            "traces": (self._trace,),
            "users": (self._model, self._scorer, self._user),
            "webhooks": (self._webhook,),
            "workspaces": (self._setting, self._deleted_run, self._saved_query, self._alert),
        }
        for part in parts.get(domain, ()):
            part()

    def _model(self) -> None:
        version = {"name": "{name}", "source": "s3://b/x", "tags": [TAG]}
        self.made("POST", "/2.0/mlflow/registered-models/create", name="{name}", tags=[TAG])
        self.made("POST", "/2.0/mlflow/model-versions/create", **version)
        alias = {"name": "{name}", "alias": "champion", "version": "1"}
        self.made("POST", "/2.0/mlflow/registered-models/alias", **alias)

    def _trace(self) -> None:
        made = self.made("POST", TRACES, experiment_id="{experiment}", tags=[TAG])
        trace_id = made["trace_info"]["request_id"]
        self.names.update(trace=trace_id, trace_id=trace_id, request_id=trace_id)
        assessments = "/3.0/mlflow/traces/{trace_id}/assessments"
        assessment = self.made("POST", assessments, assessment=ASSESSMENT)["assessment"]
        self.names["assessment_id"] = assessment["assessment_id"]
        another = self.made("POST", TRACES, experiment_id="{experiment}")
        self.names["new_trace"] = another["trace_info"]["request_id"]
        spanned = f"{next(_NUMBERS):032x}"
        self.made("POST", "/v1/traces", **resource_spans([span(spanned, 1)]))
        self.names["spanned_trace"] = f"tr-{spanned}"

    def _webhook(self) -> None:
        webhook = self.made("POST", "/2.0/mlflow/webhooks", **WEBHOOK)["webhook"]
        self.names["webhook_id"] = webhook["webhook_id"]

    def _logged_model(self) -> None:
        tags, params = [TAG], [{"key": "q", "value": "1"}]
        made = self.made(
            "POST",
            "/2.0/mlflow/logged-models",
            experiment_id="{experiment}",
            tags=tags,
            params=params,
        )
        model = made["model"]["info"]["model_id"]
        self.names.update(model=model, model_id=model, path_model_id=model, tag_key="k")

    def _logged(self) -> None:
        self.made(
            "POST",
            "/2.0/mlflow/runs/log-batch",
            run_id="{run}",
            metrics=[{"key": "m", "value": n, "timestamp": n, "step": n} for n in range(3)],
            params=[{"key": "p", "value": "1"}],
            tags=[TAG],
        )

    def _deleted_run(self) -> None:
        run = self.made("POST", "/2.0/mlflow/runs/create", experiment_id="{experiment}")
        self.names["deleted_run"] = run["run"]["info"]["run_id"]
        self.made("POST", "/2.0/mlflow/runs/delete", run_id="{deleted_run}")

    def _deleted_experiment(self) -> None:
        path, name = "/2.0/mlflow/experiments", "gone {experiment}"
        self.made("POST", f"{path}/set-experiment-tag", experiment_id="{experiment}", **TAG)
        made = self.made("POST", f"{path}/create", name=name)
        self.names["deleted_experiment"] = made["experiment_id"]
        self.made("POST", f"{path}/delete", experiment_id="{deleted_experiment}")

    def _files(self) -> None:
        of_run = self._filled("{experiment}/{run}/artifacts")
        for folder in (self._filled("{experiment}/models/{model}/artifacts"), of_run):
            self.names["artifact_path+"] = f"{folder}/a.txt"
            self.made("PUT", "/api/2.0/mlflow-artifacts/artifacts/{artifact_path+}", text="a")
        source = {"source": f"mlflow-artifacts:/{of_run}", "run_id": "{run}"}
        self.made("POST", "/2.0/mlflow/registered-models/create", name="filed {name}")
        self.made("POST", "/2.0/mlflow/model-versions/create", name="filed {name}", **source)

    def _catalog(self) -> None:
        with TemporaryDirectory() as folder:
            for name, text in FILES.items():
                Path(folder, name).write_text(text)
            load(FolderFiles(folder), force=True)
        self.names.update({"source_id": "open", "model_name+": "org/Alpha", "tool_name": "search"})
        listed = self.made("GET", "/api/mcp_catalog/v1/mcp_servers", name="forge")
        self.names["server_id"] = listed["items"][0]["id"]

    def _scorer(self) -> None:
        scorer = {"experiment_id": "{experiment}", "name": "quality", "serialized_scorer": "{}"}
        made = self.made("POST", "/3.0/mlflow/scorers/register", **scorer)
        self.names["scorer"] = made["scorer_id"]

    def _mcp_server(self) -> None:
        server = f"com.example/{self.names['name']}"
        self.names.update({"name+": server, "version+": "1.0.0", "key+": "k", "alias+": "champion"})
        path = "/3.0/mlflow/mcp-servers/{name+}"
        for number in ("1.0.0", "2.0.0"):
            server_json = {"name": server, "version": number}
            self.made("POST", f"{path}/versions", server_json=server_json)
        self.made("POST", f"{path}/tags", **TAG)
        self.made("POST", f"{path}/versions/{{version+}}/tags", **TAG)
        self.made("POST", f"{path}/aliases", alias="champion", version="1.0.0")
        endpoint = {"url": "https://a", "server_alias": "champion"}
        self.names["endpoint_id"] = self.made("POST", f"{path}/endpoints", **endpoint)["id"]

    def _skill(self) -> None:
        number = next(_NUMBERS)
        self.names.update({"name": f"skill-{number}-of-tests", "organization": "acme"})
        self.names.update({"version": "1", "alias": "champion", "key+": "k"})
        for skill in ("{name}", "@{organization}/{name}"):
            path = f"/3.0/mlflow/skills/{skill}"
            for ref in ("one", "two"):
                source = {"source": "git://example.com/a", "ref": ref, "status": "draft"}
                self.made("POST", f"{path}/versions", **source)
            self.made("POST", f"{path}/tags", **TAG)
            self.made("POST", f"{path}/versions/{{version}}/tags", **TAG)
            self.made("POST", f"{path}/aliases", alias="champion", version=1)

    def _gateway(self) -> None:
        path = "/3.0/mlflow/gateway"
        secret = {"secret_name": "key {name}", "secret_value": {"api_key": "sk-abcdefghijkl"}}
        made = self.made("POST", f"{path}/secrets/create", **secret)
        self.names["secret"] = made["secret"]["secret_id"]
        for name in ("definition", "other_definition"):
            definition = {"name": f"{name} {{name}}", "secret_id": "{secret}", "provider": "openai"}
            made = self.made(
                "POST", f"{path}/model-definitions/create", **definition, model_name="gpt-4o"
            )
            self.names[name] = made["model_definition"]["model_definition_id"]
        models = [{"model_definition_id": "{definition}", "linkage_type": "PRIMARY"}]
        endpoint = {"name": "{name}", "model_configs": models, "experiment_id": "{experiment}"}
        made = self.made("POST", f"{path}/endpoints/create", **endpoint)
        self.names["endpoint"] = made["endpoint"]["endpoint_id"]
        self.made("POST", f"{path}/endpoints/set-tag", endpoint_id="{endpoint}", **TAG)
        bound = {"endpoint_id": "{endpoint}", "resource_type": "scorer", "resource_id": "r"}
        self.made("POST", f"{path}/endpoints/bindings/create", **bound)
        made = self.made("POST", f"{path}/budgets/create", **BUDGET)
        self.names["budget"] = made["budget_policy"]["budget_policy_id"]
        for name in ("guardrail", "other_guardrail"):
            made = self.made("POST", f"{path}/guardrails/create", **GUARDRAIL)
            self.names[name] = made["guardrail"]["guardrail_id"]
        added = {"endpoint_id": "{endpoint}", "guardrail_id": "{guardrail}"}
        self.made("POST", f"{path}/guardrails/add-to-endpoint", **added)

    def _evaluation(self) -> None:
        self._scorer()
        of_experiment = {"experiment_id": "{experiment}"}
        made = self.made("POST", "/2.0/mlflow/experiments/create", name="other {experiment}")
        self.names["other_experiment"] = made["experiment_id"]
        dataset = self.made(
            "POST",
            "/3.0/mlflow/datasets/create",
            name="d",
            experiment_ids=["{experiment}"],
            tags=json.dumps({"k": "v"}),
        )
        self.names.update(dataset_id=dataset["dataset"]["dataset_id"], key="k")
        path = "/3.0/mlflow/datasets/{dataset_id}/records"
        records = json.dumps([{"inputs": {"q": "1"}}])
        self.made("POST", path, records=records)
        stored = json.loads(self.made("GET", path)["records"])
        self.names["record"] = stored[0]["dataset_record_id"]
        schema = {**of_experiment, "name": "good", "type": "FEEDBACK", "input": YES_NO}
        made = self.made("POST", "/3.0/mlflow/label-schemas/create", **schema)
        self.names["schema"] = made["label_schema"]["schema_id"]
        queue = {**of_experiment, "name": "queue", "queue_type": "CUSTOM"}
        made = self.made("POST", "/3.0/mlflow/review-queues/create", **queue)
        self.names["queue"] = made["review_queue"]["queue_id"]
        items = {"queue_id": "{queue}", "item_type": "TRACE", "item_ids": ["{trace}"]}
        self.made("POST", "/3.0/mlflow/review-queues/items/add", **items)
        issue = {**of_experiment, "name": "slow", "description": "d"}
        made = self.made("POST", "/3.0/mlflow/issues", **issue)
        self.names["issue_id"] = made["issue"]["issue_id"]
        self.names["job_id"] = jobs.new_id()
        stored_job.store(optimization_job(self.names["job_id"], self.names))

    def _user(self) -> None:
        self.names["user"] = f"ann-{self.names['experiment']}"
        self.names["holder"] = f"ben-{self.names['experiment']}"
        for name in ("user", "holder"):
            users.create(self.names[name], hash_password(PASSWORD), is_admin=False)
        if not any(profile.user.username == "admin" for profile in users.find_all()):
            users.create("admin", "", is_admin=True)
        provisioned = scim_users.find_named(self.names["user"])
        self.names["scim_id"] = "" if provisioned is None else provisioned.scim_id
        group = scim_groups.create(self.names["user"], None, ())
        self.names["group_id"] = group.group_id
        self.names["robot"] = f"robot-{self.names['experiment']}"
        robot = users.create(self.names["robot"], SERVICE_ACCOUNT_HASH, is_admin=False)
        self.names["key_id"] = api_keys.create(robot, "nightly", "default", None, None).key.key_id
        role = {"name": "role {experiment}", "workspace": "default"}
        made = self.made("POST", "/3.0/mlflow/roles/create", **role)
        self.names["role"] = str(made["role"]["id"])
        permission = {
            "role_id": "{role}",
            "resource_type": "experiment",
            "resource_pattern": "{experiment}",
            "permission": "READ",
        }
        made = self.made("POST", "/3.0/mlflow/roles/permissions/add", **permission)
        self.names["role_permission"] = str(made["role_permission"]["id"])
        self.made("POST", "/3.0/mlflow/roles/assign", username="{holder}", role_id="{role}")
        for kind, resource in (
            ("experiment", "{experiment}"),
            ("registered_model", "{name}"),
            ("scorer", "{experiment}/quality"),
        ):
            self.made(
                "POST",
                "/3.0/mlflow/users/permissions/grant",
                username="{holder}",
                resource_type=kind,
                resource_id=resource,
                permission="READ",
            )

    def _setting(self) -> None:
        setting = {"value": {"traces": "30d"}}
        self.made("PUT", "/3.0/mlflow-serverless/config/{key}", **setting)
        granted = {"username": "{reader}", "workspaces": ["*"]}
        self.made("PUT", "/3.0/mlflow-serverless/system-tables/readers", **granted)

    def _saved_query(self) -> None:
        self.made("POST", "/3.0/mlflow-serverless/queries", name="{name}", sql="SELECT 1")

    def _alert(self) -> None:
        alert = {"name": "{name}", "sql": "SELECT 1 AS x", "condition": "MAX(x) > 1"}
        made = self.made("POST", "/3.0/mlflow-serverless/alerts", **alert)
        self.names["alert_id"] = made["alert"]["alert_id"]
