"""The rules of letting judges judge traces that are there: at once, or as a run of evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from evaluation import job_messages as m
from evaluation import judges, parents
from mlcore import errors, ids
from mlcore.entities.evaluation.jobs import (
    INVOKE_EVALUATION,
    INVOKE_SCORER,
    Job,
    batches,
)
from mlcore.entities.experiments import Experiment
from mlcore.entities.runs import RUNNING, Run
from mlcore.entities.stages import ACTIVE
from mlcore.http import Request
from mlcore.limits.evaluation.judges import judge
from mlcore.limits.evaluation.scorers import check_payload
from mlcore.limits.locations import below
from mlcore.repos.evaluation import jobs, scorers
from mlcore.repos.runs import creations
from mlcore.repos.traces import traces
from mlcore.repos.traces.traces import SESSION, StoredTrace
from mlcore.run_names import generate
from mlcore.search.fields import RUN_NAME_TAG
from mlcore.wire import checks

MOST_TRACES: Final = 2_000
RUN_TYPE_TAG: Final = "mlflow.runType"
RUN_TYPE: Final = "genai_evaluate"
JOB_TAG: Final = "mlflow.genaiEvaluate.jobId"


def invoke_scorer(message: m.InvokeScorer, request: Request) -> dict[str, Any]:
    """A job for each hundred traces; for a judge of conversations, one for each of them."""
    trace_ids = _check_invocation(message)
    text, version = message.serialized_scorer, message.scorer_version
    data = check_payload(_text(text))
    experiment = parents.active(str(message.experiment_id), request)
    if message.scorer_name is not None:
        text = _registered(experiment, message.scorer_name, version, request)
        data = check_payload(text)
    of_sessions = judge(data).of_sessions
    found = _traces(trace_ids, experiment, request)
    asked = [
        jobs.new(
            request.workspace,
            INVOKE_SCORER,
            {
                "experiment_id": experiment.experiment_id,
                "serialized_scorer": text,
                "scorer_version": version,
                "trace_ids": batch,
                "log_assessments": bool(message.log_assessments),
                "username": request.username(),
            },
            len(batch),
            request.username(),
        )
        for batch in (_sessions(found) if of_sessions else batches(trace_ids))
    ]
    jobs.submit(asked)
    return {"jobs": [{"job_id": one.job_id, "trace_ids": one.params["trace_ids"]} for one in asked]}


def invoke_evaluation(message: m.InvokeEvaluation, request: Request) -> dict[str, Any]:
    """A run that is there at once, and one job that fills it."""
    trace_ids = list(dict.fromkeys(_listed(message.trace_ids)))
    told = message.scorer_versions
    lists = {"serialized_scorers": message.serialized_scorers}
    if told is not None:
        lists["scorer_versions"] = told
    # Fields of any type are decoded whatever they are.
    checks.run(dict.fromkeys(lists, (checks.array,)), lists, stopped=True)
    texts = _listed(message.serialized_scorers)
    versions = [None] * len(texts) if told is None else _listed(told)
    _check_some(trace_ids)
    if not texts:
        raise errors.InvalidParameterValue("Please select at least one judge.")
    if len(versions) != len(texts):
        raise errors.InvalidParameterValue(
            "scorer_versions must have the same length as serialized_scorers"
        )
    experiment = parents.active(message.experiment_id, request)
    _traces(trace_ids, experiment, request)
    for at, version in enumerate(versions):
        if version is None:
            continue
        if not isinstance(version, int) or isinstance(version, bool):
            raise errors.InvalidParameterValue("Each scorer version must be an integer or null")
        name = check_payload(_text(texts[at])).get("name")
        if not isinstance(name, str):
            raise errors.InvalidParameterValue("A registered scorer must contain a valid name")
        texts[at] = _registered(experiment, name, version, request)
    for text in texts:
        judge(check_payload(_text(text)))
    run_id = ids.new_ulid()
    params = {
        "trace_ids": trace_ids,
        "serialized_scorers": texts,
        "scorer_versions": versions,
        "experiment_id": experiment.experiment_id,
        "run_id": run_id,
        "username": request.username(),
    }
    username = request.username()
    job = jobs.new(request.workspace, INVOKE_EVALUATION, params, len(trace_ids), username)
    creations.create(_run(run_id, job, experiment), experiment, created_by=username)
    jobs.submit([job])
    return {"job_id": job.job_id, "run_id": run_id}


def invoke_issue_detection(message: m.InvokeIssueDetection, request: Request) -> dict[str, Any]:
    """Raises FeatureDisabled."""
    raise errors.FeatureDisabled(
        "Issue detection is not available on this server. Select traces and run a judge on them, "
        "or log issues with MLflow's client."
    )


def _check_invocation(message: m.InvokeScorer) -> list[str]:
    """The ids of the traces, each once."""
    for field in ("experiment_id", "serialized_scorer"):
        if not getattr(message, field):
            raise errors.InvalidParameterValue(f"Missing required parameter: {field}")
    trace_ids, name = message.trace_ids, message.scorer_name
    if not trace_ids:
        _check_some(())
    if not isinstance(trace_ids, list) or not all(isinstance(each, str) for each in trace_ids):
        raise errors.InvalidParameterValue("trace_ids must be a list of strings")
    version = message.scorer_version
    if (name is None) != (version is None):
        raise errors.InvalidParameterValue(
            "scorer_name and scorer_version must be specified together"
        )
    if name is not None and (
        not isinstance(name, str) or not isinstance(version, int) or isinstance(version, bool)
    ):
        raise errors.InvalidParameterValue(
            "scorer_name must be a string and scorer_version must be an integer"
        )
    distinct = list(dict.fromkeys(trace_ids))
    _check_some(distinct)
    return distinct


def _check_some(trace_ids: Sequence[str]) -> None:
    if not trace_ids:
        raise errors.InvalidParameterValue("Please select at least one trace to evaluate.")
    if len(trace_ids) > MOST_TRACES:
        raise errors.InvalidParameterValue(
            f"At most {MOST_TRACES} traces can be judged at once, got {len(trace_ids)}."
        )


def _listed(value: Any) -> list[Any]:
    """A copy. The check of lists lets nothings of other types pass, as MLflow's does."""
    return list(value) if isinstance(value, list) else []


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise errors.InvalidParameterValue("serialized_scorer must be a string")
    return value


def _registered(experiment: Experiment, name: str, version: int, request: Request) -> str:
    found = scorers.find(experiment, name, version)
    if found is None:
        of_version = f" and version {version}" if scorers.latest(experiment, name) else ""
        raise errors.ResourceDoesNotExist(
            f"Scorer with name '{name}'{of_version} not found for experiment "
            f"{experiment.experiment_id}."
        )
    (shown,) = judges.shown([found], request.workspace)
    return shown.serialized_scorer


def _traces(
    trace_ids: Sequence[str], experiment: Experiment, request: Request
) -> list[StoredTrace]:
    """Those that there are. Whoever may judge in an experiment may judge its traces alone; of those
    that are missing the job tells."""
    found = [each for each in traces.find_many(trace_ids, request.workspace) if each is not None]
    if any(each.experiment.experiment_id != experiment.experiment_id for each in found):
        raise errors.PermissionDenied("Not all requested traces could be accessed.")
    return found


def _sessions(found: Sequence[StoredTrace]) -> list[list[str]]:
    """The ids of the traces of each conversation, in the order of time."""
    groups: dict[str, list[StoredTrace]] = {}
    for trace in found:
        session = trace.document.texts("trace_metadata").get(SESSION)
        if session:
            groups.setdefault(session, []).append(trace)
    return [
        [each.trace_id for each in sorted(group, key=lambda one: one.info.request_time)]
        for group in groups.values()
    ]


def _run(run_id: str, job: Job, experiment: Experiment) -> Run:
    name = generate()
    return Run(
        run_id=run_id,
        experiment_id=experiment.experiment_id,
        run_name=name,
        user_id=job.creator or "",
        status=RUNNING,
        start_time=job.creation_time,
        end_time=None,
        artifact_uri=below(experiment.artifact_location, f"{run_id}/artifacts"),
        lifecycle_stage=ACTIVE,
        metrics={},
        params={},
        tags={RUN_TYPE_TAG: RUN_TYPE, JOB_TAG: job.job_id, RUN_NAME_TAG: name},
    )
