"""Lets a judge of MLflow's client assess traces, and writes all traces of all experiments as the
client reads them; run by test_published_questions.py.

python usage_judge_script.py URL FILE TRACED
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import mlflow
import requests
from mlflow.entities import Trace
from mlflow.genai.judges import make_judge

URL, FILE, TRACED = sys.argv[1:]
LOGIN = os.environ["MLFLOW_TRACKING_USERNAME"], os.environ["MLFLOW_TRACKING_PASSWORD"]
SECONDS = 60


def ask(method: str, path: str, body: Any = None) -> Any:
    answer = requests.request(method, f"{URL}/ajax-api/{path}", json=body, auth=LOGIN, timeout=60)
    assert answer.ok, (answer.status_code, answer.text)
    return answer.json()


def judge(experiment_id: str, trace_ids: list[str]) -> None:
    fine = make_judge(
        name="fine",
        instructions="Is {{ outputs }} a fine answer to {{ inputs }}?",
        model="gateway:/judge",
        feedback_value_type=bool,
    )
    registered = fine.register(experiment_id=experiment_id)
    request = {
        "experiment_id": experiment_id,
        "serialized_scorer": json.dumps(registered.model_dump()),
        "trace_ids": trace_ids,
        "log_assessments": True,
    }
    [job] = ask("POST", "3.0/mlflow/scorer/invoke", request)["jobs"]
    until = time.monotonic() + SECONDS
    while (done := ask("GET", f"3.0/jobs/{job['job_id']}"))["status"] in ("PENDING", "RUNNING"):
        assert time.monotonic() < until, done
        time.sleep(0.1)
    assert done["status"] == "SUCCEEDED", done


def read(trace: Trace) -> dict[str, Any]:
    info = trace.info
    return {
        "id": info.trace_id,
        "state": info.state.value,
        "start": info.request_time,
        "duration": info.execution_duration,
        "metadata": info.trace_metadata,
        "spans": [
            {
                "id": span.span_id,
                "parent": span.parent_id,
                "name": span.name,
                "start": span.start_time_ns,
                "end": span.end_time_ns,
                "status": f"STATUS_CODE_{span.status.status_code.value}",
                "message": span.status.description,
                "attributes": span.attributes,
            }
            for span in trace.data.spans
        ],
        "assessments": [
            {
                "name": assessment.name,
                "value": assessment.feedback.value if assessment.feedback else None,
                "rationale": assessment.rationale,
                "type": assessment.source.source_type,
                "source": assessment.source.source_id,
            }
            for assessment in info.assessments
        ],
    }


mlflow.set_tracking_uri(URL)
traced = json.loads(Path(TRACED).read_text(encoding="utf-8"))
agents = mlflow.set_experiment("agents")
judge(agents.experiment_id, [*traced["openai"], *traced["langchain"]])
experiments = [experiment.experiment_id for experiment in mlflow.search_experiments()]
traces: list[Any] = mlflow.search_traces(locations=experiments, return_type="list", max_results=500)
Path(FILE).write_text(json.dumps([read(trace) for trace in traces]), encoding="utf-8")
