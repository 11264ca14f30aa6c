"""Links traces to runs, and prompt versions to traces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mlcore import errors
from mlcore.db.table import table
from mlcore.entities.experiments import Experiment
from mlcore.environment import workspaces_enabled
from mlcore.http import Request
from mlcore.limits.traces import check_links
from mlcore.repos.experiments import experiments
from mlcore.repos.runs.core import runs
from mlcore.repos.traces import links as trace_links
from mlcore.repos.traces import traces
from mlcore.repos.traces.traces import StoredTrace, TraceChange
from mlcore.wire import invalid_value
from traces import messages as m


def link_traces_to_run(message: m.LinkTracesToRun, request: Request) -> dict[str, Any]:
    """Links traces to a run. As on MLflow's server the traces need not exist yet, nor, if
    workspaces are off, the run."""
    check_links(message.trace_ids)
    link(message.run_id, message.trace_ids, request.workspace)
    return {}


def link(run_id: str, trace_ids: Sequence[str], workspace: str) -> None:
    """Links traces to a run. Raises ResourceDoesNotExist if the run is in another workspace. A
    missing run is refused only if workspaces are on."""
    experiment_id = runs.locate(run_id)
    if experiment_id is not None:
        calls: list[Callable[[], Experiment | None]] = [
            partial(experiments.find, experiment_id, workspace),
            partial(runs.check_unmoved, run_id, experiment_id),
        ]
        experiment, _ = table.parallel(calls)
        if experiment is None:
            raise runs.missing(run_id)
    elif workspaces_enabled():
        raise runs.missing(run_id)
    trace_links.put(run_id, trace_ids)


def link_prompts_to_trace(message: m.LinkPromptsToTrace, request: Request) -> dict[str, Any]:
    prompts = {
        f"{prompt_version.name}/{_version(prompt_version.version)}": ""
        for prompt_version in message.prompt_versions
    }
    trace = traces.find(message.trace_id, request.workspace)

    def add(current: StoredTrace) -> TraceChange | None:
        linked = current.document.texts("prompts")
        new = {prompt: "" for prompt in prompts if prompt not in linked}
        return TraceChange(current.info, {"prompts": new}) if new else None

    if trace is None or traces.write(trace, add) is None:
        raise errors.ResourceDoesNotExist(f"Trace with ID '{message.trace_id}' not found.")
    return {}


def _version(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise errors.InvalidParameterValue(
            invalid_value("prompt_versions.version", text, "It must be an integer.")
        ) from None
