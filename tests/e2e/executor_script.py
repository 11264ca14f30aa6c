"""Runs scorers as MLflow's container executor does, and prints what its host side accepts.

    python executor_script.py FILE

The file is JSON with ``scorers`` (the serialized text by name), ``traces`` and ``experiment_id``.
Standard output, last line: JSON with a trace's result by scorer and trace.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from mlflow.entities import Trace
from mlflow.genai.scorers import job


def main() -> None:
    task = json.loads(Path(sys.argv[1]).read_text())
    traces = {trace["info"]["trace_id"]: Trace.from_dict(trace) for trace in task["traces"]}
    results: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.json"
        path.write_text(json.dumps(task["traces"]))
        for name, text in task["scorers"].items():
            answer = job._score_traces_from_file(text, str(path), task["experiment_id"], 1)
            results[name] = {}
            for trace_id, raw in json.loads(json.dumps(answer)).items():
                feedback, failures = job._trace_result_from_container(raw)
                job._add_host_metadata(feedback, traces[trace_id], json.loads(text), 1)
                results[name][trace_id] = {
                    "assessments": [each.to_dictionary() for each in feedback],
                    "failures": list(map(vars, failures)),
                }
    sys.stdout.write("\n" + json.dumps(results))


main()
