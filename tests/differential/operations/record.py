"""Does things with a client and keeps what came of each, without what two equal servers may choose;
compares nothing itself."""

from __future__ import annotations

import enum
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mlflow.exceptions import MlflowException
from mlflow.store.entities import PagedList

_IDS = {
    "run": r"\b[0-9a-f]{32}\b|\b[0-9A-HJKMNP-TV-Z]{26}\b",
    "model": r"\bm-[0-9a-f]{32}\b",
    "assessment": r"\ba-[0-9a-f]{32}\b",
    "dataset": r"\bd-[0-9a-f]{32}\b",
    "record": r"\bdr-[0-9a-f]{32}\b",
    "trace": r"\btr-[0-9a-f]{32}\b",
    "uuid": r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
    "other": r"\b(?:ls|rq|iss|rqi|sc|wh)-[0-9a-f]{32}\b",
    "span": r"(?<=')[0-9a-f]{16}(?=')",
}
_ID = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _IDS.items()))
_EXPERIMENT = re.compile(
    r"(?<=mlflow-artifacts:/)\d+|(?<=experiments/)\d+|(?<=experiment )\d+|(?<=path=)\d+"
    r"|(?<=experiment ')\d+(?=')|(?<=id )\d+|(?<=ID )\d+"
    r"|(?<=id=)\d+|(?<=, )\d+(?=, 'p')|(?<=^,)\d+(?=,$)"
)
_EXPERIMENT_FIELDS = {
    *("experiment_id refused", "experiment_id at", "experiment_id bad at"),
    *("experiment_id", "experiment_ids", "mlflow.experimentId", "_mlflow_experiment_ids"),
}
_GENERATED_NAME = re.compile(r"\b[a-z]+-[a-z]+-\d{1,4}\b")
_MOMENT = re.compile(r"\b1[6-9]\d{11}(\d{6})?\b|\b20\d\d-\d\d-\d\dT[\d:.]+(Z|\+00:00)?")
_CHOSEN = {
    # The hash of the time of the last change, and how long the client took.
    *("digest", "execution_duration", "execution_time_ms", "response_time_ms"),
    # What a process keeps for itself.
    *("client", "store", "_store", "client_request_id"),
    # In bytes of a trace's own ids and times.
    *("execution_duration_ms", "span_id", "parent_span_id", "mlflow.spanStartTimeNs"),
}
_NOT_THEIRS = ("mlflow.source.", "mlflow.user", "mlflow.trace.sizeBytes", "mlflow.trace.sizeStats")
_UNORDERED = {"tags", "params", "metrics", "metric_objs", "aliases", "experiment_ids"}


class Record:
    """What one server answered, in the order in which it was asked."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._labels: dict[str, str] = {}
        self.answers: list[tuple[str, str]] = []
        self.experiments: set[str] = set()

    def do(self, what: str, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Does it and keeps the outcome; answers None when it failed."""
        try:
            result = call(*given, **named)
        except Exception as error:  # a client raises what it likes
            self._keep(what, self._failure(error))
            return None
        if isinstance(result, Iterator):
            result = list(result)
        self._keep(what, self.plain(result, what))
        return result

    def _keep(self, what: str, outcome: Any) -> None:
        self.answers.append((what, json.dumps(outcome, sort_keys=True, ensure_ascii=False)))

    def _failure(self, error: Exception) -> Any:
        code = error.error_code if isinstance(error, MlflowException) else ""
        return {"raised": type(error).__name__, "code": code, "message": self._text(str(error))}

    def plain(self, value: Any, field: str = "") -> Any:
        """As JSON has it, with labels for ids and moments."""
        if isinstance(value, PagedList):
            return {"items": [self.plain(item) for item in value], "more": bool(value.token)}
        if isinstance(value, enum.Enum):
            return value.name
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return "<time>" if value > 10**12 else value
        if isinstance(value, float):
            return str(value) if not math.isfinite(value) else value
        if isinstance(value, str):
            if field == "trace_id" and value.endswith("=="):
                return "<id>"
            if field in _EXPERIMENT_FIELDS:
                return re.sub(r"\d+", lambda match: self._experiment(match.group()), value)
            return self._text(value)
        if isinstance(value, Mapping):
            return {
                self._text(str(key)): self.plain(part, str(key))
                for key, part in value.items()
                if str(key).lstrip("_") not in _CHOSEN and not str(key).startswith(_NOT_THEIRS)
            }
        if isinstance(value, set | frozenset):
            return sorted((self.plain(item, field) for item in value), key=repr)
        if type(value).__module__.startswith("mlflow."):
            return self._entity(value)
        if isinstance(value, Iterable):
            parts = [self.plain(item, field) for item in value]
            return sorted(parts, key=repr) if field in _UNORDERED else parts
        return type(value).__name__

    def _entity(self, value: Any) -> Any:
        if hasattr(value, "to_dict") and type(value).__name__ in {"Trace", "Span", "LiveSpan"}:
            return self.plain(value.to_dict())
        fields = {
            name.lstrip("_"): part
            for name, part in sorted(vars(value).items())
            if not callable(part)
        }
        return {"is": type(value).__name__, **self.plain(fields)}

    def _experiment(self, value: str) -> str:
        if value in {"", "0"} or not (value.isdigit() and value in self.experiments):
            return value
        return self._label("experiment", value)

    def _label(self, kind: str, value: str) -> str:
        if value not in self._labels:
            number = sum(known.startswith(f"<{kind}-") for known in self._labels.values()) + 1
            self._labels[value] = f"<{kind}-{number}>"
        return self._labels[value]

    def _text(self, text: str) -> str:
        text = text.replace(self._url, "<server>").replace(self._url.split(":")[-1], "<port>")
        text = re.sub(r"\{('[^{}:]*)\}", _sorted_set, text)
        text = _ID.sub(lambda match: self._label(match.lastgroup or "", match.group()), text)
        text = _EXPERIMENT.sub(lambda match: self._experiment(match.group()), text)
        text = _MOMENT.sub("<time>", text)
        return _GENERATED_NAME.sub("<name>", text)


def _sorted_set(match: re.Match[str]) -> str:
    """The client and the server print Python sets, whose order changes from process to process."""
    return "{" + ", ".join(sorted(match.group(1).split(", "))) + "}"
