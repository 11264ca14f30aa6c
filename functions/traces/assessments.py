"""Creates, reads, updates and deletes assessments of traces: feedback, expectations, and references
to issues."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from mlcore import errors
from mlcore.entities.traces import Assessment
from mlcore.environment import workspaces_enabled
from mlcore.http import Request
from mlcore.ids import now_ms, now_us
from mlcore.repos.traces import assessments as trace_assessments
from mlcore.repos.traces import redaction, run_assessments, traces
from mlcore.repos.traces.traces import StoredTrace, TraceChange
from mlcore.reserved_tags import ASSESSMENT_RUN
from mlcore.responses import traces as responses
from mlcore.wire.json_text import parse_json_text
from mlcore.wire.times import parse_point
from traces import messages as m

if TYPE_CHECKING:
    from mlcore.redaction.redactor import Redactor


def create_assessment(message: m.CreateAssessment, request: Request) -> dict[str, Any]:
    assessment = from_message(message.assessment or m.Assessment(), message.trace_id)
    trace = traces.find(message.trace_id, request.workspace)
    if trace is not None:
        assessment = _stored(redaction.redactor_of(trace), assessment)
    arrived = now_us()

    def add(current: StoredTrace) -> TraceChange | None:
        texts = current.document.texts("assessments")
        text = trace_assessments.text(assessment)
        if texts.get(assessment.assessment_id) == text:
            return None  # a repeated request
        if assessment.assessment_id in texts:
            raise errors.ResourceAlreadyExists(
                f"Assessment with ID '{assessment.assessment_id}' already exists."
            )
        sets = {assessment.assessment_id: text}
        if assessment.overrides:
            overridden = texts.get(assessment.overrides)
            if overridden is None:
                raise _missing(message.trace_id, assessment.overrides)
            sets[assessment.overrides] = _with_valid(overridden, valid=False)
        arrivals = {assessment.assessment_id: arrived}
        return TraceChange(current.info, {"assessments": sets}, arrivals=arrivals)

    if trace is not None:
        run_assessments.record(trace.trace_id, [assessment])
    if trace is None or traces.write(trace, add) is None:
        raise errors.ResourceDoesNotExist(f"Trace with ID '{message.trace_id}' not found.")
    return {"assessment": responses.assessment(assessment)}


def get_assessment(message: m.GetAssessment, request: Request) -> dict[str, Any]:
    trace = traces.find(message.trace_id, request.workspace)
    return {"assessment": responses.assessment(_get(trace, message))}


def update_assessment(message: m.UpdateAssessment, request: Request) -> dict[str, Any]:
    change = _changes(message.assessment or m.Assessment(), message.update_mask)
    time = now_ms()
    written: list[Assessment] = []

    def update(current: StoredTrace) -> TraceChange:
        changed = change(_get(current, message))._replace(last_update_time=time)
        changed = redaction.redacted_assessment(redaction.redactor_of(current), changed)
        written[:] = [changed]
        sets = {changed.assessment_id: trace_assessments.text(changed)}
        return TraceChange(current.info, {"assessments": sets})

    trace = traces.find(message.trace_id, request.workspace)
    if trace is None or traces.write(trace, update) is None:
        raise _no_trace(message.trace_id)
    return {"assessment": responses.assessment(written[0])}


def delete_assessment(message: m.DeleteAssessment, request: Request) -> dict[str, Any]:
    """Deletes an assessment of a trace. The assessment that it overrode becomes valid again.
    Deleting a missing assessment succeeds. A missing trace is an error only with workspaces, as on
    MLflow's server."""

    def delete(current: StoredTrace) -> TraceChange | None:
        texts = current.document.texts("assessments")
        text = texts.get(message.assessment_id)
        if text is None:
            return None
        overridden = trace_assessments.parse(text).overrides
        sets = {}
        if overridden and overridden in texts:
            sets[overridden] = _with_valid(texts[overridden], valid=True)
        removals = [("assessments", message.assessment_id)]
        return TraceChange(current.info, {"assessments": sets}, removals)

    trace = traces.find(message.trace_id, request.workspace)
    if trace is not None:
        traces.write(trace, delete)
    elif workspaces_enabled():
        raise _no_trace(message.trace_id)
    return {}


def from_message(fields: m.Assessment, trace_id: str) -> Assessment:
    """Converts the assessment in a request, and marks it as valid. If the request has a creation
    time but no id, the id stays empty until the assessment is stored (:func:`stored_texts`).

    Raises InvalidParameterValue if the assessment has no known type, an expectation has no value,
    or a value or time cannot be read.
    """
    kind, value, error = _content(fields)
    created = parse_point(fields.create_time, "create_time") if fields.create_time else 0
    updated = (
        parse_point(fields.last_update_time, "last_update_time") if (fields.last_update_time) else 0
    )
    now = now_ms()
    metadata = dict(fields.metadata) or None
    source = fields.source
    assessment = Assessment(
        assessment_id=fields.assessment_id,
        trace_id=trace_id,
        name=fields.assessment_name,
        kind=kind,
        value=value,
        error=error,
        source_type=(source.source_type if source else None) or "SOURCE_TYPE_UNSPECIFIED",
        source_id=(source.source_id if source else None) or None,
        create_time=created or now,
        last_update_time=updated or now,
        run_id=metadata.get(ASSESSMENT_RUN) if metadata else None,
        span_id=fields.span_id or None,
        rationale=(fields.rationale or None) if kind != "expectation" else None,
        metadata=metadata,
        overrides=(fields.overrides or None) if kind == "feedback" else None,
        valid=True,
    )
    if assessment.assessment_id or created:
        return assessment
    return assessment._replace(assessment_id=f"a-{uuid4().hex}")


def stored_texts(rules: Redactor | None, new: Iterable[Assessment]) -> dict[str, str]:
    """Returns the JSON texts of new assessments as they are stored, by the assessments' ids, in the
    assessments' order.

    Args:
        rules: replaces sensitive texts in the assessments; None if there are no redaction rules.
    """
    stored = (_stored(rules, assessment) for assessment in new)
    return {assessment.assessment_id: trace_assessments.text(assessment) for assessment in stored}


def _stored(rules: Redactor | None, new: Assessment) -> Assessment:
    """Returns a new assessment as it is stored: redacted, and with an id.

    An empty id becomes a digest of the content, so a repeated request makes the same assessment.
    Two assessments with equal content differ in their time. The content is redacted before the
    digest is computed: with the digest of a private text anybody could check guesses of the text.
    """
    redacted = redaction.redacted_assessment(rules, new)
    if redacted.assessment_id:
        return redacted
    digest = blake2b(trace_assessments.text(redacted).encode(), digest_size=16)
    return redacted._replace(assessment_id=f"a-{digest.hexdigest()}")


def _content(fields: m.Assessment) -> tuple[str, Any, dict[str, str | None] | None]:
    """Returns kind, value and error. If the request has several kinds, the last one counts, as in a
    protobuf oneof."""
    kinds = [name for name in fields.__dict__ if name in ("feedback", "expectation", "issue")]
    if not kinds:
        raise errors.InvalidParameterValue("Unknown assessment type: None")
    kind = kinds[-1]
    if kind == "feedback":
        return kind, *_feedback(fields)
    if kind == "expectation":
        return kind, _expectation(fields), None
    return kind, {"issue_name": fields.issue.issue_name if fields.issue else ""}, None


def _feedback(fields: m.Assessment) -> tuple[Any, dict[str, str | None] | None]:
    feedback = fields.feedback
    if feedback is None:
        return None, None
    error = feedback.error
    if error is None:
        return _plain(feedback.value), None
    return _plain(feedback.value), {
        "error_code": error.error_code,
        "error_message": error.error_message or None,
        "stack_trace": error.stack_trace or None,
    }


def _expectation(fields: m.Assessment) -> Any:
    expectation = fields.expectation
    serialized = expectation.serialized_value if expectation else None
    if serialized is None:
        value = _plain(expectation.value) if expectation else None
    else:
        if serialized.serialization_format != responses.JSON_FORMAT:
            raise errors.InvalidParameterValue(
                f"Unknown serialization format: {serialized.serialization_format}. "
                "Only JSON_FORMAT is supported."
            )
        try:
            value = parse_json_text(serialized.value)
        except ValueError:
            raise errors.InvalidParameterValue("The serialized value is not JSON.") from None
    if value is None:
        raise errors.InvalidParameterValue("The `value` field must be specified.")
    return value


def _plain(value: Any) -> Any:
    """Converts a value to JSON types that protobuf's ``Value`` supports. Every number becomes a
    double."""
    if isinstance(value, bool) or not isinstance(value, int | list | dict):
        return value
    if isinstance(value, int):
        try:
            return float(value)
        except OverflowError:
            raise errors.InvalidParameterValue("A number is too large.") from None
    if isinstance(value, list):
        return list(map(_plain, value))
    return {key: _plain(item) for key, item in value.items()}


def _changes(fields: m.Assessment, mask: str) -> Callable[[Assessment], Assessment]:
    """Returns a function that applies an update to an assessment.

    Args:
        fields: the new values.
        mask: the names of the fields to update, separated by commas.

    Raises:
        InvalidParameterValue: the mask names ``valid``, or both an expectation and feedback.
    """
    paths = {_snake(path.strip()) for path in mask.split(",")}
    if "valid" in paths:
        raise errors.InvalidParameterValue("Whether an assessment is valid cannot be updated.")
    expectation = _expectation(fields) if "expectation" in paths else None
    feedback = _feedback(fields) if "feedback" in paths else None
    if expectation is not None and feedback is not None:
        raise errors.InvalidParameterValue(
            "Cannot specify both `expectation` and `feedback` parameters."
        )

    def change(before: Assessment) -> Assessment:
        changed = before
        if expectation is not None:
            if before.kind != "expectation":
                raise errors.InvalidParameterValue(
                    "Cannot update expectation value on a Feedback assessment."
                )
            changed = changed._replace(value=expectation)
        if feedback is not None:
            if before.kind != "feedback":
                raise errors.InvalidParameterValue(
                    "Cannot update feedback value on an Expectation assessment."
                )
            changed = changed._replace(value=feedback[0], error=feedback[1])
        if "assessment_name" in paths:
            changed = changed._replace(name=fields.assessment_name)
        if "rationale" in paths and before.kind != "expectation":
            changed = changed._replace(rationale=fields.rationale)
        if "metadata" in paths:
            metadata = {**(before.metadata or {}), **fields.metadata}
            changed = changed._replace(metadata=metadata or None)
        return changed

    return change


def _snake(path: str) -> str:
    """Converts a camelCase name such as ``assessmentName`` to snake_case (``assessment_name``)."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in path)


def _with_valid(text: str, *, valid: bool) -> str:
    return trace_assessments.text(trace_assessments.parse(text)._replace(valid=valid))


def _get(trace: StoredTrace | None, message: m.GetAssessment | m.UpdateAssessment) -> Assessment:
    if trace is None:
        raise _no_trace(message.trace_id)
    text = trace.document.texts("assessments").get(message.assessment_id)
    if text is None:
        raise _missing(message.trace_id, message.assessment_id)
    return trace_assessments.parse(text)


def _missing(trace_id: str, assessment_id: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(
        f"Assessment with ID '{assessment_id}' not found for trace '{trace_id}'"
    )


def _no_trace(trace_id: str) -> errors.ResourceDoesNotExist:
    if workspaces_enabled():
        return errors.ResourceDoesNotExist(f"Trace with ID '{trace_id}' not found.")
    return errors.ResourceDoesNotExist(f"Trace with request_id '{trace_id}' not found")
