"""What the fields of requests may hold, by their names; knows no rules of routes, sends nothing."""

from __future__ import annotations

import json
import random
from typing import Any, get_args

from mlcore.wire import Message
from mlcore.wire.message import fields_of
from mlcore.wire.scalars import Enum

MARKERS = {"a": "alpha7q", "b": "bravo7q"}
"""In every text that someone of a workspace writes."""

KINDS = {
    **dict.fromkeys(("experiment_id", "experiment_ids"), "experiment"),
    **dict.fromkeys(("run_id", "run_ids", "source_run_id"), "run"),
    **dict.fromkeys(("model_id", "path_model_id"), "model"),
    **dict.fromkeys(("trace_id", "trace_ids", "request_id", "request_ids"), "trace"),
    **dict.fromkeys(("webhook_id", "assessment_id", "upload_id", "role_id"), None),
    "role_permission_id": "permission",
    **dict.fromkeys(("item_id", "item_ids"), "trace"),
    **dict.fromkeys(("schema_id", "schema_ids"), "schema"),
    **{"dataset_id": "dataset", "queue_id": "queue", "issue_id": "issue"},
    **{"dataset_record_ids": "record", "scorer_ids": "scorer"},
}
CHOSEN_TRACES = 4
"""So many ids of traces clients choose; the server makes those of later numbers."""

FILTERS = {
    "/traces": ("", "trace.name LIKE '%7q%'", "tags.common LIKE '%7q%'", "trace.status = 'OK'"),
    "/runs": ("", "params.common LIKE '%7q%'", "metrics.common > 0", "run_name ILIKE '%7Q%'"),
    "/experiments": ("", "name LIKE '%7q%'", "tags.common LIKE '%7q%'"),
    "/logged-models": ("", "name LIKE '%7q%'", "tags.common != 'x'", "metrics.common > 0"),
    "/registered-models": ("", "name LIKE '%7q%'", "tags.common LIKE '%7q%'"),
    "/model-versions": ("", "name LIKE '%7q%'", "run_id = '⟦{0}⟧'", "name = '{1}-model-1'"),
}


class Values:
    """What one of the two workspaces puts into its requests.

    Args:
        me: whose calls.
        counts: how many of each kind each of the two has; whoever sends adds to it.
    """

    def __init__(
        self, me: str, rng: random.Random, counts: dict[tuple[str, str], int], hook_url: str
    ) -> None:
        self._me, self._rng, self._counts, self._hook_url = me, rng, counts, hook_url
        self._marker = MARKERS[me]
        self._numbers = 0
        self._route = ""

    # -- ids and names

    def _ref(self, kind: str) -> str:
        """Mostly one's own, mostly a new one."""
        other = "b" if self._me == "a" else "a"
        whose = other if self._rng.random() < 0.2 else self._me
        if kind == "trace" and "/assessments" in self._route:
            return f"⟦{whose}.trace.1⟧"
        count = self._counts.get((whose, kind), 0)
        if not count:
            return f"⟦{whose}.{kind}.0⟧"
        number = count if self._rng.random() < 0.5 else self._rng.randint(1, count)
        return f"⟦{whose}.{kind}.{number}⟧"

    def _name(self, kind: str, *, own: bool = False) -> str:
        foreign = not own and self._rng.random() < 0.15
        marker = MARKERS["b" if self._me == "a" else "a"] if foreign else self._marker
        return f"{marker}-{kind}-{self._rng.randint(1, 2)}"

    def _text(self) -> str:
        return f"{self._marker} text {self._rng.randint(1, 9)}"

    def _file(self) -> str:
        return self._rng.choice(("f", "f", "f", "d/f")) + f"-{self._marker}"

    def _path(self) -> str:
        whose = self._rng.choice("aab" if self._me == "a" else "bba")
        inside = f"⟦{whose}.experiment.1⟧/⟦{whose}.run.1⟧/artifacts/{self._file()}"
        if self._rng.random() < 0.3:
            whose = self._rng.choice("ab")
            inside = f"workspaces/⟦{whose}.workspace.1⟧/{inside}"
        return inside

    # -- messages

    def _fields(self, message: type[Message]) -> dict[str, Any]:
        results = {}
        for field in fields_of(message):
            if field.name in ("page_token", "run_uuid", "max_timestamp_millis", "max_traces"):
                continue
            required = "required" in repr(message.checks.get(field.name, "required"))
            if required or self._rng.random() < 0.8:
                value = self._value(field)
                if value is not None:
                    results[field.name] = value
        return results

    def _value(self, field: Any) -> Any:
        if "/issues" in self._route and field.name in ("status", "severity"):
            return None
        special = getattr(self, f"_of_{field.name}", None)
        if special is not None:
            return special()
        if field.name in KINDS:
            kind = KINDS[field.name] or field.name
            value: Any = self._ref(kind)
        elif field.name == "tags" and field.hint is str and field.message is None:
            value = json.dumps({"common": self._text()})
        elif field.message is not None:
            value = self._fields(field.message)
        elif extra := [argument for argument in get_args(field.hint) if isinstance(argument, Enum)]:
            names = [name for name in extra[0].by_number.values() if "UNSPECIFIED" not in name]
            value = self._rng.choice(names)
        elif field.hint is bool:
            value = self._rng.random() < 0.5
        elif field.hint is float:
            value = float(self._rng.randint(1, 9))
        elif field.hint is int or "int32" in str(field.hint):
            value = self._rng.randint(1, 9)
        elif str(field.hint).startswith("dict"):
            value = {"common": self._text(), self._marker: "x"}
        else:
            value = self._text()
        return [value] if field.repeated else value

    def _of_name(self) -> str:
        own = self._route.endswith(
            ("/create", "/logged-models", "/webhooks", "/issues", "/register")
        )
        own = own or "}" in self._route or "/roles/" in self._route
        own = own or self._route.endswith(("schemas/update", "queues/update", "/online-config"))
        if "/model-versions" in self._route:
            return self._name("model").replace("-2", "-1")
        if self._route.endswith(("/registered-models/delete", "/registered-models/rename")):
            return self._name("model").replace("-1", "-2")
        return self._name("model" if "registered-models" in self._route else "thing", own=own)

    def _of_issue_id(self) -> str:
        """Of a new issue one's own: an id that clients choose is one for the whole server, as on
        MLflow's, so a second issue with it is refused, wherever the first one is."""
        if self._route == "/3.0/mlflow/issues":
            return f"⟦{self._me}.issue.{self._counts.get((self._me, 'issue'), 0)}⟧"
        return self._ref("issue")

    def _of_new_name(self) -> str:
        return f"{self._name('renamed', own=True)}-{self._numbers}"

    def _of_experiment_name(self) -> str:
        return self._name("thing")

    def _of_run_name(self) -> str:
        return self._name("run", own=True)

    def _of_key(self) -> str:
        return self._rng.choice(("common", "common", "common", self._marker))

    _of_tag_key = _of_metric_key = _of_key

    def _of_alias(self) -> str:
        return f"{self._marker}-alias"

    def _of_version(self) -> str:
        return self._rng.choice(("1", "1", "2"))

    def _of_model_id(self) -> str | None:
        needed = "{model_id}" in self._route or "/logged-models" in self._route
        return self._ref("model") if needed or self._rng.random() < 0.2 else None

    def _of_stage(self) -> str:
        return self._rng.choice(("Production", "Staging"))

    def _of_stages(self) -> list[str]:
        return []

    def _of_filter(self) -> str:
        for part, texts in FILTERS.items():
            if part in self._route:
                chosen = self._rng.choice(texts)
                return chosen.replace("⟦{0}⟧", self._ref("run")).replace("{1}", self._marker)
        return ""

    _of_filter_string1 = _of_filter_string2 = _of_filter

    def _of_base_filter(self) -> str:
        return ""

    def _of_filters(self) -> list[str]:
        return []

    def _of_order_by(self) -> None:
        return None

    def _of_max_results(self) -> int:
        return 100

    def _of_timestamp(self) -> int:
        self._numbers += 1
        return 1_500_000_000_000 + self._numbers

    _of_timestamp_ms = _of_start_time = _of_end_time = _of_timestamp

    def _of_step(self) -> int:
        return self._rng.randint(0, 3)

    _of_start_step = _of_step

    def _of_end_step(self) -> int:
        return 9

    def _of_artifact_location(self) -> str | None:
        return None if self._rng.random() < 0.8 else f"s3://{self._marker}/x"

    def _of_source(self) -> Any:
        if "/traces" in self._route:
            return {"source_type": "HUMAN", "source_id": self._marker}
        if self._rng.random() < 0.7:
            return f"s3://{self._marker}/x"
        location = f"mlflow-artifacts:/{self._ref('experiment')}/{self._ref('run')}/artifacts/d"
        return self._rng.choice((location, f"runs:/{self._ref('run')}/d", self._model_uri()))

    def _model_uri(self) -> str:
        return f"models:/{self._ref('model')}"

    def _of_run_link(self) -> None:
        return None

    def _of_model_json(self) -> str:
        run = f"⟦{self._me}.run.1⟧"
        made = {"run_id": run, "artifact_path": self._marker, "utc_time_created": "2024"}
        return json.dumps({**made, "flavors": {}, "model_uuid": f"{self._numbers}"})

    def _of_deployment_job_id(self) -> None:
        return None

    _of_dataset_name = _of_dataset_digest = _of_deployment_job_id

    def _of_datasets(self) -> list[Any]:
        if "/logged-models" in self._route:
            return []
        dataset = {"name": self._name("data", own=True), "digest": "d", "source_type": "local"}
        return [{"dataset": {**dataset, "source": self._text()}, "tags": self._pairs()}]

    def _pairs(self) -> list[dict[str, str]]:
        return [{"key": "common", "value": self._text()}]

    def _of_events(self) -> list[Any]:
        return [
            {"entity": "REGISTERED_MODEL", "action": "CREATED"},
            {"entity": "MODEL_VERSION_TAG", "action": "SET"},
        ]

    def _of_event(self) -> Any:
        return self._of_events()[0]

    def _of_url(self) -> str:
        return f"{self._hook_url}/{self._marker}"

    def _of_secret(self) -> None:
        return None

    def _of_artifact_path(self) -> str:
        if "/mlflow/artifacts" in self._route:
            return self._file()
        return self._path()

    def _of_path(self) -> str:
        if "/mlflow/artifacts/list" in self._route:
            return self._rng.choice(("", "d"))
        if "/mlflow-artifacts/artifacts" in self._route:
            return self._rng.choice(("", "workspaces", self._path().rpartition("/")[0]))
        return self._file()

    def _of_artifact_directory_path(self) -> str:
        return self._rng.choice(("", "d"))

    def _of_num_parts(self) -> int:
        return 1

    def _of_expiration(self) -> int:
        return 60

    def _of_parts(self) -> list[Any]:
        return [{"part_number": 1, "etag": "x", "url": ""}]

    def _of_allow_deleted(self) -> str:
        return "true"

    # -- evaluation

    def _of_input(self) -> Any:
        return {"pass_fail": {"positive_label": self._marker, "negative_label": "no"}}

    def _of_serialized_scorer(self) -> str:
        return json.dumps({"name": self._marker})

    def _of_records(self) -> str:
        return json.dumps([{"inputs": {"question": self._text()}}])

    def _of_queue_type(self) -> str:
        return "CUSTOM"

    def _of_sample_rate(self) -> float:
        return 0.5

    def _of_filter_string(self) -> str:
        return ""

    # -- accounts

    def _of_username(self) -> str:
        return f"⟦{self._me}.user.1⟧"

    def _of_permission(self) -> str:
        return self._rng.choice(("READ", "EDIT", "MANAGE"))

    def _of_resource_type(self) -> str:
        return "experiment"

    def _of_resource_id(self) -> str:
        return self._ref("experiment")

    _of_resource_pattern = _of_resource_id

    def _of_workspace(self) -> str:
        return f"⟦{self._rng.choice('aaab' if self._me == 'a' else 'bbba')}.workspace.1⟧"

    # -- traces

    def _of_trace_location(self) -> Any:
        location = {"experiment_id": self._ref("experiment")}
        return {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": location}

    def _of_locations(self) -> list[Any]:
        return [self._of_trace_location()]

    def _of_trace_info(self) -> Any:
        tags = {"mlflow.traceName": self._name("trace", own=True), "common": self._text()}
        return {
            "trace_id": f"⟦{self._me}.trace.{self._numbers % CHOSEN_TRACES + 1}⟧",
            "trace_location": self._of_trace_location(),
            "request_time": "2026-01-01T00:00:00Z",
            "execution_duration": "1.5s",
            "request_preview": self._text(),
            "response_preview": self._text(),
            "state": "OK",
            "tags": tags,
            "trace_metadata": {"mlflow.trace.session": self._marker},
        }

    def _of_spans(self) -> None:
        return None

    def _of_assessment(self) -> Any:
        return {
            "assessment_name": self._marker,
            "trace_id": f"⟦{self._me}.trace.1⟧",
            "source": self._of_source(),
            "feedback": {"value": self._text()},
        }

    def _of_prompt_versions(self) -> list[Any]:
        return [{"name": self._name("model"), "version": "1"}]

    def _of_view_type(self) -> str:
        return "TRACES" if "/traces/metrics" in self._route else "ALL"

    def _of_run_view_type(self) -> str:
        return "ALL"

    def _of_metric_name(self) -> str:
        return "trace_count"

    def _of_aggregations(self) -> list[Any]:
        return [{"aggregation_type": "COUNT"}]

    def _of_dimensions(self) -> list[str]:
        return self._rng.choice(([], ["trace_name"], ["trace_status"]))

    def _of_time_interval_seconds(self) -> None:
        return None

    _of_start_time_ms = _of_end_time_ms = _of_time_interval_seconds
