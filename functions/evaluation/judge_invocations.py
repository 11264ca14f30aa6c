"""Starts jobs in which judges assess existing traces: either without a run, or as an evaluation
run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from evaluation import experiment_lookup, gateway_scorers, model_checks
from evaluation import job_messages as m
from mlcore import errors, ids, reserved_tags
from mlcore.entities.evaluation.jobs import (
    INVOKE_EVALUATION,
    INVOKE_SCORER,
    batches,
)
from mlcore.entities.evaluation.scorers import ScorerVersion, SealedSource
from mlcore.entities.experiments import Experiment
from mlcore.http import Request
from mlcore.limits.evaluation.code_scorers import sealed_source
from mlcore.limits.evaluation.scorer_parsing import parse_scorer
from mlcore.limits.evaluation.scorers import check_payload
from mlcore.repos.evaluation import job_runs, jobs, scorers
from mlcore.repos.traces import traces
from mlcore.repos.traces.traces import StoredTrace
from mlcore.wire import checks

MAX_TRACES: Final = 2_000
"""The most traces that one request may name for a judge."""
MAX_VERSION: Final = 2**31 - 1
"""The largest version number that a registered scorer can have."""
MAX_EVALUATED: Final = 10_000
"""The most traces that one request may name for an evaluation: as many ids as the job's item can
hold."""
RUN_TYPE: Final = "genai_evaluate"
JOB_TAG: Final = "mlflow.genaiEvaluate.jobId"


def invoke_scorer(message: m.InvokeScorer, request: Request) -> dict[str, Any]:
    """Submits jobs in which a scorer assesses the traces that the request names: one job per 100
    traces; for a judge of conversations, one job per session, without traces that have no session.
    Returns the ids of the jobs and their traces."""
    trace_ids = _check_invocation(message)
    text, version = message.serialized_scorer, message.scorer_version
    data = check_payload(_check_text(text))
    experiment = experiment_lookup.get_active(str(message.experiment_id), request)
    source = None
    if message.scorer_name is not None:
        registered = _load_registered(experiment, message.scorer_name, version, request)
        text, source = registered.serialized_scorer, sealed_source(registered)
        model_checks.check_endpoints_of([text], request)
        data = check_payload(text)
    scorer = parse_scorer(data)
    stored_traces = load_traces(trace_ids, experiment, request)
    creator = request.creator()
    groups = _group_by_session(stored_traces) if scorer.of_sessions else batches(trace_ids)
    judged = [1 if scorer.of_sessions else len(batch) for batch in groups]
    timeout = job_runs.timeout(0, job_runs.code_seconds([scorer], judged))
    submitted = [
        jobs.new(
            request.workspace,
            INVOKE_SCORER,
            {
                "experiment_id": experiment.experiment_id,
                "serialized_scorer": text,
                "scorer_version": version,
                **({} if message.scorer_name is None else {"scorer_name": message.scorer_name}),
                **({} if source is None else {"sealed_sources": [source]}),
                "trace_ids": batch,
                "log_assessments": bool(message.log_assessments),
                "username": creator.username,
            },
            len(batch),
            creator,
            timeout,
        )
        for batch in groups
    ]
    jobs.submit(submitted)
    return {
        "jobs": [{"job_id": job.job_id, "trace_ids": job.params["trace_ids"]} for job in submitted]
    }


def invoke_evaluation(message: m.InvokeEvaluation, request: Request) -> dict[str, Any]:
    """Creates a job in which judges assess the named traces, and the run to which the job will log
    their results. Returns the ids of the job and the run.

    Raises:
        RequestLimitExceeded: the job queue accepts no jobs; neither job nor run is stored.
    """
    trace_ids = list(dict.fromkeys(copy_list(message.trace_ids)))
    given_versions = message.scorer_versions
    lists = {"serialized_scorers": message.serialized_scorers}
    if given_versions is not None:
        lists["scorer_versions"] = given_versions
    # These fields are decoded as any type, so their types are checked here.
    checks.run(dict.fromkeys(lists, (checks.array,)), lists, stopped=True)
    texts = copy_list(message.serialized_scorers)
    versions = [None] * len(texts) if given_versions is None else copy_list(given_versions)
    _check_count(trace_ids, MAX_EVALUATED)
    if not texts:
        raise errors.InvalidParameterValue("Please select at least one judge.")
    if len(versions) != len(texts):
        raise errors.InvalidParameterValue(
            "scorer_versions must have the same length as serialized_scorers"
        )
    experiment = experiment_lookup.get_active(message.experiment_id, request)
    load_traces(trace_ids, experiment, request)
    names: list[str | None] = [None] * len(texts)
    sources: list[SealedSource | None] = [None] * len(texts)
    for index, version in enumerate(versions):
        if version is None:
            continue
        if not isinstance(version, int) or isinstance(version, bool):
            raise errors.InvalidParameterValue("Each scorer version must be an integer or null")
        name = check_payload(_check_text(texts[index])).get("name")
        if not isinstance(name, str):
            raise errors.InvalidParameterValue("A registered scorer must contain a valid name")
        names[index] = name
        scorer = _load_registered(experiment, name, version, request)
        texts[index], sources[index] = scorer.serialized_scorer, sealed_source(scorer)
    registered = [
        text for text, version in zip(texts, versions, strict=True) if version is not None
    ]
    model_checks.check_endpoints_of(registered, request)
    parsed = [parse_scorer(check_payload(_check_text(text))) for text in texts]
    run_id = ids.new_ulid()
    params = {
        "trace_ids": trace_ids,
        "serialized_scorers": texts,
        "scorer_versions": versions,
        "scorer_names": names,
        "experiment_id": experiment.experiment_id,
        "run_id": run_id,
        "username": request.username(),
        **({"sealed_sources": sources} if any(sources) else {}),
    }
    job = jobs.new(
        request.workspace,
        INVOKE_EVALUATION,
        params,
        len(trace_ids),
        request.creator(),
        job_runs.timeout(
            len(trace_ids) * len(texts), job_runs.code_seconds(parsed, [len(trace_ids)])
        ),
    )
    tags = {reserved_tags.RUN_TYPE: RUN_TYPE, JOB_TAG: job.job_id}
    job_runs.submit(job, job_runs.new_run(job, experiment, tags=tags), experiment)
    return {"job_id": job.job_id, "run_id": run_id}


def _check_invocation(message: m.InvokeScorer) -> list[str]:
    """Validates the request and returns the ids of its traces without duplicates. Raises
    InvalidParameterValue."""
    for field in ("experiment_id", "serialized_scorer"):
        if not getattr(message, field):
            raise errors.InvalidParameterValue(f"Missing required parameter: {field}")
    trace_ids, name = message.trace_ids, message.scorer_name
    if not trace_ids:
        _check_count((), MAX_TRACES)
    if not isinstance(trace_ids, list) or not all(
        isinstance(trace_id, str) for trace_id in trace_ids
    ):
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
    _check_count(distinct, MAX_TRACES)
    return distinct


def _check_count(trace_ids: Sequence[str], most: int) -> None:
    if not trace_ids:
        raise errors.InvalidParameterValue("Please select at least one trace to evaluate.")
    if len(trace_ids) > most:
        raise errors.InvalidParameterValue(
            f"At most {most} traces can be judged at once, got {len(trace_ids)}."
        )


def copy_list(value: Any) -> list[Any]:
    """Returns a copy of a list; [] for a value of another type, which the callers have refused
    before."""
    return list(value) if isinstance(value, list) else []


def _check_text(value: Any) -> str:
    if not isinstance(value, str):
        raise errors.InvalidParameterValue("serialized_scorer must be a string")
    return value


def _load_registered(
    experiment: Experiment, name: str, version: int, request: Request
) -> ScorerVersion:
    """Returns a registered version, with the name of its endpoint. Raises ResourceDoesNotExist."""
    is_possible = 0 < version <= MAX_VERSION
    scorer = scorers.find(experiment, name, version) if is_possible else None
    if scorer is None:
        of_version = f" and version {version}" if scorers.latest(experiment, name) else ""
        raise errors.ResourceDoesNotExist(
            f"Scorer with name '{name}'{of_version} not found for experiment "
            f"{experiment.experiment_id}."
        )
    (shown,) = gateway_scorers.with_endpoint_names([scorer], request.workspace)
    return shown


def load_traces(
    trace_ids: Sequence[str], experiment: Experiment, request: Request
) -> list[StoredTrace]:
    """Returns those of the traces with these ids that exist; the job that judges them reports the
    missing ones. Raises PermissionDenied if a trace is in another experiment than ``experiment``,
    because the caller's permission is for ``experiment`` only."""
    stored_traces = [
        each for each in traces.find_many(trace_ids, request.workspace) if each is not None
    ]
    if any(
        stored_trace.experiment.experiment_id != experiment.experiment_id
        for stored_trace in stored_traces
    ):
        raise errors.PermissionDenied("Not all requested traces could be accessed.")
    return stored_traces


def _group_by_session(stored_traces: Sequence[StoredTrace]) -> list[list[str]]:
    """Returns the trace ids of each session, in order of time. Traces without a session are left
    out."""
    groups: dict[str, list[StoredTrace]] = {}
    for trace in stored_traces:
        session = trace.document.texts("trace_metadata").get(reserved_tags.TRACE_SESSION)
        if session:
            groups.setdefault(session, []).append(trace)
    return [
        [trace.trace_id for trace in sorted(group, key=lambda each: each.info.request_time)]
        for group in groups.values()
    ]
