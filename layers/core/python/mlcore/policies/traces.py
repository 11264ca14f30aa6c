"""Who may do what with traces, their spans and assessments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from mlcore import errors
from mlcore.auth.permissions import ANY, ASSESSMENT, EXPERIMENT, LOGGED_MODEL, RUN, TRACE
from mlcore.auth.requirements import NOT_DENIED, Requirement
from mlcore.limits.locations import below
from mlcore.policies import file_rights
from mlcore.policies.access import Access
from mlcore.policies.requests import (
    Policy,
    across,
    creating,
    inherited,
    inside,
    on_runs,
    subject,
)
from mlcore.repos.traces import traces
from mlcore.repos.traces.traces import StoredTrace

LOCATION_TAG: Final = "mlflow.artifactLocation"

_TOLD_BY: Final = {
    ASSESSMENT: ("feedback", "expectation", "assessment", "issue"),
    RUN: ("run_id", "sourcerun"),
    LOGGED_MODEL: ("modelid",),
}
"""Words of a filter or an order by which rows tell of other things than traces."""


def experiments_of(access: Access, trace_ids: Sequence[str]) -> list[str] | None:
    """The experiments of traces; None when one of them is missing."""
    return _experiments(traces.find_many(trace_ids, access.workspace))


def _experiments(records: Sequence[StoredTrace | None]) -> list[str] | None:
    known = [trace.experiment.experiment_id for trace in records if trace is not None]
    return known if len(known) == len(records) else None


def on_traces(access: Access, trace_ids: Sequence[str], action: str) -> bool:
    """A missing trace is refused like one of somebody else. A trace whose files are said to be in
    another's place is read by who may read there."""
    found = traces.find_many(trace_ids, access.workspace)
    requirements = across(_experiments(found) or (), TRACE, action)
    return (
        requirements is not None
        and access.allows(*requirements)
        and (action != "read" or all(_may_read_files(access, trace) for trace in found))
    )


def _may_read_files(access: Access, trace: StoredTrace | None) -> bool:
    """The tag that says where a trace's files are is the clients' to set."""
    told = None if trace is None else trace.document.texts("tags").get(LOCATION_TAG)
    if trace is None or told is None:
        return True
    root = trace.experiment.artifact_location
    own = below(root, f"traces/{trace.trace_id}/artifacts")
    return told == own or file_rights.may_read(access, told, own=own)


def on_trace(action: str) -> Policy:
    def policy(access: Access, message: Any) -> bool:
        return on_traces(access, [_id(message)], action)

    return policy


def start(access: Access, message: Any) -> bool:
    return access.allows(*creating(subject(message, "experiment_id"), TRACE))


def start_v3(access: Access, message: Any) -> bool:
    """In the experiment of its location; a trace that is there already is changed where it is."""
    info = message.trace.trace_info if message.trace is not None else None
    location = None if info is None else info.trace_location
    if info is None or location is None or location.mlflow_experiment is None:
        return False
    experiment_id = location.mlflow_experiment.experiment_id
    vetoes = [Requirement(ASSESSMENT, ANY, NOT_DENIED)] if info.assessments else []
    return (
        bool(experiment_id)
        and access.allows(*creating(experiment_id, TRACE), *vetoes)
        and may_extend(access, [info.trace_id] if info.trace_id else [])
    )


def export(access: Access, message: Any) -> bool:
    """The experiment; the run that traces are linked to; and the traces that are there already,
    which get the new spans wherever they are."""
    if not (
        message.experiment_id
        and access.allows(*creating(message.experiment_id, TRACE))
        and may_extend(access, message.trace_ids)
    ):
        return False
    return not message.run_id or on_runs(access, [message.run_id], "update")


def may_extend(access: Access, trace_ids: Sequence[str]) -> bool:
    """Whether the caller may add to those of the traces that are there."""
    found = traces.find_many(trace_ids, access.workspace) if trace_ids else []
    there = {trace.experiment.experiment_id for trace in found if trace is not None}
    return access.allows(*(across(sorted(there), TRACE, "update") or ()))


def search(access: Access, message: Any) -> bool:
    return _search(access, message.experiment_ids, [message.filter, *message.order_by])


def search_v3(access: Access, message: Any) -> bool:
    """Only an experiment is a place that anything is granted on."""
    places = [location.mlflow_experiment for location in message.locations]
    experiment_ids = [place.experiment_id for place in places if place is not None]
    return _search(access, filter(None, experiment_ids), [message.filter, *message.order_by])


def correlation(access: Access, message: Any) -> bool:
    texts = [message.filter_string1, message.filter_string2, message.base_filter]
    return _search(access, message.experiment_ids, texts)


def metrics(access: Access, message: Any) -> bool:
    """Points of assessments tell of assessments."""
    distinct = list(dict.fromkeys(message.experiment_ids))
    requirements = across(distinct, TRACE, "read")
    if requirements is None or not _search(access, distinct, message.filters):
        return False
    told = distinct if message.view_type == "ASSESSMENTS" else ()
    return access.allows(*requirements, *(inherited(each, ASSESSMENT, "read") for each in told))


def _search(access: Access, experiment_ids: Iterable[str], texts: Iterable[str]) -> bool:
    distinct = list(dict.fromkeys(experiment_ids))
    requirements = across(distinct, TRACE, "read")
    words = " ".join(texts).lower()
    told = [kind for kind, names in _TOLD_BY.items() if any(name in words for name in names)]
    return requirements is not None and access.allows(
        *requirements, *(inherited(each, kind, "read") for each in distinct for kind in told)
    )


def read_many(access: Access, message: Any) -> bool:
    return on_traces(access, message.trace_ids, "read")


def delete(access: Access, message: Any) -> bool:
    """The traces, and the assessments of them."""
    experiment_id = subject(message, "experiment_id")
    return access.allows(
        *inside(experiment_id, TRACE, "delete"),
        inherited(experiment_id, ASSESSMENT, "delete", "update"),
    )


def link_to_run(access: Access, message: Any) -> bool:
    if not on_runs(access, [subject(message, "run_id")], "update"):
        return False
    return not message.trace_ids or on_traces(access, message.trace_ids, "read")


def read_artifact(access: Access, message: Any) -> bool:
    trace_id = message.request_id
    if not trace_id:
        raise errors.InvalidParameterValue("Request must specify request_id parameter")
    return on_traces(access, [trace_id], "read")


def create_assessment(access: Access, message: Any) -> bool:
    """The experiment gives the right, or a grant on traces does; neither takes it from the
    other."""
    found = experiments_of(access, [message.trace_id])
    if not found:
        return False
    (experiment_id,) = found
    return access.allows(
        *inside(experiment_id, TRACE, "read"), Requirement(ASSESSMENT, ANY, NOT_DENIED)
    ) and (
        access.allows(Requirement(EXPERIMENT, experiment_id, "update"))
        or access.allows(Requirement(TRACE, ANY, "update"))
    )


def on_assessment(action: str, otherwise: str | None = None) -> Policy:
    """Its trace must be readable; without a grant on assessments the experiment must allow the
    action, or ``otherwise``."""

    def policy(access: Access, message: Any) -> bool:
        found = experiments_of(access, [message.trace_id])
        if not found:
            return False
        (experiment_id,) = found
        return access.allows(
            *inside(experiment_id, TRACE, "read"),
            inherited(experiment_id, ASSESSMENT, action, otherwise),
        )

    return policy


def _id(message: Any) -> str:
    return subject(message, "trace_id", "request_id")


read_trace = on_trace("read")
update_trace = on_trace("update")
read_assessment = on_assessment("read")
update_assessment = on_assessment("update")
delete_assessment = on_assessment("delete", "update")
