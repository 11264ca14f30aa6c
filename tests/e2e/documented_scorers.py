"""Scorers in the manner of MLflow's documentation, and what people make of it.

They are registered by their source, so each imports what it needs itself.
"""

# ruff: noqa: PLC0415 -- a scorer's body is all of it that reaches the server
# mypy: ignore-errors
# They are written as people write scorers, some mistakes included.
from __future__ import annotations

from typing import Any

from mlflow.entities import Feedback, Trace
from mlflow.genai import scorer
from mlflow.genai.scorers import Scorer


@scorer
def exact_match(outputs: Any, expectations: Any) -> bool:
    return bool(outputs == expectations["expected_response"])


@scorer
def equals_what_was_asked(inputs: dict[str, Any], outputs: str) -> bool:
    return inputs["question"] == outputs


@scorer
def is_short(outputs: str) -> Feedback:
    score = len(outputs.split()) <= 5
    rationale = (
        "The response is short enough."
        if score
        else f"The response is not short enough because it has ({len(outputs.split())} words)."
    )
    return Feedback(value=score, rationale=rationale)


@scorer
def word_count(outputs: str) -> int:
    return len(outputs.split())


@scorer
def average_word_length(outputs: str) -> float:
    words = outputs.split()
    return sum(map(len, words)) / len(words)


@scorer
def first_word(outputs: str) -> str:
    import re

    return re.findall(r"\w+", outputs)[0]


@scorer
def response_time(trace: Trace) -> Feedback:
    from mlflow.entities import SpanType

    span = trace.search_spans(span_type=SpanType.CHAT_MODEL)[0]
    seconds = (span.end_time_ns - span.start_time_ns) / 1e9
    quick = seconds <= 2
    return Feedback(
        value="yes" if quick else "no", rationale=f"The model answered in {seconds:.2f} seconds."
    )


@scorer
def tools_used(trace: Trace) -> list[Feedback]:
    from mlflow.entities import SpanType

    tools = trace.search_spans(span_type=SpanType.TOOL)
    return [
        Feedback(name="tool_count", value=len(tools)),
        Feedback(name="tool_names", value=", ".join(tool.name for tool in tools)),
        Feedback(
            name="tool_inputs",
            value=[tool.inputs for tool in tools],
            metadata={"first": str(tools[0].outputs)},
        ),
    ]


@scorer
def spans_by_pattern(trace: Trace) -> int:
    import re

    return len(trace.search_spans(name=re.compile("^look")))


@scorer
def facts_of_the_trace(trace: Trace) -> list[Feedback]:
    root = trace.data.spans[0]
    return [
        Feedback(name="state", value=str(trace.info.state)),
        Feedback(name="duration", value=trace.info.execution_duration),
        Feedback(name="time", value=trace.info.request_time > 0),
        Feedback(name="experiment", value=trace.info.experiment_id),
        Feedback(name="tag", value=trace.info.tags.get("kind")),
        Feedback(name="session", value=trace.info.trace_metadata.get("mlflow.trace.session")),
        Feedback(name="root", value=[root.name, root.parent_id, root.span_type]),
        Feedback(name="request", value=trace.data.request),
        Feedback(name="status", value=root.status.status_code.value),
        Feedback(name="spans", value=sorted(span.name for span in trace.data.spans)),
        Feedback(
            name="parents",
            value=[span.parent_id == root.span_id for span in trace.data.spans],
        ),
        Feedback(name="attribute", value=root.get_attribute("mlflow.spanInputs")),
        Feedback(
            name="own", value=[span.get_attribute("temperature") for span in trace.data.spans]
        ),
        Feedback(
            name="events", value=[event.name for span in trace.data.spans for event in span.events]
        ),
        Feedback(name="keys", value=sorted(trace.to_dict())),
        Feedback(name="tokens", value=trace.info.token_usage),
    ]


@scorer
def reads_assessments(trace: Trace) -> list[Feedback]:
    wanted = trace.search_assessments("expected_response", type="expectation")
    votes = trace.search_assessments(type="feedback", name="thumbs")
    return [
        Feedback(name="expected", value=[each.value for each in wanted]),
        Feedback(name="votes", value=[[each.value, each.source.source_type] for each in votes]),
    ]


@scorer
def valid_json(outputs: str) -> Feedback:
    import json

    try:
        json.loads(outputs)
    except json.JSONDecodeError as error:
        return Feedback(value=False, rationale=f"Not JSON: {error}")
    return Feedback(value=True)


@scorer
def similarity(inputs: dict[str, Any], outputs: str) -> float:
    import difflib

    return round(difflib.SequenceMatcher(None, str(inputs), outputs).ratio(), 4)


@scorer
def fails(outputs: str) -> bool:
    raise ValueError(f"Cannot judge {outputs[:3]!r}")


@scorer
def feedback_with_an_error(outputs: str) -> Feedback:
    try:
        return Feedback(value=outputs["missing"])
    except TypeError as error:
        return Feedback(error=error)


@scorer
def feedback_with_a_code(outputs: str) -> Feedback:
    from mlflow.entities import AssessmentError

    return Feedback(
        name="coded",
        value=outputs[:1],
        error=AssessmentError(error_code="TOO_LONG", error_message="It is too long."),
    )


@scorer
def wrong_type(outputs: str) -> Any:
    return {"value": outputs}


@scorer
def wrong_list(outputs: str) -> Any:
    return [outputs, 1]


@scorer
def nothing(outputs: str) -> Any:
    return None


@scorer
def no_feedback(outputs: str) -> Any:
    return []


@scorer
def own_source(outputs: str) -> Feedback:
    from mlflow.entities import AssessmentSource

    return Feedback(
        name="reviewed",
        value=bool(outputs),
        source=AssessmentSource(source_type="HUMAN", source_id="reviewer"),
        metadata={"project": "x", "mlflow.assessment.scorerName": "other"},
        rationale="Because.",
    )


@scorer
def wrong_source(outputs: str) -> Feedback:
    from mlflow.entities import AssessmentSource

    return Feedback(value=outputs, source=AssessmentSource(source_type="ROBOT"))


@scorer
def rating(outputs: str) -> Feedback:
    from mlflow.genai.judges import CategoricalRating

    return Feedback(value=CategoricalRating.YES if outputs else CategoricalRating.NO)


@scorer(name="renamed", description="Its name is not its function's.")
def by_another_name(outputs: str) -> bool:
    return len(outputs) > 3


@scorer
def with_a_default(outputs: str, limit: int = 3) -> bool:
    return len(outputs) > limit


@scorer
def keyword_only(*, outputs: str, trace: Trace | None = None) -> bool:
    return trace is not None and bool(outputs)


@scorer
def with_helpers(outputs: str) -> float:
    from collections import Counter

    def share(letter: str) -> float:
        return Counter(outputs.lower())[letter] / len(outputs)

    class Vowels:
        letters = "aeiou"

    return round(sum(map(share, Vowels.letters)), 3)


@scorer
def nested_values(outputs: str) -> Feedback:
    return Feedback(value={"length": len(outputs), "upper": outputs.isupper()})


@scorer
def turns(session: list[Trace]) -> Feedback:
    return Feedback(
        value=len(session),
        rationale=" / ".join(str(each.data.spans[0].outputs) for each in session),
    )


@scorer
def graded(outputs: str) -> str:
    from dataclasses import dataclass, field  # noqa: TID251 -- as people write it
    from enum import Enum
    from typing import NamedTuple

    class Grade(str, Enum):  # noqa: UP042 -- as people write it
        GOOD = "good"
        BAD = "bad"

    class Limits(NamedTuple):
        least: int = 2

    @dataclass(frozen=True)
    class Reading:
        text: str
        words: list[str] = field(default_factory=list)

        @property
        def grade(self) -> Grade:
            return Grade.GOOD if len(self.words) >= Limits().least else Grade.BAD

    return Reading(outputs, outputs.split()).grade.value


@scorer
def with_closures(outputs: str, weights: tuple[int, ...] = (1, 2), sep: str = " ") -> float:
    import functools

    total = 0

    def add(word: str, *, weight: int = weights[0]) -> None:
        nonlocal total
        total += weight * len(word)

    for word, weight in zip(outputs.split(sep), weights, strict=False):
        add(word, weight=weight)
    longest = functools.reduce(lambda a, b: a if len(a) >= len(b) else b, outputs.split(sep))
    return (total if (n := len(longest)) > 1 else 0) / n


@scorer
def formatted(inputs: dict[str, Any], outputs: str) -> str:
    import datetime
    import textwrap
    from decimal import Decimal

    text = f"{outputs!r:>30} {len(outputs):04d} {Decimal(len(outputs)) / 3:.3f} {inputs=}"
    text += f" {datetime.datetime(2024, 5, 17):%Y-%m-%d} {'nested ' + f'{1 + 1}'}"
    return textwrap.shorten(text, 200)


@scorer
def by_what_was_expected(expectations: dict[str, Any] | None = None) -> Feedback:
    facts = (expectations or {}).get("expected_facts", [])
    return Feedback(value=bool(facts), rationale=f"{len(facts)} facts")


@scorer
def with_match(trace: Trace) -> list[Feedback]:
    from mlflow.entities import AssessmentSource, AssessmentSourceType, SpanType

    found = []
    for span in trace.search_spans():
        match span.span_type:
            case SpanType.TOOL | SpanType.RETRIEVER:
                found.append(span)
            case _:
                continue
    source = AssessmentSource(source_type=AssessmentSourceType.CODE, source_id="matcher")
    return [
        Feedback(
            name=f"{span.name}_ms", value=span.end_time_ns >= span.start_time_ns, source=source
        )
        for span in found
    ]


@scorer(aggregations=["min", "max", "mean", "median", "variance", "p90"], timeout=20)
def aggregated(outputs: str) -> int:
    return len(outputs)


@scorer
def generator_and_context(outputs: str) -> int:
    from contextlib import contextmanager, suppress

    @contextmanager
    def counted():
        seen = []
        yield seen
        seen.append("left")

    with counted() as seen, suppress(KeyError):
        seen.extend(word for word in outputs.split() if word)
        {}["missing"]
    return len(seen)


@scorer
def errors_are_told(outputs: str) -> Feedback:
    from mlflow.exceptions import MlflowException

    try:
        raise MlflowException.invalid_parameter_value("No.")
    except MlflowException as error:
        return Feedback(value=error.error_code, rationale=str(error), metadata={"n": 3})


@scorer
def last_turn(session: list[Trace]) -> str:
    return str(session[-1].data.spans[0].outputs)


@scorer
def turns_as_a_number(session: list[Trace]) -> int:
    return len(session)


SCORERS: dict[str, Scorer] = {
    made.name: made for made in list(globals().values()) if isinstance(made, Scorer)
}
