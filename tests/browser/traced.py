"""An agent's traces, made with the real client: conversations, a failure, tokens and feedback."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import mlflow
from mlflow.entities import AssessmentSource, SpanType

EXPERIMENT = "agent"
QUESTIONS = {
    "talk-1": ("ana", ["Where is Oslo?", "How cold is it there?"]),
    "talk-2": ("ben", ["Who wrote Faust?"]),
}
SOURCE = AssessmentSource(source_type="HUMAN", source_id="reviewer@example.com")


@mlflow.trace(span_type=SpanType.TOOL)
def look_up(words: str) -> list[str]:
    if "unknown" in words:
        raise LookupError("nothing found")
    return [f"what the atlas says: {words}"]


@mlflow.trace(span_type=SpanType.CHAT_MODEL)
def complete(question: str, facts: list[str]) -> dict[str, Any]:
    span = mlflow.get_current_active_span()
    assert span is not None
    used = {"input_tokens": 12 + len(facts), "output_tokens": 5, "total_tokens": 17 + len(facts)}
    span.set_attributes({"mlflow.chat.tokenUsage": used, "mlflow.llm.model": "gpt-4o-mini"})
    return {"role": "assistant", "content": f"An answer to: {question}"}


@mlflow.trace(name="answer", span_type=SpanType.AGENT)
def answer(question: str, session: str, user: str) -> str:
    metadata = {"mlflow.trace.session": session, "mlflow.trace.user": user}
    mlflow.update_current_trace(tags={"city": "yes"}, metadata=metadata)
    return str(complete(question, look_up(question))["content"])


def last_trace() -> str:
    trace_id = mlflow.get_last_active_trace_id()
    assert trace_id is not None
    return trace_id


def main() -> None:
    mlflow.set_tracking_uri(os.environ["MLFLOW_TRACKING_URI"])
    experiment = mlflow.set_experiment(EXPERIMENT).experiment_id
    mlflow.set_experiment_tag("mlflow.experimentKind", "genai_development")
    made = []
    for session, (user, questions) in QUESTIONS.items():
        for question in questions:
            answer(question, session, user)
            made.append(last_trace())
    try:
        answer("an unknown place", "talk-2", "ben")
    except LookupError:
        failed = last_trace()
    mlflow.flush_trace_async_logging()
    for number, trace_id in enumerate(made):
        mlflow.log_feedback(
            trace_id=trace_id,
            name="helpful",
            value=number != 1,
            rationale="a person has read it",
            source=SOURCE,
        )
    mlflow.log_expectation(
        trace_id=made[0], name="expected", value="in the south of Norway", source=SOURCE
    )
    sys.stdout.write(json.dumps({"experiment": experiment, "made": made, "failed": failed}))


if __name__ == "__main__":
    main()
