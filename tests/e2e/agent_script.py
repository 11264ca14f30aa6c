"""Logs two traces of an agent, which are one session, with an expectation and a vote each.

Arguments: the id of the experiment. Standard output, last line: the ids of the traces as JSON.
"""

from __future__ import annotations

import json
import sys

import mlflow
from mlflow.entities import AssessmentSource


def main(experiment_id: str) -> None:
    mlflow.set_experiment(experiment_id=experiment_id)
    ids = []
    for question, answer in (("Why?", "Because it is so."), ("And how?", "Nobody knows")):
        with mlflow.start_span("agent", span_type="AGENT") as root:
            root.set_inputs({"question": question})
            with mlflow.start_span("look up", span_type="TOOL") as tool:
                tool.set_inputs({"word": question})
                tool.set_outputs(["one", {"two": 2}])
            with mlflow.start_span("model", span_type="CHAT_MODEL") as model:
                model.set_attribute("temperature", 0.5)
                used = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
                model.set_attribute("mlflow.chat.tokenUsage", used)
                model.record_exception(ValueError("tried again"))
                model.set_outputs(answer)
            root.set_outputs(answer)
            mlflow.update_current_trace(
                tags={"kind": "question"}, metadata={"mlflow.trace.session": "s-1"}
            )
        ids.append(root.trace_id)
    mlflow.flush_trace_async_logging()
    for trace_id in ids:
        mlflow.log_expectation(trace_id=trace_id, name="expected_response", value="Nobody knows")
        human = AssessmentSource(source_type="HUMAN", source_id="a")
        mlflow.log_feedback(trace_id=trace_id, name="thumbs", value=True, source=human)
    sys.stdout.write("\n" + json.dumps(ids))


main(sys.argv[1])
