"""Online scoring: scheduled calls submit jobs in which scorers assess new traces.

A call (sweep) reads the traces since the last sweep, samples which scorers assess which of them,
submits the jobs, and stores its progress. A scorer assesses a trace once, because an assessment's
id follows from trace and scorer. So an interrupted sweep can be repeated.

A gateway endpoint may trace its calls in the experiment whose traces are assessed. The traces of
judges' calls are skipped; otherwise each assessment would be assessed.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from judge_runner import creator_rights, trace_scoring
from mlcore import errors, ids, reserved_tags
from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.entities.evaluation.jobs import ONLINE_SCORING, Creator, Job, batches
from mlcore.entities.evaluation.judges import Judge
from mlcore.entities.evaluation.online_scorers import OnlineScorer, ScoringProgress
from mlcore.entities.evaluation.scorers import SealedSource
from mlcore.entities.experiments import Experiment
from mlcore.entities.gateway import Endpoint
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.entities.traces import Trace
from mlcore.gateway.call_traces import CALLER
from mlcore.gateway.caller import JUDGE
from mlcore.limits.evaluation.code_scorers import is_code
from mlcore.limits.evaluation.judge_endpoints import judge_endpoint, with_endpoint
from mlcore.limits.evaluation.scorer_parsing import parse_scorer
from mlcore.limits.evaluation.scorers import check_payload
from mlcore.observability import logger
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.evaluation import job_runs, jobs, online_scorers, scorers
from mlcore.repos.experiments import experiments
from mlcore.repos.gateway import configuration
from mlcore.repos.traces import search
from mlcore.search.trace_filter import parse_filter, parse_order_by

BUFFER_SECONDS: Final = "MLFLOW_ONLINE_SCORING_DEFAULT_TRACE_COMPLETION_BUFFER_SECONDS"
"""Environment: the age at which a trace is assessed, in seconds; its spans may arrive late."""
_DEFAULT_BUFFER_SECONDS: Final = 300
LOOKBACK_MS: Final = 3_600_000
"""Traces that are older than this and the buffer together when a sweep first sees them are not
assessed."""
MAX_TRACES: Final = 500
"""The most traces of an experiment in one sweep; the next sweep continues after them."""
_MIN_REMAINING_MS: Final = 60_000
"""If a sweep has less time than this left, it begins with no other experiment."""
_NOT_OF_RUNS: Final = "metadata.`mlflow.sourceRun` IS NULL"

run = trace_scoring.run
"""Jobs of online scoring run like other jobs of one scorer."""


class _Scorer(NamedTuple):
    config: OnlineScorer
    judge: Judge | CodeScorer
    serialized: str
    version: int
    source: SealedSource | None
    """None for a judge."""


class _Window(NamedTuple):
    """A time range in ms since the epoch, with both ends included."""

    first: int
    last: int


def sweep(remaining: Callable[[], float]) -> None:
    """Submits the jobs for new traces in all experiments with online scorers. An error in one
    experiment is logged and does not affect the others. Their order is random, so that the
    experiments for which the time is too short are not the same in each sweep.

    Args:
        remaining: returns the remaining milliseconds of the sweep.
    """
    by_experiment: dict[tuple[str, str], list[OnlineScorer]] = {}
    for config in online_scorers.active():
        by_experiment.setdefault((config.workspace, config.experiment_id), []).append(config)
    swept = list(by_experiment.items())
    random.shuffle(swept)
    for (workspace, experiment_id), configs in swept:
        if remaining() < _MIN_REMAINING_MS:
            return
        try:
            found_experiments = experiments.find_existing([experiment_id], workspace)
            if not found_experiments:
                online_scorers.delete_of_experiment(workspace, experiment_id)
            for experiment in found_experiments:
                if experiment.lifecycle_stage == ACTIVE:
                    submit_jobs(experiment, configs)
        except Exception:  # any error: the other experiments must still be swept
            logger.exception("online scoring failed", extra={"experiment_id": experiment_id})


def submit_jobs(experiment: Experiment, configs: Sequence[OnlineScorer]) -> None:
    """Submits the jobs that judge an experiment's new traces: those after the stored position up to
    which its traces were judged. Stores the new position."""
    workspace, now = experiment.workspace, ids.now_ms()
    before = online_scorers.progress(workspace, experiment.experiment_id)
    last = now - 1000 * int(os.environ.get(BUFFER_SECONDS) or _DEFAULT_BUFFER_SECONDS)
    since = min(config.since for config in configs)
    progress = before or ScoringProgress(since, "", 0)
    first = max(progress.trace_time, since, last - LOOKBACK_MS)
    traces = [
        trace
        for trace in _traces(experiment, _Window(first, last), "", MAX_TRACES)
        if (trace.request_time, trace.trace_id) > (progress.trace_time, progress.trace_id)
    ]
    if not traces:
        return
    end = traces[-1] if len(traces) == MAX_TRACES else None
    until = _Window(first, last if end is None else end.request_time)
    endpoints = configuration.read(workspace).endpoints
    scorers_of_experiment = [
        scorer for config in configs if (scorer := _scorer(experiment, config, endpoints))
    ]
    new = [trace for trace in traces if trace.trace_metadata.get(CALLER) != JUDGE]
    new_jobs = _trace_jobs(
        experiment,
        [scorer for scorer in scorers_of_experiment if not scorer.judge.of_sessions],
        new,
        until,
    )
    new_jobs += _session_jobs(
        experiment,
        [scorer for scorer in scorers_of_experiment if scorer.judge.of_sessions],
        new,
        until,
    )
    jobs.submit(_with_timeouts(new_jobs, scorers_of_experiment))
    reached = ScoringProgress(traces[-1].request_time, traces[-1].trace_id, progress.version)
    try:
        online_scorers.set_progress(workspace, experiment.experiment_id, reached)
    except WriteConflict:
        return  # a concurrent sweep has stored its progress; its jobs write the same assessments


def sample(entity_id: str, rated: Sequence[tuple[str, float]]) -> list[str]:
    """Selects the scorers that assess a trace or a session. They are tried in order of their rates,
    highest first, and the first one that is not selected excludes all after it. So the scorers with
    lower rates assess a subset of the traces of the others, and their results can be compared, as
    on MLflow's server. The same id and rates always give the same selection.

    Args:
        entity_id: the id of the trace or the session.
        rated: names of scorers and their rates from 0 to 1.
    """
    selected, before = [], 1.0
    for name, rate in sorted(rated, key=lambda pair: pair[1], reverse=True):
        digest = hashlib.sha256(f"{entity_id}:{name}".encode()).hexdigest()
        if int(digest, 16) / 2**256 > (rate / before if before > 0 else 0):
            break
        selected.append(name)
        before = rate
    return selected


def _trace_jobs(
    experiment: Experiment, candidates: Sequence[_Scorer], traces: Sequence[Trace], window: _Window
) -> list[Job]:
    """Returns the jobs of scorers that assess single traces. Scorers with the same filter are
    sampled together."""
    selected: dict[str, list[str]] = {}
    for text in dict.fromkeys(scorer.config.filter_string or "" for scorer in candidates):
        # Without a filter all new traces match.
        matching = _traces(experiment, window, text, 2 * MAX_TRACES) if text else traces
        matching_ids = {trace.trace_id for trace in matching}
        rated = [
            (scorer.config.name, scorer.config.sample_rate)
            for scorer in candidates
            if (scorer.config.filter_string or "") == text
        ]
        for trace in traces:
            if trace.trace_id in matching_ids:
                for name in sample(trace.trace_id, rated):
                    selected.setdefault(name, []).append(trace.trace_id)
    return [
        _job(experiment, scorer, batch, scorer.config.scorer_id)
        for scorer in candidates
        for batch in batches(selected.get(scorer.config.name, []))
    ]


def _session_jobs(
    experiment: Experiment,
    candidates: Sequence[_Scorer],
    new_traces: Sequence[Trace],
    window: _Window,
) -> list[Job]:
    """Returns the jobs of scorers that assess sessions. Only sessions without a trace after the
    window's end are assessed: the others may continue."""
    if not candidates:
        return []
    session_jobs = []
    named = dict.fromkeys(
        trace.trace_metadata.get(reserved_tags.TRACE_SESSION) for trace in new_traces
    )
    for session in filter(None, named):
        if "'" in session:
            continue  # a filter cannot express a quote in a text
        of_session = f"metadata.`{reserved_tags.TRACE_SESSION}` = '{session}'"
        everything = _Window(0, ids.now_ms() + LOOKBACK_MS)
        traces = _traces(experiment, everything, of_session, MAX_TRACES)
        if not traces or traces[-1].request_time > window.last:
            continue
        rated = []
        for scorer in candidates:
            text = scorer.config.filter_string
            start = _Window(traces[0].request_time, traces[0].request_time)
            matching = _traces(experiment, start, text, MAX_TRACES) if text else traces[:1]
            if traces[0].trace_id in {trace.trace_id for trace in matching}:
                rated.append((scorer.config.name, scorer.config.sample_rate))
        selected = sample(session, rated)
        trace_ids = [trace.trace_id for trace in traces]
        session_jobs += [
            _job(experiment, scorer, trace_ids, f"{scorer.config.scorer_id}:{trace_ids[-1]}")
            for scorer in candidates
            if scorer.config.name in selected
        ]
    return session_jobs


def _traces(experiment: Experiment, window: _Window, text: str, most: int) -> list[Trace]:
    """Returns the traces that match the filter ``text``, oldest first, without those of runs."""
    parts = [_NOT_OF_RUNS, *([text] if text else [])]
    parts += [f"timestamp_ms >= {window.first}", f"timestamp_ms <= {window.last}"]
    query = search.TraceQuery(
        parse_filter(" AND ".join(parts)), parse_order_by(["timestamp_ms ASC"]), None, most
    )
    rows = search.find([experiment.experiment_id], experiment.workspace, query)
    return sorted((trace for _, trace in rows), key=lambda each: (each.request_time, each.trace_id))


def _scorer(
    experiment: Experiment, config: OnlineScorer, endpoints: Mapping[str, Endpoint]
) -> _Scorer | None:
    """Returns the latest version of a scorer, a judge with the name of its gateway endpoint. None
    if the scorer or the endpoint has been deleted; if the scorer can no longer run here; or if its
    owner did not confirm the endpoint or the code, or may no longer judge with it."""
    latest = scorers.latest(experiment, config.name)
    if latest is None:
        return None
    data = json.loads(latest.serialized_scorer)
    text, source = latest.serialized_scorer, None
    if is_code(data):
        source = latest.source()
        if not latest.is_intact() or config.seal != source.seal:
            logger.warning(
                "a scorer's code was changed and not confirmed", extra={"scorer": config.name}
            )
            return None
    else:
        endpoint = endpoints.get(judge_endpoint(data) or "")
        if endpoint is None:
            return None
        data = with_endpoint(data, endpoint.name)
        if config.owner is not None and endpoint.endpoint_id != config.endpoint_id:
            logger.warning(
                "a scorer's endpoint was changed and not confirmed", extra={"scorer": config.name}
            )
            return None
        text = json.dumps(data)
    try:
        judge = parse_scorer(check_payload(text))
        scorer = _Scorer(config, judge, text, latest.version, source)
        creator_rights.check(_job(experiment, scorer, [], ""))
        return scorer
    except (errors.InvalidParameterValue, errors.PermissionDenied) as error:
        logger.warning("a scorer cannot judge", extra={"scorer": config.name, "why": str(error)})
        return None


def _job(experiment: Experiment, scorer: _Scorer, trace_ids: list[str], task: str) -> Job:
    params: dict[str, Any] = {
        "experiment_id": experiment.experiment_id,
        "serialized_scorer": scorer.serialized,
        "scorer_version": scorer.version,
        "scorer_name": scorer.config.name,
        "trace_ids": trace_ids,
        "log_assessments": True,
        "username": None,
        "task": f"online:{task}",
        **({} if scorer.source is None else {"sealed_sources": [scorer.source]}),
    }
    owner = Creator(scorer.config.owner, scorer.config.owner_id)
    return jobs.new(experiment.workspace, ONLINE_SCORING, params, len(trace_ids), owner)


def _with_timeouts(submitted: Sequence[Job], candidates: Sequence[_Scorer]) -> list[Job]:
    """Returns the jobs with their timeouts. A job's timeout includes the time of the code in all
    jobs, because they share processors and runners."""
    code = 0.0
    for scorer in candidates:
        judged = [
            1 if scorer.judge.of_sessions else len(job.params["trace_ids"])
            for job in submitted
            if job.params["scorer_name"] == scorer.config.name
        ]
        code += job_runs.code_seconds([scorer.judge], judged)
    return [job._replace(timeout=job_runs.timeout(0, code)) for job in submitted]
