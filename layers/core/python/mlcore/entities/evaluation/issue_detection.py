"""Issue detection: what its runs and jobs are called, and the categories of issues that MLflow's UI
offers."""

from __future__ import annotations

from typing import Final

JOB_NAME: Final = "invoke_issue_detection"
RUN_TYPE: Final = "issue_detection"
"""Value of the tag ``mlflow.runType`` of a run that records a detection."""

JOB_TAG: Final = "mlflow.issueDetection.jobId"
TRIGGER_TAG: Final = "mlflow.issueDetection.trigger"
BY_SCHEDULE: Final = "schedule"
"""Value of the tag of runs that a schedule has started."""
WINDOW_START_TAG: Final = "mlflow.issueDetection.windowStart"
WINDOW_END_TAG: Final = "mlflow.issueDetection.windowEnd"
ERROR_TAG: Final = "mlflow.issueDetection.error"
COST_TAG: Final = "total_cost_usd"
ANALYZED_TAG: Final = "total_traces_analyzed"
"""Traces that the model was shown, at most those of :data:`MAX_GROUPS` sessions."""

LATENCY: Final = "latency"
COST: Final = "cost"
CATEGORIES: Final = {
    "correctness": "what it states is true and follows from the data that it had",
    LATENCY: "it answers in a time that suits the task",
    "execution": "its steps and tool calls end without errors, and its actions are completed",
    "adherence": "it keeps to its instructions, limits, policies and formats",
    "relevance": "it answers what was asked, so that the user need not ask again",
    "safety": "it says nothing harmful, private or inappropriate",
    COST: "it spends no more tokens and tool calls than calls of its kind usually do",
}
"""MLflow's categories of issues, each with the requirement that an application fails to meet."""

MAX_CATEGORIES: Final = 20
MAX_CATEGORY_LENGTH: Final = 100
MAX_INSTRUCTIONS_LENGTH: Final = 10_000
MAX_GROUPS: Final = 100
"""Maximum number of sessions (or traces without a session) that the model is shown. If there are
more, a sample is taken."""
MAX_ISSUES: Final = 20
"""Maximum number of issues that one detection reports."""
