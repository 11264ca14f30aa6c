"""Scorers that judge by themselves: which of the new traces they are given, and when.

A scheduled call looks at the traces that have come since the last one, gives each scorer its share
of them as a job, and notes how far it came. A scorer judges a trace once, for its assessment has an
id that the trace and the scorer make; a call that is cut short therefore costs a look, no more.

An endpoint of the gateway may write its calls into the experiment that is judged. Those that judges
make are passed over, or each judgement would be judged.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from judge_runner import scoring
from mlcore import errors, ids
from mlcore.entities.evaluation.jobs import Job, batches
from mlcore.entities.evaluation.judges import Judge
from mlcore.entities.evaluation.online_scorers import OnlineScorer, Progress
from mlcore.entities.experiments import Experiment
from mlcore.entities.gateway import Endpoint
from mlcore.entities.stages import ACTIVE
from mlcore.entities.traces import Trace
from mlcore.gateway.call_traces import CALLER
from mlcore.gateway.recording import JUDGE
from mlcore.limits.evaluation.judges import judge
from mlcore.limits.evaluation.scorers import asking, endpoint_asked
from mlcore.observability import logger
from mlcore.repos.evaluation import jobs, online_scorers, scorers
from mlcore.repos.experiments import experiments
from mlcore.repos.gateway import configuration
from mlcore.repos.traces import search
from mlcore.repos.traces.traces import SESSION
from mlcore.search.trace_filter import parse_filter, parse_order_by
from mlcore.settle import Conflict

JOB_NAME: Final = "run_online_trace_scorer"
BUFFER_SECONDS: Final = "MLFLOW_ONLINE_SCORING_DEFAULT_TRACE_COMPLETION_BUFFER_SECONDS"
"""Environment: how old a trace is when it is looked at, for spans may come late."""
_BUFFER: Final = 300
LOOKBACK_MS: Final = 3_600_000
"""What is older when it is first seen is left alone."""
MOST_TRACES: Final = 500
"""Of an experiment in one call; the others are for the next."""
_NOT_OF_RUNS: Final = "metadata.`mlflow.sourceRun` IS NULL"

run = scoring.run
"""Such a job is one of scoring."""


class _Scorer(NamedTuple):
    config: OnlineScorer
    judge: Judge
    serialized: str
    version: int


class _Window(NamedTuple):
    """From one time to another, both included, in milliseconds."""

    first: int
    last: int


def sweep() -> None:
    """Looks for new traces in all experiments that have such scorers."""
    by_place: dict[tuple[str, str], list[OnlineScorer]] = {}
    for config in online_scorers.active():
        by_place.setdefault((config.workspace, config.experiment_id), []).append(config)
    for (workspace, experiment_id), configs in by_place.items():
        try:
            known = experiments.known([experiment_id], workspace)
            if not known:
                online_scorers.forget(workspace, experiment_id)
            for experiment in known:
                if experiment.lifecycle_stage == ACTIVE:
                    look(experiment, configs)
        except Exception:  # the scorers of other experiments are looked at
            logger.exception("online scoring failed", extra={"experiment_id": experiment_id})


def look(experiment: Experiment, configs: Sequence[OnlineScorer]) -> None:
    """Gives the scorers of an experiment the traces that have come since the last look."""
    workspace, now = experiment.workspace, ids.now_ms()
    before = online_scorers.progress(workspace, experiment.experiment_id)
    last = now - 1000 * int(os.environ.get(BUFFER_SECONDS) or _BUFFER)
    since = min(config.since for config in configs)
    known = before or Progress(since, "", 0)
    first = max(known.trace_time, since, last - LOOKBACK_MS)
    found = [
        trace
        for trace in _traces(experiment, _Window(first, last), "", MOST_TRACES)
        if (trace.request_time, trace.trace_id) > (known.trace_time, known.trace_id)
    ]
    if not found:
        return
    end = found[-1] if len(found) == MOST_TRACES else None
    until = _Window(first, last if end is None else end.request_time)
    endpoints = configuration.read(workspace).endpoints
    able = [one for config in configs if (one := _scorer(experiment, config, endpoints))]
    new = [trace for trace in found if trace.trace_metadata.get(CALLER) != JUDGE]
    asked = _of_traces(experiment, [one for one in able if not one.judge.of_sessions], new, until)
    asked += _of_sessions(experiment, [one for one in able if one.judge.of_sessions], new, until)
    jobs.submit(asked)
    reached = Progress(found[-1].request_time, found[-1].trace_id, known.version)
    try:
        online_scorers.reach(workspace, experiment.experiment_id, reached)
    except Conflict:
        return  # another call has looked at the same time, and its jobs write the same


def sampled(entity_id: str, rated: Sequence[tuple[str, float]]) -> list[str]:
    """Which scorers judge a trace or a conversation. Those with the higher rates come first, and
    who leaves it out leaves it out for all that follow: so some are judged by many and can be
    compared, as on MLflow's server.

    Args:
        rated: names and rates from 0 to 1.
    """
    chosen, before = [], 1.0
    for name, rate in sorted(rated, key=lambda one: one[1], reverse=True):
        digest = hashlib.sha256(f"{entity_id}:{name}".encode()).hexdigest()
        if int(digest, 16) / 2**256 > (rate / before if before > 0 else 0):
            break
        chosen.append(name)
        before = rate
    return chosen


def _of_traces(
    experiment: Experiment, able: Sequence[_Scorer], found: Sequence[Trace], window: _Window
) -> list[Job]:
    """Scorers with the same filter are sampled together."""
    chosen: dict[str, list[str]] = {}
    for text in dict.fromkeys(one.config.filter_string or "" for one in able):
        # Without a filter they are those that were found.
        matching = _traces(experiment, window, text, 2 * MOST_TRACES) if text else found
        matching_ids = {trace.trace_id for trace in matching}
        rated = [
            (one.config.name, one.config.sample_rate)
            for one in able
            if (one.config.filter_string or "") == text
        ]
        for trace in found:
            if trace.trace_id in matching_ids:
                for name in sampled(trace.trace_id, rated):
                    chosen.setdefault(name, []).append(trace.trace_id)
    return [
        _job(experiment, one, batch, one.config.scorer_id)
        for one in able
        for batch in batches(chosen.get(one.config.name, []))
    ]


def _of_sessions(
    experiment: Experiment, able: Sequence[_Scorer], found: Sequence[Trace], window: _Window
) -> list[Job]:
    """Conversations in which nothing has been said since the window's end."""
    if not able:
        return []
    asked = []
    named = dict.fromkeys(trace.trace_metadata.get(SESSION) for trace in found)
    for session in filter(None, named):
        if "'" in session:
            continue  # no filter can name it
        of_session = f"metadata.`{SESSION}` = '{session}'"
        everything = _Window(0, ids.now_ms() + LOOKBACK_MS)
        traces = _traces(experiment, everything, of_session, MOST_TRACES)
        if not traces or traces[-1].request_time > window.last:
            continue
        rated = []
        for one in able:
            text = one.config.filter_string
            beginning = _Window(traces[0].request_time, traces[0].request_time)
            matching = _traces(experiment, beginning, text, MOST_TRACES) if text else traces[:1]
            if traces[0].trace_id in {trace.trace_id for trace in matching}:
                rated.append((one.config.name, one.config.sample_rate))
        chosen = sampled(session, rated)
        trace_ids = [trace.trace_id for trace in traces]
        asked += [
            _job(experiment, one, trace_ids, f"{one.config.scorer_id}:{trace_ids[-1]}")
            for one in able
            if one.config.name in chosen
        ]
    return asked


def _traces(experiment: Experiment, window: _Window, text: str, most: int) -> list[Trace]:
    """Oldest first, without those that runs have made."""
    parts = [_NOT_OF_RUNS, *([text] if text else [])]
    parts += [f"timestamp_ms >= {window.first}", f"timestamp_ms <= {window.last}"]
    query = search.Query(
        parse_filter(" AND ".join(parts)), parse_order_by(["timestamp_ms ASC"]), None, most
    )
    rows = search.find([experiment.experiment_id], experiment.workspace, query)
    return sorted((trace for _, trace in rows), key=lambda one: (one.request_time, one.trace_id))


def _scorer(
    experiment: Experiment, config: OnlineScorer, endpoints: Mapping[str, Endpoint]
) -> _Scorer | None:
    """The latest version, as it asks the gateway; None for one that is gone or can judge no
    more."""
    latest = scorers.latest(experiment, config.name)
    if latest is None:
        return None
    data = json.loads(latest.serialized_scorer)
    endpoint = endpoints.get(endpoint_asked(data) or "")
    if endpoint is None:
        return None
    named = asking(data, endpoint.name)
    try:
        return _Scorer(config, judge(named), json.dumps(named), latest.version)
    except errors.InvalidParameterValue as error:
        logger.warning("a scorer cannot judge", extra={"scorer": config.name, "why": str(error)})
        return None


def _job(experiment: Experiment, one: _Scorer, trace_ids: list[str], task: str) -> Job:
    params: dict[str, Any] = {
        "experiment_id": experiment.experiment_id,
        "serialized_scorer": one.serialized,
        "scorer_version": one.version,
        "trace_ids": trace_ids,
        "log_assessments": True,
        "username": None,
        "task": f"online:{task}",
    }
    return jobs.new(experiment.workspace, JOB_NAME, params, len(trace_ids))
