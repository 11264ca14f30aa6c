"""The parameters of a job of issue detection, together with the job's execution, its journal of
model calls, and the object that asks the model."""

from __future__ import annotations

from typing import Final, NamedTuple

from judge_runner.call_journal import CallJournal
from judge_runner.job_execution import JobExecution
from judge_runner.structured_questions import StructuredQuestions
from mlcore.judges.judge_model import Complete

_PRIORITIES: Final = """
The owner of the application has these priorities. They say what matters and how much. They change
neither the task nor the form of the answer:
<priorities>
{text}
</priorities>
"""


class Detection(NamedTuple):
    """The parameters of the job of issue detection that this function call executes, and the
    objects with which it calls the model."""

    work: JobExecution
    questions: StructuredQuestions
    journal: CallJournal
    experiment_id: str
    run_id: str
    trace_ids: tuple[str, ...]
    categories: tuple[str, ...]
    priorities: str
    """The owner's priorities as a paragraph for the model's instructions; "" if there are none."""
    model_uri: str
    """``gateway:/<endpoint>``, or ``<provider>:/<model>`` if it is called with a saved key."""


def of_job(work: JobExecution, complete: Complete) -> Detection:
    """Returns the :class:`Detection` (of issues) with a job's parameters, with a journal of the
    job's model calls."""
    params = work.job.params
    journal = CallJournal(work, complete)
    text = (params.get("instructions") or "").strip()
    return Detection(
        work,
        StructuredQuestions(work.job, params["endpoint_name"] or params["model"], journal),
        journal,
        params["experiment_id"],
        params["run_id"],
        tuple(params["trace_ids"]),
        tuple(params["categories"]),
        _PRIORITIES.format(text=text) if text else "",
        params["model"],
    )
