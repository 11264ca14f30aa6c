"""Permission checks for requests about traces, their spans and assessments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from mlcore import errors, reserved_tags
from mlcore.auth.permissions import ANY, ASSESSMENT, EXPERIMENT, LOGGED_MODEL, RUN, TRACE
from mlcore.auth.requirements import NOT_DENIED, Requirement
from mlcore.limits.artifact_locations import join
from mlcore.policies import location_rights
from mlcore.policies.access import Access
from mlcore.policies.shared_rules import (
    Policy,
    create_inside,
    inherited,
    inside,
    inside_each,
    on_runs,
    subject,
)
from mlcore.repos.experiments.ids import canonical_ids
from mlcore.repos.traces import traces
from mlcore.repos.traces.traces import StoredTrace

_REVEALING_WORDS: Final = {
    ASSESSMENT: ("feedback", "expectation", "assessment", "issue"),
    RUN: ("run_id", "sourcerun"),
    LOGGED_MODEL: ("modelid",),
}
"""Words in a filter or ordering that reveal facts of other resource types than traces."""


def experiments_of(access: Access, trace_ids: Sequence[str]) -> list[str] | None:
    """Returns the id of the experiment of each trace, in the order of the traces; None instead of
    the list if any trace is missing."""
    return _experiments(traces.find_many(trace_ids, access.workspace))


def _experiments(records: Sequence[StoredTrace | None]) -> list[str] | None:
    known = [trace.experiment.experiment_id for trace in records if trace is not None]
    return known if len(known) == len(records) else None


def on_traces(access: Access, trace_ids: Sequence[str], action: str) -> bool:
    """Whether the caller may do the action on each trace. A missing trace is refused like one
    without a grant. To read a trace whose files lie in another experiment's storage, the caller
    must also be allowed to read there."""
    stored_traces = traces.find_many(trace_ids, access.workspace)
    requirements = inside_each(_experiments(stored_traces) or (), TRACE, action)
    return (
        requirements is not None
        and access.allows(*requirements)
        and (action != "read" or all(_may_read_files(access, trace) for trace in stored_traces))
    )


def _may_read_files(access: Access, trace: StoredTrace | None) -> bool:
    """Whether the caller may read the location of the trace's files. Clients set the tag with the
    location and can name any, so the location is checked."""
    location = (
        None if trace is None else trace.document.texts("tags").get(reserved_tags.ARTIFACT_LOCATION)
    )
    if trace is None or location is None:
        return True
    root = trace.experiment.artifact_location
    default_location = join(root, f"traces/{trace.trace_id}/artifacts")
    return location == default_location or location_rights.may_read(
        access, location, own=default_location
    )


def on_trace(action: str) -> Policy:
    def policy(access: Access, message: Any) -> bool:
        return on_traces(access, [_trace_id(message)], action)

    return policy


def start(access: Access, message: Any) -> bool:
    return access.allows(*create_inside(subject(message, "experiment_id"), TRACE))


def start_v3(access: Access, message: Any) -> bool:
    """Requires the right to create traces in the experiment of the trace's location; if the trace
    already exists there, also to update traces; with assessments, also no DENY on assessments."""
    info = message.trace.trace_info if message.trace is not None else None
    location = None if info is None else info.trace_location
    if info is None or location is None or location.mlflow_experiment is None:
        return False
    experiment_id = location.mlflow_experiment.experiment_id
    not_denied = [Requirement(ASSESSMENT, ANY, NOT_DENIED)] if info.assessments else []
    return (
        bool(experiment_id)
        and access.allows(*create_inside(experiment_id, TRACE), *not_denied)
        and _may_extend(access, experiment_id, [info.trace_id] if info.trace_id else [])
    )


def export(access: Access, message: Any) -> bool:
    """Requires of a client that exports spans: the right to create traces in the experiment, to
    update those of the spans' traces that exist already, and to update the run that the request
    links the traces to, if any."""
    if not (
        message.experiment_id
        and access.allows(*create_inside(message.experiment_id, TRACE))
        and _may_extend(access, message.experiment_id, message.trace_ids)
    ):
        return False
    return not message.run_id or on_runs(access, [message.run_id], "update")


def _may_extend(access: Access, experiment_id: str, trace_ids: Sequence[str]) -> bool:
    """Whether the caller may add data to those of the traces that exist in the experiment. New
    traces need no further right; traces of other experiments are refused elsewhere, to everybody.
    """
    stored_traces = traces.find_many(trace_ids, access.workspace) if trace_ids else []
    present = {trace.experiment.experiment_id for trace in stored_traces if trace is not None}
    extended = present.intersection(canonical_ids([experiment_id]))
    return access.allows(*(inside_each(extended, TRACE, "update") or ()))


def search(access: Access, message: Any) -> bool:
    return _search(access, message.experiment_ids, [message.filter, *message.order_by])


def search_v3(access: Access, message: Any) -> bool:
    """Allows a search whose locations are experiments in which the caller may read traces. Other
    locations are skipped, since no right on them can be granted; a search without any experiment is
    refused."""
    experiments = [location.mlflow_experiment for location in message.locations]
    experiment_ids = [
        experiment.experiment_id for experiment in experiments if experiment is not None
    ]
    return _search(access, filter(None, experiment_ids), [message.filter, *message.order_by])


def correlation(access: Access, message: Any) -> bool:
    texts = [message.filter_string1, message.filter_string2, message.base_filter]
    return _search(access, message.experiment_ids, texts)


def metrics(access: Access, message: Any) -> bool:
    """Allows aggregating traces if the caller may read, in all experiments that the request names,
    the traces, what its filters refer to, and for the view ``ASSESSMENTS`` the assessments."""
    distinct = list(dict.fromkeys(message.experiment_ids))
    requirements = inside_each(distinct, TRACE, "read")
    if requirements is None or not _search(access, distinct, message.filters):
        return False
    revealed = distinct if message.view_type == "ASSESSMENTS" else ()
    return access.allows(*requirements, *(inherited(each, ASSESSMENT, "read") for each in revealed))


def _search(access: Access, experiment_ids: Iterable[str], texts: Iterable[str]) -> bool:
    distinct = list(dict.fromkeys(experiment_ids))
    requirements = inside_each(distinct, TRACE, "read")
    words = " ".join(texts).lower()
    revealed = [
        kind for kind, names in _REVEALING_WORDS.items() if any(name in words for name in names)
    ]
    return requirements is not None and access.allows(
        *requirements, *(inherited(each, kind, "read") for each in distinct for kind in revealed)
    )


def read_some(access: Access, message: Any) -> bool:
    """Allows reading many traces at once to callers who are not denied traces and may read at least
    one experiment. The route's function leaves out the traces that the caller may not read
    (:func:`readable`)."""
    return access.allows(Requirement(TRACE, ANY, NOT_DENIED)) and access.reads_any(EXPERIMENT)


def readable(access: Access, stored_traces: Iterable[StoredTrace]) -> list[StoredTrace]:
    """Returns those of the traces that the caller may read, by the same rule as for reading a
    single trace."""
    rights: dict[str, bool] = {}

    def may_read(trace: StoredTrace) -> bool:
        experiment_id = trace.experiment.experiment_id
        if experiment_id not in rights:
            rights[experiment_id] = access.allows(*inside(experiment_id, TRACE, "read"))
        return rights[experiment_id] and _may_read_files(access, trace)

    return list(filter(may_read, stored_traces))


def delete(access: Access, message: Any) -> bool:
    """Requires the right to delete the traces and their assessments. Without a grant on
    assessments, the right to update the experiment is enough for the latter."""
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
    """Requires a readable trace, assessments that are not denied, and the right to update the
    experiment or to update traces."""
    experiment_ids = experiments_of(access, [message.trace_id])
    if not experiment_ids:
        return False
    (experiment_id,) = experiment_ids
    return access.allows(
        *inside(experiment_id, TRACE, "read"), Requirement(ASSESSMENT, ANY, NOT_DENIED)
    ) and (
        access.allows(Requirement(EXPERIMENT, experiment_id, "update"))
        or access.allows(Requirement(TRACE, ANY, "update"))
    )


def on_assessment(action: str, otherwise: str | None = None) -> Policy:
    """Returns the policy of a route for a trace's assessments: the caller must be allowed to read
    the trace and to do ``action`` on assessments. Callers without a grant on assessments need the
    right to do ``action`` on the experiment, or ``otherwise`` if it is given."""

    def policy(access: Access, message: Any) -> bool:
        experiment_ids = experiments_of(access, [message.trace_id])
        if not experiment_ids:
            return False
        (experiment_id,) = experiment_ids
        return access.allows(
            *inside(experiment_id, TRACE, "read"),
            inherited(experiment_id, ASSESSMENT, action, otherwise),
        )

    return policy


def _trace_id(message: Any) -> str:
    return subject(message, "trace_id", "request_id")


read_trace = on_trace("read")
update_trace = on_trace("update")
read_assessment = on_assessment("read")
update_assessment = on_assessment("update")
delete_assessment = on_assessment("delete", "update")
