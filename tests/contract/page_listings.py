"""Every route that gives a page token, and a user who makes three things that it lists."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final, NamedTuple

from mlcore.http.routes import Rpc
from mlcore.ids import now_ms
from mlcore.wire.message import fields_of
from tests.contract.owned_world import Call, OwnedWorld
from tests.contract.route_requests import REQUESTS
from tests.contract.route_world import BUDGET, DOMAINS, YES_NO, Fields, routes_of

SECRET: Final = "secret-31337"
"""In all texts of the owner."""
SECRET_VALUE: Final = 31337.0
_NUMBERS: Final = itertools.count(1)
_V3: Final = "/3.0/mlflow"
_OF_EXPERIMENT: Final = {"experiment_id": "{experiment}"}


class TeamWorld(OwnedWorld):
    """What a user makes in a workspace; ``marker`` is in its texts."""

    def __init__(self, caller: dict[str, Any], workspace: str, marker: str) -> None:
        super().__init__(caller, "basic")
        self.workspace, self.marker = workspace, marker
        self.ids: set[str] = set()
        number = next(_NUMBERS)
        self.names.update(marker=marker, key="k", number=str(number), organization="acme")
        experiment = self.made(
            "POST", "/2.0/mlflow/experiments/create", name="{marker} experiment {number}"
        )
        self.names["experiment"] = experiment["experiment_id"]
        run = self.made(
            "POST", "/2.0/mlflow/runs/create", experiment_id="{experiment}", run_name="{marker}"
        )
        self.names["run"] = run["run"]["info"]["run_id"]
        self.ids |= {self.names["run"]}

    def ask(self, call: Call, caller: dict[str, Any] | None = None) -> tuple[int, str]:
        headers = {"x-mlflow-workspace": self.workspace, **call.headers}
        return super().ask(call._replace(headers=headers), caller)

    def make(self, listing: Listing) -> None:
        """Makes one more thing that a listing has."""
        number = next(_NUMBERS)
        self.names["number"] = str(number)
        self.names["name"] = f"{self.marker}-{number}"
        listing.make(self)

    def page(
        self, listing: Listing, token: Any = None, owner: OwnedWorld | None = None
    ) -> tuple[int, str]:
        """Status and body of a page of one row, of what this user or another owner made."""
        names = owner or self
        method, path = listing.route.split()
        sent = {**listing.fields, "max_results": 1}
        if token is not None:
            sent["page_token"] = token
        filled = json.loads(names._filled(json.dumps(sent)))
        call = Call(self._route(method, path), names._filled(path), [*filled.items()])
        administers = listing.of_administrators and self.marker == SECRET
        return self.ask(call, self._administrator if administers else None)


class Listing(NamedTuple):
    route: str
    fields: Fields
    make: Callable[[TeamWorld], None]
    """Makes one thing that the listing has."""
    of_administrators: bool = False
    """Whether only administrators may list."""
    is_shared: bool = False
    """Whether every member of every workspace sees the same."""


def token_in(text: str) -> str:
    """The page token of an answer."""
    body = json.loads(text)
    return str(body.get("next_page_token") or "")


def pages(world: TeamWorld, listing: Listing, token: str = "") -> Iterator[tuple[str, str]]:
    """Bodies of all pages after a token, and the token that each gives."""
    seen: set[str] = set()
    while token not in seen:
        seen.add(token)
        status, text = world.page(listing, token or None)
        assert status == 200, (listing.route, token, status, text)
        token = token_in(text)
        yield text, token
        if not token:
            return
    raise AssertionError(f"{listing.route}: the pages do not end")


# -- things ----------------------------------------------------------------------------------------


def _made(world: TeamWorld, path: str, method: str = "POST", /, **fields: Any) -> dict[str, Any]:
    answer: dict[str, Any] = world.made(method, path, **fields)
    return answer


def _experiment(world: TeamWorld) -> None:
    _made(world, "/2.0/mlflow/experiments/create", name="{name}")


def _run(world: TeamWorld) -> None:
    run = _made(world, "/2.0/mlflow/runs/create", run_name="{name}", **_OF_EXPERIMENT)
    world.ids.add(run["run"]["info"]["run_id"])


def _deleted_run(world: TeamWorld) -> None:
    run = _made(world, "/2.0/mlflow/runs/create", run_name="{name}", **_OF_EXPERIMENT)
    world.ids.add(run["run"]["info"]["run_id"])
    _made(world, "/2.0/mlflow/runs/delete", run_id=run["run"]["info"]["run_id"])


def _point(world: TeamWorld) -> None:
    value = SECRET_VALUE if world.marker == SECRET else 1
    point = {"key": "m", "value": value, "timestamp": now_ms(), "step": int(world.names["number"])}
    _made(world, "/2.0/mlflow/runs/log-metric", run_id="{run}", **point)


def _logged_model(world: TeamWorld) -> None:
    made = _made(world, "/2.0/mlflow/logged-models", name="m{number}", **_OF_EXPERIMENT)
    world.ids.add(made["model"]["info"]["model_id"])


def _registered_model(world: TeamWorld) -> None:
    _made(world, "/2.0/mlflow/registered-models/create", name="{name}")
    _made(world, "/2.0/mlflow/model-versions/create", name="{name}", source="s3://b/x")


def _trace(world: TeamWorld) -> None:
    tags = [{"key": "mlflow.traceName", "value": "{name}"}]
    made = _made(world, "/2.0/mlflow/traces", tags=tags, timestamp_ms=now_ms(), **_OF_EXPERIMENT)
    world.names["trace"] = made["trace_info"]["request_id"]
    world.ids.add(world.names["trace"])


def _webhook(world: TeamWorld) -> None:
    events = [{"entity": "PROMPT", "action": "CREATED"}]
    url = "https://93.184.216.34/"
    _made(world, "/2.0/mlflow/webhooks", name="{name}", url=url, events=events)


def _alert(world: TeamWorld) -> None:
    alert = {"sql": "SELECT 1 AS x", "condition": "MAX(x) > 1"}
    _made(world, "/3.0/mlflow-serverless/alerts", name="{name}", **alert)


def _saved_query(world: TeamWorld) -> None:
    _made(world, "/3.0/mlflow-serverless/queries", name="{name}", sql="SELECT 1")


def _dataset(world: TeamWorld) -> None:
    made = _made(world, f"{_V3}/datasets/create", name="{name}", experiment_ids=["{experiment}"])
    world.names["dataset_id"] = made["dataset"]["dataset_id"]
    world.ids.add(world.names["dataset_id"])


def _record(world: TeamWorld) -> None:
    if "dataset_id" not in world.names:
        _dataset(world)
    records = json.dumps([{"inputs": {"q": world.names["name"]}}])
    _made(world, f"{_V3}/datasets/{{dataset_id}}/records", records=records)


def _label_schema(world: TeamWorld) -> None:
    schema = {"name": "{name}", "type": "FEEDBACK", "input": YES_NO}
    _made(world, f"{_V3}/label-schemas/create", **schema, **_OF_EXPERIMENT)


def _review_queue(world: TeamWorld) -> None:
    queue = {"name": "{name}", "queue_type": "CUSTOM", **_OF_EXPERIMENT}
    made = _made(world, f"{_V3}/review-queues/create", **queue)
    world.names["queue"] = made["review_queue"]["queue_id"]
    world.ids.add(world.names["queue"])


def _queue_item(world: TeamWorld) -> None:
    if "queue" not in world.names:
        _review_queue(world)
    _trace(world)
    items = {"queue_id": "{queue}", "item_type": "TRACE", "item_ids": ["{trace}"]}
    _made(world, f"{_V3}/review-queues/items/add", **items)


def _issue(world: TeamWorld) -> None:
    _made(world, f"{_V3}/issues", name="{name}", description="{marker}", **_OF_EXPERIMENT)


def _budget(world: TeamWorld) -> None:
    _made(world, f"{_V3}/gateway/budgets/create", **BUDGET)


def _guardrail(world: TeamWorld) -> None:
    if "scorer" not in world.names:
        scorer = {"name": "quality", "serialized_scorer": "{}", **_OF_EXPERIMENT}
        world.names["scorer"] = _made(world, f"{_V3}/scorers/register", **scorer)["scorer_id"]
    guardrail = REQUESTS[f"POST {_V3}/gateway/guardrails/create"]
    _made(world, f"{_V3}/gateway/guardrails/create", **{**guardrail, "name": "{name}"})


def _mcp_server(world: TeamWorld) -> None:
    world.names["name+"] = f"com.example/{world.names['name']}"
    _mcp_version(world)
    _mcp_endpoint(world)


def _mcp_version(world: TeamWorld) -> None:
    world.names.setdefault("name+", f"com.example/{world.names['name']}")
    world.names["version"] = f"{world.names['number']}.0.0"
    said = {"name": "{name+}", "version": "{version}", "description": "{marker}"}
    _made(world, f"{_V3}/mcp-servers/{{name+}}/versions", server_json=said)


def _mcp_endpoint(world: TeamWorld) -> None:
    if "version" not in world.names:
        _mcp_version(world)
    endpoint = {"url": "https://{number}.example/{marker}", "server_version": "{version}"}
    _made(world, f"{_V3}/mcp-servers/{{name+}}/endpoints", **endpoint)


def _skill(world: TeamWorld) -> None:
    source = {"source": "git://example.com/{marker}", "ref": "r{number}"}
    _made(world, f"{_V3}/skills/{{name}}/versions", **source)


def _skill_version(world: TeamWorld) -> None:
    name = world.names.setdefault("first skill", f"skill-{next(_NUMBERS)}")
    world.names["name"] = name
    source = {"source": "git://example.com/{marker}", "ref": "r{number}"}
    for path in ("{name}", "@{organization}/{name}"):
        _made(world, f"{_V3}/skills/{path}/versions", **source)


_TRACES: Final = {
    "locations": [
        {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "{experiment}"}}
    ]
}
_IDS: Final = {"experiment_ids": ["{experiment}"]}
LISTINGS: Final = (
    Listing(f"POST {_V3}/datasets/search", _IDS, _dataset),
    Listing(f"GET {_V3}/datasets/search", _IDS, _dataset),
    Listing(f"GET {_V3}/datasets/{{dataset_id}}/records", {}, _record),
    Listing(f"GET {_V3}/label-schemas/list", _OF_EXPERIMENT, _label_schema),
    Listing(f"GET {_V3}/review-queues/list", _OF_EXPERIMENT, _review_queue),
    Listing(f"GET {_V3}/review-queues/items/list", {"queue_id": "{queue}"}, _queue_item),
    Listing(f"POST {_V3}/issues/search", _OF_EXPERIMENT, _issue),
    Listing("POST /2.0/mlflow/experiments/search", {}, _experiment),
    Listing("GET /2.0/mlflow/experiments/search", {}, _experiment),
    Listing("GET /2.0/mlflow/experiments/list", {}, _experiment),
    Listing(f"GET {_V3}/gateway/budgets/list", {}, _budget, is_shared=True),
    Listing(f"GET {_V3}/gateway/guardrails/list", {}, _guardrail, of_administrators=True),
    Listing("POST /2.0/mlflow/logged-models/search", _IDS, _logged_model),
    Listing(f"GET {_V3}/mcp-servers", {}, _mcp_server),
    Listing(f"GET {_V3}/mcp-servers/endpoints", {}, _mcp_server),
    Listing(f"GET {_V3}/mcp-servers/{{name+}}/versions", {}, _mcp_version),
    Listing(f"GET {_V3}/mcp-servers/{{name+}}/endpoints", {}, _mcp_endpoint),
    Listing("GET /2.0/mlflow/registered-models/search", {}, _registered_model),
    Listing("GET /2.0/mlflow/registered-models/list", {}, _registered_model),
    Listing("GET /2.0/mlflow/model-versions/search", {}, _registered_model),
    Listing("POST /2.0/mlflow/runs/search", _IDS, _run),
    Listing("GET /2.0/mlflow/metrics/get-history", {"run_id": "{run}", "metric_key": "m"}, _point),
    Listing(f"GET {_V3}/skills", {}, _skill),
    Listing(f"GET {_V3}/skills/@{{organization}}/{{name}}/versions", {}, _skill_version),
    Listing(f"GET {_V3}/skills/{{name}}/versions", {}, _skill_version),
    Listing(f"POST {_V3}/traces/search", _TRACES, _trace),
    Listing("GET /2.0/mlflow/traces", _IDS, _trace),
    Listing("GET /2.0/mlflow/webhooks", {}, _webhook, of_administrators=True),
    Listing("GET /3.0/mlflow-serverless/alerts", {}, _alert),
    Listing("GET /3.0/mlflow-serverless/queries", {}, _saved_query),
    Listing("GET /3.0/mlflow-serverless/trash", _OF_EXPERIMENT, _deleted_run),
)
WITHOUT_PAGES: Final = {
    "GET /2.0/mlflow/artifacts/list": "gives no tokens",
    "GET /2.0/mlflow/logged-models/{model_id}/artifacts/directories": "gives no tokens",
    "POST /3.0/mlflow/traces/metrics": "gives no tokens",
    "POST /3.0/mlflow-serverless/activity": "test_activity.py",
}


def routes_with_tokens() -> set[str]:
    results = set()
    for domain in (*DOMAINS, "sql"):
        import_module(f"{domain}.app")
        for name, route in routes_of(domain).items():
            if isinstance(route, Rpc) and any(
                field.name == "page_token" for field in fields_of(route.message)
            ):
                results.add(name)
    return results
