"""Creates what people review in the demo: an issue that was detected, queues of traces with
questions, and a saved view of the traces."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from functools import partial
from typing import Any, Final

from demo import demo_runs
from demo.conversations import TURNS, trace_name
from mlcore import reserved_tags
from mlcore.entities.evaluation import issue_detection
from mlcore.http.api_client import ApiClient
from mlcore.ids import now_ms

DETECTION: Final = "demo-issue-detection"
ISSUE: Final = "Opening hours are invented"
QUEUE: Final = "Answers at the counter"
_REVIEWER: Final = "default"
"""The user whose personal queue the UI shows if no login is required."""
_RESULT: Final = "mlflow.issueDetection.result."
"""Prefix of the tags from which the UI shows a detection's result."""
_VIEW_TAG: Final = "mlflow.tracesV4ViewState.mlflow-demo-chains"
"""The tag in which MLflow's UI keeps a saved view of traces."""
_VIEW: Final = {
    "single": {"q": "chain", "startTimeLabel": "ALL", "cols": "start_time,session,input,output"},
    "multi": {},
}
_QUESTIONS: Final[tuple[dict[str, Any], ...]] = (
    {
        "name": "tone",
        "type": "FEEDBACK",
        "input": {"categorical": {"options": ["Friendly", "Neutral", "Rude"]}},
        "instruction": "How does the assistant speak to the customer?",
        "enable_comment": True,
    },
    {
        "name": "would_buy",
        "type": "FEEDBACK",
        "input": {"pass_fail": {"positive_label": "Helped", "negative_label": "Did not help"}},
        "instruction": "Does the answer help the customer to decide?",
    },
    {
        "name": "right_answer",
        "type": "EXPECTATION",
        "input": {"text": {}},
        "instruction": "If the answer is wrong, what would you say?",
    },
)


def make_issue(client: ApiClient, experiment_id: str) -> None:
    """Creates the demo's issue, about answers that no passage supports, and the run of the issue
    detection that is said to have found it. The traces must exist."""
    found_in = [number for number, turn in enumerate(TURNS) if not turn.is_grounded]
    tags = {
        reserved_tags.RUN_TYPE: issue_detection.RUN_TYPE,
        "categories": "correctness",
        "model": "openai:/gpt-4o-mini",
        "total_traces": str(len(TURNS)),
        "total_traces_analyzed": str(len(TURNS)),
        "total_cost_usd": "0.01",
        f"{_RESULT}issues": "1",
        f"{_RESULT}totalTracesAnalyzed": str(len(TURNS)),
        f"{_RESULT}summary": f"One issue in {len(TURNS)} traces: {ISSUE.lower()}.",
    }
    run = demo_runs.find_or_create(client, experiment_id, DETECTION, tags)
    issue_id = "iss-" + hashlib.sha256(f"demo {experiment_id}".encode()).hexdigest()[:32]
    client.create(
        "/3.0/mlflow/issues",
        issue_id=issue_id,
        experiment_id=experiment_id,
        name=ISSUE,
        description="The assistant states opening hours although no passage was retrieved.",
        status="pending",
        severity="high",
        root_causes=["The prompt does not say what to do if nothing is retrieved."],
        categories=["correctness"],
        source_run_id=run["run_id"],
    )
    trace_ids = [trace_name(experiment_id, number) for number in found_in]
    client.run_in_parallel(
        [partial(_link, client, trace_id, issue_id, run["run_id"]) for trace_id in trace_ids]
    )
    client.post("/2.0/mlflow/traces/link-to-run", trace_ids=trace_ids, run_id=run["run_id"])
    demo_runs.end(client, run, {})


def _link(client: ApiClient, trace_id: str, issue_id: str, run_id: str) -> None:
    trace_info = client.get(f"/3.0/mlflow/traces/{trace_id}")["trace"]["trace_info"]
    names = {each["assessment_name"] for each in trace_info.get("assessments", ())}
    if issue_id not in names:
        assessment = {
            "trace_id": trace_id,
            "assessment_name": issue_id,
            "source": {"source_type": "LLM_JUDGE", "source_id": run_id},
            "issue": {"issue_name": ISSUE},
            "rationale": "No passage says so.",
            "metadata": {reserved_tags.ASSESSMENT_RUN: run_id},
        }
        client.post(f"/3.0/mlflow/traces/{trace_id}/assessments", assessment=assessment)


def make_queues(client: ApiClient, experiment_id: str) -> None:
    """Creates the demo's label schemas (the questions), a review queue with the traces of all turns
    that did not fail, one of them marked as done and one as declined, and the reviewer's personal
    queue with three traces. The traces must exist."""
    reviewer = client.user_name or _REVIEWER
    schema_ids = [_question(client, experiment_id, question) for question in _QUESTIONS]
    here = {"experiment_id": experiment_id}
    path = "/3.0/mlflow/review-queues"
    client.create(
        f"{path}/create",
        **here,
        name=QUEUE,
        queue_type="CUSTOM",
        users=[reviewer],
        schema_ids=schema_ids,
    )
    queue = client.get(f"{path}/get-by-name", **here, name=QUEUE)["review_queue"]
    own = client.post(f"{path}/get-or-create-user", **here, user=reviewer)["review_queue"]
    trace_ids = [trace_name(experiment_id, number) for number in range(len(TURNS))]
    for queue_id, items in ((queue["queue_id"], trace_ids), (own["queue_id"], trace_ids[:3])):
        client.post(f"{path}/items/add", queue_id=queue_id, item_type="TRACE", item_ids=items)
    for item_id, status in zip(trace_ids, ("COMPLETE", "DECLINED"), strict=False):
        client.post(
            f"{path}/items/set-status",
            queue_id=queue["queue_id"],
            item_id=item_id,
            status=status,
            completed_by=reviewer,
        )


def _question(client: ApiClient, experiment_id: str, question: dict[str, Any]) -> str:
    path, here = "/3.0/mlflow/label-schemas", {"experiment_id": experiment_id}
    client.create(f"{path}/create", **here, **question)
    schema = client.get(f"{path}/get-by-name", **here, name=question["name"])["label_schema"]
    return str(schema["schema_id"])


def save_view(client: ApiClient, experiment_id: str) -> None:
    """Saves a view of the traces as MLflow's UI does: in an experiment tag, its state deflated."""
    state = zlib.compress(json.dumps(_VIEW, separators=(",", ":")).encode())
    view = {
        "name": "Talks about chains",
        "createdAt": now_ms(),
        "state": "deflate;" + base64.b64encode(state).decode(),
    }
    client.post(
        "/2.0/mlflow/experiments/set-experiment-tag",
        experiment_id=experiment_id,
        key=_VIEW_TAG,
        value=json.dumps(view, separators=(",", ":")),
    )


def keep(_client: ApiClient, _experiment_id: str) -> None:
    """Deletes nothing: the demo's issue, review queues and saved view are deleted with the demo's
    experiment."""
