"""Rewinds a run: deletes the points of its metrics after a step."""

from __future__ import annotations

from typing import Any

from mlcore import errors
from mlcore.http import Request
from mlcore.limits import runs as limits
from mlcore.repos.runs.core import rewinding
from runs import messages as m


def rewind(message: m.RewindRun, request: Request) -> dict[str, Any]:
    """Deletes a run's metric points after ``after_step`` (all points if ``delete_all``) of the
    metrics named in ``metric_keys`` (of all metrics if the request omits it). The run's latest
    values are then those of the points that remain; a metric without points is gone. Metrics of
    logged models stay as they are.

    Repeating the request has no further effect. If this process dies, the deletion is completed by
    the next such request, by the next request that logs metrics to the run, or by the indexer.

    Raises:
        InvalidParameterValue: the request does not say which points or says it twice,
            ``metric_keys`` is empty or too long, or the run is deleted.
        ResourceDoesNotExist: the run does not exist in this workspace.
    """
    if message.has("after_step") == bool(message.delete_all):
        raise errors.InvalidParameterValue(
            "Set either 'after_step', the last step to keep, or 'delete_all' to true."
        )
    if message.has("metric_keys") and not message.metric_keys:
        raise errors.InvalidParameterValue(
            "Name at least one metric in 'metric_keys', or leave it out for all metrics."
        )
    names = dict.fromkeys(message.metric_keys)
    limits.check_rewound_metrics(names)
    after_step = None if message.delete_all else message.after_step
    rewinding.rewind(message.run_id, request.workspace, after_step, names)
    return {}
