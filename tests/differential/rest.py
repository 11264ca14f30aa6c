"""Calls, replies, and one server that is called; owns what of a reply is compared."""

from __future__ import annotations

import contextlib
import http.client
import json
import math
import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

API = "/api/2.0/mlflow/"
AJAX = "/ajax-api/2.0/mlflow/"


class Reply(NamedTuple):
    """``body`` is decoded JSON, or the text where it is none."""

    status: int
    body: Any

    @property
    def code(self) -> str:
        return str(self.body.get("error_code", "")) if isinstance(self.body, dict) else ""

    @property
    def message(self) -> str:
        return str(self.body.get("message", "")) if isinstance(self.body, dict) else ""


class Ref(NamedTuple):
    """Stands in a request for a value that an earlier reply gave, such as an id."""

    name: str


class Call(NamedTuple):
    """One HTTP call, the same for both servers apart from its Refs.

    ``{{name}}`` in the path stands for a saved value. ``raw`` replaces the JSON body. ``saves``
    maps a name for later Refs to a path in the reply. ``permits`` names rows of PERMITTED that
    hold for this call besides those that always do.
    """

    method: str
    path: str
    body: Any = None
    query: Mapping[str, Any] | None = None
    raw: bytes | None = None
    content_type: str | None = "application/json"
    saves: Mapping[str, str] | None = None
    permits: frozenset[str] = frozenset()
    workspace: str | None = None
    """Value of the header that names one; None for no header."""

    def __str__(self) -> str:
        shown = self.raw if self.raw is not None else json.dumps(self.body, default=str)
        where = "" if self.workspace is None else f"[{self.workspace}] "
        return shortened(
            f"{where}{self.method} {self.path} {dict(self.query or {})} {shown!s:.400}"
        )


def post(path: str, body: Any = None, **more: Any) -> Call:
    return Call("POST", API + path, {} if body is None else body, **more)


def delete(path: str, body: Any = None, **more: Any) -> Call:
    return Call("DELETE", API + path, {} if body is None else body, **more)


def patch(path: str, body: Any = None, **more: Any) -> Call:
    return Call("PATCH", API + path, {} if body is None else body, **more)


def get(path: str, more: Mapping[str, Any] | None = None, /, **query: Any) -> Call:
    return Call("GET", API + path, query={**query, **(more or {})})


class Side:
    """One of the two servers and the ids that it gave."""

    def __init__(self, url: str) -> None:
        host = url.removeprefix("http://").rstrip("/")
        self._connection = http.client.HTTPConnection(host, timeout=60)
        self.values: dict[str, Any] = {}
        self.login: tuple[str, str] | None = None
        self._labels: dict[str, str] = {}

    def close(self) -> None:
        self._connection.close()

    def send(self, call: Call) -> Reply:
        path = call.path
        for name, value in self.values.items():
            path = path.replace("{{" + name + "}}", str(value))
        if call.query:
            path += "?" + urlencode(self.resolved(call.query), doseq=True)
        data: bytes | None = None
        headers = {}
        if call.raw is not None:
            data = call.raw
            for name, value in self.values.items():
                data = data.replace(b"{{%s}}" % name.encode(), str(value).encode())
        elif call.body is not None:
            data = json.dumps(self.resolved(call.body)).encode()
        if data is not None and call.content_type:
            headers["Content-Type"] = call.content_type
        if call.workspace is not None:
            headers["X-MLFLOW-WORKSPACE"] = call.workspace
        if self.login:
            headers["Authorization"] = "Basic " + b64encode(":".join(self.login).encode()).decode()
        with contextlib.suppress(http.client.HTTPException, OSError):
            return self._exchange(call, path, data, headers)
        self._connection.close()  # a kept connection that the server has closed meanwhile
        return self._exchange(call, path, data, headers)

    def _exchange(
        self, call: Call, path: str, data: bytes | None, headers: dict[str, str]
    ) -> Reply:
        self._connection.request(call.method, path, body=data, headers=headers)
        response = self._connection.getresponse()
        text = response.read().decode("utf-8", "replace")
        try:
            body = json.loads(text)
        except ValueError:
            body = text
        reply = Reply(response.status, body)
        if reply.status == 200:
            for name, where in (call.saves or {}).items():
                self.values[name] = _found(body, where)
        return reply

    def resolved(self, value: Any) -> Any:
        if isinstance(value, Ref):
            return self.values[value.name]
        if isinstance(value, Mapping):
            return {key: self.resolved(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self.resolved(part) for part in value]
        return value

    def label(self, kind: str, value: str) -> str:
        """The same label for the same id, numbered in the order in which this side showed them."""
        if value in self._labels:
            return self._labels[value]
        number = sum(known.startswith(f"<{kind} ") for known in self._labels.values()) + 1
        self._labels[value] = f"<{kind} {number}>"
        return self._labels[value]

    def comparable(self, reply: Reply) -> Reply:
        """The reply without what two equal servers may choose freely."""
        return Reply(reply.status, self._cleaned(reply.body, ""))

    def learn(self, value: Any) -> None:
        if isinstance(value, dict):
            for key, part in value.items():
                if isinstance(part, str) and _given(key, part):
                    self.label(_IDS[key], part)
                elif key == "records" and isinstance(part, str):
                    self.learn(json.loads(part))
                else:
                    self.learn(part)
        elif isinstance(value, list):
            for part in value:
                self.learn(part)

    def _cleaned(self, value: Any, field: str) -> Any:
        if isinstance(value, dict):
            return {
                key: self._cleaned(part, f"{field}.{key}" if field == "data" else key)
                for key, part in sorted(value.items())
                if (field, key) not in _CHOSEN
            }
        if isinstance(value, list):
            parts = [self._cleaned(part, field) for part in value]
            return sorted(parts, key=json.dumps) if field in _UNORDERED else parts
        if isinstance(value, float) and math.isnan(value):
            return "NaN"
        if isinstance(value, int) and not isinstance(value, bool) and field in _TIMES:
            return "<time>" if value > 1_600_000_000_000 else value
        if isinstance(value, int) and field == "experiment_id":
            return self._labels.get(str(value), value)
        if isinstance(value, str):
            return self._cleaned_text(value, field)
        return value

    def _cleaned_text(self, value: str, field: str) -> str:
        if field == "next_page_token":
            return "<token>"
        if field in _JSON_TEXTS and value[:1] in ("{", "["):
            return self._cleaned(json.loads(value), field)
        if field in _IDS and value in self._labels:
            return self._labels[value]
        if field == "message":
            value = re.sub(r"\{('[^{}]*)\}", _sorted_set, value)
        # To compile a pattern of all ids that are known would take longer than all else here.
        held = [known for known in self._labels if known and known in value]
        if held:
            value = re.sub(_pattern_of(held), lambda match: self._labels[match[0]], value)
        value = _IN_LOCATION.sub(lambda match: self._labels.get(match[0], match[0]), value)
        return _GENERATED_NAME.sub("<name>", value)


def _pattern_of(ids: list[str]) -> str:
    longer = "|".join(re.escape(known) for known in ids if len(known) >= _LONG) or "(?!)"
    shorter = "|".join(re.escape(known) for known in ids if len(known) < _LONG) or "(?!)"
    # A short id is looked for only where the texts put an id.
    pattern = rf"({longer})|(?<=id[= ])({shorter})\b"
    for prefix in ("experiment ", "experiment '", "mlflow-artifacts:/"):
        pattern += rf"|(?<={prefix})({shorter})\b"
    return pattern


_LONG = 26
_IDS = {
    "run_id": "run",
    "run_uuid": "run",
    "experiment_id": "experiment",
    "experiment_ids": "experiment",
    "model_id": "model",
    "webhook_id": "webhook",
    "dataset_id": "dataset",
    "dataset_record_id": "record",
    "scorer_id": "scorer",
    "schema_id": "schema",
    "queue_id": "queue",
    "online_scoring_config_id": "online settings",
    "issue_id": "issue",
    "id": "endpoint",
    "secret_id": "secret",
    "model_definition_id": "definition",
    "endpoint_id": "gateway endpoint",
    "mapping_id": "mapping",
    "guardrail_id": "guardrail",
    "budget_policy_id": "budget",
}
_JSON_TEXTS = frozenset({"records", "profile", "schema", "tags"})
"""Texts of evaluation datasets that hold JSON."""
_CHOSEN = frozenset(
    {
        ("dataset", "digest"),  # a hash of the time of the last change
        ("datasets", "digest"),
        ("guardrail", "created_by"),  # stock names the user of its own process
        ("guardrail", "last_updated_by"),
        ("guardrails", "created_by"),
        ("guardrails", "last_updated_by"),
        ("config", "created_by"),
        ("configs", "created_by"),
    }
)
"""Fields, below another, that two equal servers may fill differently."""
_TIMES = frozenset(
    {
        *("creation_time", "last_update_time", "creation_timestamp", "last_updated_timestamp"),
        *("creation_timestamp_ms", "last_updated_timestamp_ms"),
        *("created_time", "created_at", "last_updated_at", "created_timestamp"),
        *("last_seen_timestamp", "creation_time_ms", "last_update_time_ms", "completed_time_ms"),
    }
)
# Keyed lists: no client reads an order from them.
_UNORDERED = frozenset(
    {
        *("tags", "data.tags", "data.params", "data.metrics"),
        *("dataset_summaries", "model_inputs", "model_outputs"),
        "aliases",
        "access_endpoints",  # by ids, which are random
        *("endpoints", "bindings", "model_mappings", "budget_policies", "guardrails", "windows"),
    }
)
_IN_LOCATION = re.compile(r"(?<=/)\d{1,6}(?=/|$)")
_GENERATED_NAME = re.compile(r"^[a-z]+-[a-z]+-\d{1,4}$")


def _given(field: str, value: str) -> bool:
    """Whether this is an id that the server chose: an input may name any text as its model."""
    if field == "model_id":
        return bool(re.fullmatch(r"m-[0-9a-f]{32}", value))
    if field == "id":
        return bool(re.fullmatch(r"ae-[0-9a-f]{32}", value))
    return field in _IDS and value != ""


def _sorted_set(match: re.Match[str]) -> str:
    """Stock prints Python sets, whose order changes from process to process."""
    return "{" + ", ".join(sorted(match.group(1).split(", "))) + "}"


def _found(body: Any, where: str) -> Any:
    for part in where.split("."):
        body = body[part]
    return body


def shortened(text: str) -> str:
    return re.sub(r"(.)\1{40,}", r"\1…", text)
