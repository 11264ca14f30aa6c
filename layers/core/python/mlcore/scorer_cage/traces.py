"""MLflow's trace classes as a scorer's code sees them (``mlflow.entities``), made from JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime
from enum import Enum, StrEnum
from typing import Any

from mlcore.reserved_tags import SPAN_INPUTS, SPAN_OUTPUTS, TRACE_COST, TRACE_TOKEN_USAGE
from mlcore.scorer_cage.assessments import (
    Assessment,
    AssessmentError,
    AssessmentSource,
    Comparable,
    Expectation,
    Feedback,
    MlflowException,
)
from mlcore.scorer_cage.spans import Json, Span


class TraceState(StrEnum):
    STATE_UNSPECIFIED = "STATE_UNSPECIFIED"
    OK = "OK"
    ERROR = "ERROR"
    IN_PROGRESS = "IN_PROGRESS"


class TraceStatus(str, Enum):  # noqa: UP042 -- its text is not its value, as in MLflow
    UNSPECIFIED = "TRACE_STATUS_UNSPECIFIED"
    OK = "OK"
    ERROR = "ERROR"
    IN_PROGRESS = "IN_PROGRESS"


class TraceData:
    def __init__(self, spans: Sequence[Span] = ()) -> None:
        self.spans = list(spans)

    def to_dict(self) -> dict[str, Any]:
        return {"spans": [span.to_dict() for span in self.spans]}

    def _get_root_span(self) -> Span | None:
        return next((span for span in self.spans if span.parent_id is None), None)

    @property
    def request(self) -> Any:
        root = self._get_root_span()
        return None if root is None else root.stored_attribute(SPAN_INPUTS)

    @property
    def response(self) -> Any:
        root = self._get_root_span()
        return None if root is None else root.stored_attribute(SPAN_OUTPUTS)


class MlflowExperimentLocation(Comparable):
    def __init__(self, experiment_id: str) -> None:
        self.experiment_id = experiment_id


class TraceLocation(Comparable):
    def __init__(self, experiment_id: str) -> None:
        self.type = "MLFLOW_EXPERIMENT"
        self.mlflow_experiment = MlflowExperimentLocation(experiment_id)


class TraceInfo(Comparable):
    def __init__(self, fields: Json) -> None:
        """Makes a trace's information from its JSON.

        Args:
            fields: MLflow's JSON of a trace's information, version 3.
        """
        self._fields = fields
        location = fields.get("trace_location") or {}
        duration = fields.get("execution_duration")
        self.trace_id: str = fields["trace_id"]
        self.trace_location = TraceLocation(
            (location.get("mlflow_experiment") or {}).get("experiment_id") or ""
        )
        self.request_time: int = _milliseconds(fields.get("request_time"))
        self.state = TraceState(fields.get("state") or "STATE_UNSPECIFIED")
        self.request_preview: str | None = fields.get("request_preview")
        self.response_preview: str | None = fields.get("response_preview")
        self.client_request_id: str | None = fields.get("client_request_id")
        self.execution_duration: int | None = (
            None if duration is None else round(float(duration.removesuffix("s")) * 1000)
        )
        self.trace_metadata: dict[str, str] = dict(fields.get("trace_metadata") or {})
        self.tags: dict[str, str] = dict(fields.get("tags") or {})
        self.assessments: list[Assessment] = [
            made for each in fields.get("assessments") or () if (made := _assessment(each))
        ]

    @property
    def request_id(self) -> str:
        return self.trace_id

    @property
    def experiment_id(self) -> str:
        return self.trace_location.mlflow_experiment.experiment_id

    @property
    def request_metadata(self) -> dict[str, str]:
        return self.trace_metadata

    @property
    def timestamp_ms(self) -> int:
        return self.request_time

    @property
    def execution_time_ms(self) -> int | None:
        return self.execution_duration

    @property
    def status(self) -> TraceStatus:
        unspecified = self.state is TraceState.STATE_UNSPECIFIED
        return TraceStatus.UNSPECIFIED if unspecified else TraceStatus(self.state.value)

    @property
    def token_usage(self) -> Any:
        return self._json(TRACE_TOKEN_USAGE)

    @property
    def cost(self) -> Any:
        return self._json(TRACE_COST)

    def to_dict(self) -> dict[str, Any]:
        fields = dict(self._fields)
        if self.execution_duration is not None:
            del fields["execution_duration"]
            fields["execution_duration_ms"] = self.execution_duration
        return fields

    def _json(self, key: str) -> Any:
        text = self.trace_metadata.get(key)
        return json.loads(text) if text else None


class Trace:
    def __init__(self, info: TraceInfo, data: TraceData) -> None:
        self.info = info
        self.data = data

    @property
    def trace_id(self) -> str:
        return self.info.trace_id

    def __repr__(self) -> str:
        return f"Trace(trace_id={self.trace_id!r})"

    def to_dict(self) -> dict[str, Any]:
        return {"info": self.info.to_dict(), "data": self.data.to_dict()}

    def to_json(self, pretty: bool = False) -> str:
        return json.dumps(self.to_dict(), indent=2 if pretty else None, default=str)

    def search_spans(
        self,
        span_type: str | None = None,
        name: str | re.Pattern[str] | None = None,
        span_id: str | None = None,
    ) -> list[Span]:
        """Returns the trace's spans that meet all criteria that are not None, in their order."""
        if not (name is None or isinstance(name, str | re.Pattern)):
            raise MlflowException.invalid_parameter_value(
                f"Invalid type for 'name'. Expected str or re.Pattern. Got: {type(name)}"
            )
        if not (span_type is None or isinstance(span_type, str)):
            raise MlflowException.invalid_parameter_value(
                "Invalid type for 'span_type'. Expected str or mlflow.entities.SpanType. "
                f"Got: {type(span_type)}"
            )
        return [
            span
            for span in self.data.spans
            if (
                name is None
                or (span.name == name if isinstance(name, str) else bool(name.search(span.name)))
            )
            and (span_type is None or span.span_type == span_type)
            and (span_id is None or span.span_id == span_id)
        ]

    def search_assessments(
        self,
        name: str | None = None,
        *,
        span_id: str | None = None,
        all: bool = False,
        type: str | None = None,
    ) -> list[Assessment]:
        """Returns the assessments that match all given criteria; without ``all`` only those that
        no other assessment overrides."""
        classes = {"expectation": Expectation, "feedback": Feedback}
        wanted = classes.get(type or "", Assessment)
        return [
            each
            for each in self.info.assessments
            if (name is None or each.name == name)
            and (span_id is None or each.span_id == span_id)
            and (all or each.valid in (True, None))
            and isinstance(each, wanted)
        ]


def trace(fields: Json) -> Trace:
    """Returns a trace for a code scorer, from the JSON of its ``info`` and of its ``spans``."""
    return Trace(TraceInfo(fields["info"]), TraceData([Span(span) for span in fields["spans"]]))


def _assessment(fields: Json) -> Assessment | None:
    """Returns an assessment from MLflow's JSON; None for a reference to an issue."""
    source = AssessmentSource(**fields["source"])
    common: dict[str, Any] = {
        "trace_id": fields.get("trace_id"),
        "metadata": fields.get("metadata"),
        "span_id": fields.get("span_id"),
        "create_time_ms": _milliseconds(fields.get("create_time")),
        "last_update_time_ms": _milliseconds(fields.get("last_update_time")),
    }
    made: Assessment
    if "expectation" in fields:
        value = fields["expectation"]
        serialized = value.get("serialized_value")
        plain = json.loads(serialized["value"]) if serialized else value.get("value")
        made = Expectation(fields["assessment_name"], plain, source, **common)
    elif "feedback" in fields:
        value = fields["feedback"]
        error = value.get("error")
        made = Feedback(
            fields["assessment_name"],
            value.get("value"),
            AssessmentError(**error) if error else None,
            source,
            rationale=fields.get("rationale"),
            overrides=fields.get("overrides"),
            valid=fields.get("valid", True),
            **common,
        )
    else:
        return None
    made.assessment_id = fields.get("assessment_id")
    return made


def _milliseconds(text: str | None) -> int:
    """Returns protobuf's JSON of a point in time as milliseconds since the epoch."""
    if not text:
        return 0
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return round(moment.timestamp() * 1000)
