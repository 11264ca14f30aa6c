"""MLflow's assessment classes as the code of a scorer sees them (``mlflow.entities``).

They accept and refuse what MLflow's classes do, with the same messages. They know neither protobuf
nor a server.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Mapping
from typing import Any, Final

from mlcore.reserved_tags import ASSESSMENT_RUN

DEFAULT_FEEDBACK_NAME: Final = "feedback"
_CAGE: Final = __file__.rpartition("/")[0]


class MlflowException(Exception):
    """Takes the place of MLflow's exception for code scorers that raise or catch it."""

    def __init__(self, message: Any, error_code: Any = "INTERNAL_ERROR", **_: Any) -> None:
        super().__init__(str(message))
        self.message = str(message)
        self.error_code = error_code

    @classmethod
    def invalid_parameter_value(cls, message: Any, **_: Any) -> MlflowException:
        return cls(message, "INVALID_PARAMETER_VALUE")


class Comparable:
    """Base of classes whose instances are compared and printed by their attributes, as those of
    dataclasses are."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"


class AssessmentSourceType:
    SOURCE_TYPE_UNSPECIFIED = "SOURCE_TYPE_UNSPECIFIED"
    LLM_JUDGE = "LLM_JUDGE"
    AI_JUDGE = "AI_JUDGE"
    HUMAN = "HUMAN"
    CODE = "CODE"
    _SOURCE_TYPES = (SOURCE_TYPE_UNSPECIFIED, LLM_JUDGE, HUMAN, CODE)

    def __init__(self, source_type: str) -> None:
        self._source_type = self._standardize(source_type)

    def __str__(self) -> str:
        return self._source_type

    @classmethod
    def _standardize(cls, source_type: str) -> str:
        name = source_type.upper()
        name = cls.LLM_JUDGE if name == cls.AI_JUDGE else name
        if name not in cls._SOURCE_TYPES:
            raise MlflowException.invalid_parameter_value(
                f"Invalid assessment source type: {name}. "
                f"Valid source types: {list(cls._SOURCE_TYPES)}"
            )
        return name


class AssessmentSource(Comparable):
    def __init__(self, source_type: str, source_id: str | None = "default") -> None:
        self.source_type = str(AssessmentSourceType(source_type))
        self.source_id = source_id

    def to_dictionary(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_dictionary(cls, source: Mapping[str, Any]) -> AssessmentSource:
        return cls(**source)


class AssessmentError(Comparable):
    def __init__(
        self, error_code: str, error_message: str | None = None, stack_trace: str | None = None
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.stack_trace = stack_trace

    def to_dictionary(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_dictionary(cls, error: Mapping[str, Any]) -> AssessmentError:
        return cls(**error)


class FeedbackValue(Comparable):
    def __init__(self, value: Any, error: AssessmentError | None = None) -> None:
        self.value = value
        self.error = error


class ExpectationValue(Comparable):
    def __init__(self, value: Any) -> None:
        self.value = value


class Assessment(Comparable):
    """The base of feedback and expectations. Unlike MLflow's class, it takes no value, so scorers
    make instances of the subclasses only."""

    def __init__(self, name: str, source: AssessmentSource, **fields: Any) -> None:
        if not isinstance(source, AssessmentSource):
            raise MlflowException.invalid_parameter_value(
                f"`source` must be an instance of `AssessmentSource`. Got {type(source)} instead."
            )
        now = int(time.time() * 1000)
        self.name = name
        self.source = source
        self.trace_id: str | None = fields.get("trace_id")
        self.rationale: str | None = fields.get("rationale")
        self.metadata: dict[str, str] | None = fields.get("metadata")
        self.span_id: str | None = fields.get("span_id")
        self.create_time_ms: int = _or(fields.get("create_time_ms"), now)
        self.last_update_time_ms: int = _or(fields.get("last_update_time_ms"), now)
        self.assessment_id: str | None = fields.get("assessment_id")
        self.error: AssessmentError | None = None
        self.expectation: ExpectationValue | None = None
        self.feedback: FeedbackValue | None = None
        self.issue: None = None
        self.overrides: str | None = fields.get("overrides")
        self.valid: bool | None = fields.get("valid")
        self.run_id: str | None = (self.metadata or {}).get(ASSESSMENT_RUN)


class Feedback(Assessment):
    def __init__(
        self,
        name: str = DEFAULT_FEEDBACK_NAME,
        value: Any = None,
        error: Exception | AssessmentError | str | None = None,
        source: AssessmentSource | None = None,
        trace_id: str | None = None,
        metadata: dict[str, str] | None = None,
        span_id: str | None = None,
        create_time_ms: int | None = None,
        last_update_time_ms: int | None = None,
        rationale: str | None = None,
        overrides: str | None = None,
        valid: bool = True,
    ) -> None:
        if isinstance(error, Exception):
            error = AssessmentError(type(error).__name__, str(error), stack_trace(error))
        elif isinstance(error, str):
            error = AssessmentError("ASSESSMENT_ERROR", error)
        elif error is not None and not isinstance(error, AssessmentError):
            raise MlflowException.invalid_parameter_value(
                f"'error' must be an Exception, AssessmentError, or string. Got: {type(error)}"
            )
        super().__init__(
            name,
            AssessmentSource(AssessmentSourceType.CODE) if source is None else source,
            trace_id=trace_id,
            metadata=metadata,
            span_id=span_id,
            create_time_ms=create_time_ms,
            last_update_time_ms=last_update_time_ms,
            rationale=rationale,
            overrides=overrides,
            valid=valid,
        )
        self.feedback: FeedbackValue = FeedbackValue(value, error)
        self.error = error

    @property
    def value(self) -> Any:
        return self.feedback.value

    @value.setter
    def value(self, value: Any) -> None:
        self.feedback.value = value

    @property
    def error_code(self) -> str | None:
        return self.feedback.error.error_code if self.feedback.error else None

    @property
    def error_message(self) -> str | None:
        return self.feedback.error.error_message if self.feedback.error else None


class Expectation(Assessment):
    def __init__(
        self,
        name: str,
        value: Any,
        source: AssessmentSource | None = None,
        trace_id: str | None = None,
        metadata: dict[str, str] | None = None,
        span_id: str | None = None,
        create_time_ms: int | None = None,
        last_update_time_ms: int | None = None,
    ) -> None:
        if value is None:
            raise MlflowException.invalid_parameter_value("The `value` field must be specified.")
        super().__init__(
            name,
            AssessmentSource(AssessmentSourceType.HUMAN) if source is None else source,
            trace_id=trace_id,
            metadata=metadata,
            span_id=span_id,
            create_time_ms=create_time_ms,
            last_update_time_ms=last_update_time_ms,
        )
        self.expectation: ExpectationValue = ExpectationValue(value)

    @property
    def value(self) -> Any:
        return self.expectation.value


def stack_trace(error: BaseException) -> str:
    """Returns the traceback of a scorer's error as text, without the frames of ``scorer_cage``."""
    try:
        described = traceback.TracebackException.from_exception(error)
        each: traceback.TracebackException | None = described
        while each is not None:
            kept = [frame for frame in each.stack if not frame.filename.startswith(_CAGE)]
            each.stack = traceback.StackSummary.from_list(kept)
            each = each.__cause__ or each.__context__
        return "".join(described.format()).strip()
    except Exception:  # the error may be of a class of the scorer, with any __str__
        return type(error).__name__


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
