"""Archives old traces: every few minutes a schedule starts a pass through the experiments.

In each experiment a pass looks at the traces from the oldest on, up to the end of the experiment's
retention or of a request to archive now. It stores how far it came. It begins with the oldest trace
again for a new request to archive now, and once a week, because traces may arrive or end late.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from functools import partial
from time import monotonic
from typing import Final

from mlcore import archival_configuration, file_removal_queue
from mlcore.db import keys
from mlcore.db.table import table
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.entities.workspaces import Workspace
from mlcore.file_removal_queue import Removal
from mlcore.ids import now_ms
from mlcore.observability import logger
from mlcore.repos.experiments import archival_progress, experiments
from mlcore.repos.experiments.archival_progress import ArchivalProgress
from mlcore.repos.experiments.experiments import StoredExperiment
from mlcore.repos.traces import archival, span_packs
from mlcore.repos.traces.archival import ArchivalOutcome
from mlcore.repos.traces.traces import StoredTrace
from mlcore.repos.traces.traces_by_time import LATEST
from mlcore.repos.workspaces import workspaces

QUEUE: Final = "FILE_REMOVAL_QUEUE_URL"
"""Environment: the URL of the queue of the file remover; without it files are kept."""
WORK_SECONDS: Final = 40.0
"""After this time a pass stops when it has finished its page of traces; the next one continues."""
AGAIN_MS: Final = 7 * 86_400_000
"""After this time a pass begins with the oldest trace again."""
READ_TOGETHER: Final = 100
"""Experiments that are read in one request."""
REMEMBERED_TRACES: Final = 50
"""A pass that examined at least this many traces stores its progress, even if it archived none."""
EARLIEST: Final = -(2**63)
CLOCKS_MS: Final = 1000
"""The assumed maximum difference between the clocks of two machines, in milliseconds."""


def run() -> int:
    """Archives traces for about :data:`WORK_SECONDS`, and returns how many. Does nothing if the
    server has no retention for traces."""
    config = archival_configuration.server()
    if config is None:
        return 0
    end, count = monotonic() + WORK_SECONDS, 0
    shuffled = workspaces.find_all()
    # In random order, so that the time does not always end before the same workspace.
    random.shuffle(shuffled)
    for workspace in shuffled:
        if workspace.trace_archival_location:
            logger.warning(
                "traces are not archived: the workspace names a location outside this server",
                extra={"workspace": workspace.name},
            )
            continue
        for stored in _experiments(workspace):
            if monotonic() >= end:
                return count
            try:
                count += _Pass(config, workspace, stored).run(end)
            except Exception:  # any error: the other experiments must still be archived
                logger.exception(
                    "traces could not be archived",
                    extra={"experiment": stored.experiment.experiment_id},
                )
    return count


def _experiments(workspace: Workspace) -> Iterator[StoredExperiment]:
    """Yields the active experiments of a workspace, in random order."""
    ids = list(experiments.ids_of_workspace(workspace.name))
    random.shuffle(ids)
    for at in range(0, len(ids), READ_TOGETHER):
        for item in table.batch_get(list(map(keys.experiment, ids[at : at + READ_TOGETHER]))):
            if item is None:
                continue
            stored = experiments.of_item(item)
            experiment = stored.experiment
            if experiment.lifecycle_stage == ACTIVE and experiment.workspace == workspace.name:
                yield stored


class _Pass:
    """One pass through the traces of one experiment."""

    def __init__(
        self,
        config: archival_configuration.Server,
        workspace: Workspace,
        stored: StoredExperiment,
    ) -> None:
        self._stored = stored
        self._experiment = stored.experiment
        now = now_ms()
        tags = self._experiment.tags
        retention = archival_configuration.effective_retention(
            config, workspace.trace_archival_retention, self._experiment.experiment_id, tags
        )
        self._request = archival_configuration.archive_now(tags)
        age = archival_configuration.milliseconds(retention)
        self._retention_end = EARLIEST if age is None else max(EARLIEST, now - age)
        """The request time up to which traces are archived without a request."""
        self._latest = self._retention_end
        if self._request is not None:
            age = self._request.older_than_ms
            self._latest = max(self._latest, now - age if age else LATEST)
        self._saved = archival_progress.of_experiment(stored)
        self._progress = self._begin(now)

    def _begin(self, now: int) -> ArchivalProgress:
        """Returns the progress from which this pass continues."""
        request = self._request.text if self._request else None
        before = self._saved
        if (
            before is None
            or now - before.started > AGAIN_MS
            or (request is not None and before.request != request)
        ):
            return ArchivalProgress(now, None, request)
        return before

    def run(self, end: float) -> int:
        """Archives traces until all are done or the time is over; returns how many.

        Args:
            end: when to stop, as a value of :func:`time.monotonic`.
        """
        count, examined, is_interrupted, is_blocked = 0, 0, False, False
        position = self._progress.position
        earliest = EARLIEST if position is None else position
        for page in archival.oldest_first(self._experiment, earliest, self._latest):
            outcomes = table.parallel([partial(_archive, trace) for trace in page])
            count += outcomes.count(ArchivalOutcome.ARCHIVED)
            examined += len(page)
            # The next pass must read a trace again that could not be archived now.
            is_blocked = is_blocked or ArchivalOutcome.LATER in outcomes
            if page and not is_blocked:
                position = max(trace.item.request_time for trace in page)
            if monotonic() >= end:
                is_interrupted = True
                break
        self._save(position, count + examined // REMEMBERED_TRACES, is_interrupted or is_blocked)
        return count

    def _save(self, position: int | None, work: int, is_incomplete: bool) -> None:
        """Stores how far the pass came, and that a request to archive now is complete. Stores
        nothing if the pass completed no request, only continued an earlier pass, archived nothing
        and examined few traces."""
        progress = self._progress._replace(position=position)
        if self._request is not None and not is_incomplete:
            if position is not None:
                # Younger traces may still arrive.
                progress = progress._replace(position=min(position, self._retention_end))
            archival_progress.complete_request(self._stored, progress, self._request.text)
        elif work or self._progress != self._saved:
            archival_progress.save(self._experiment.experiment_id, progress)


def _archive(trace: StoredTrace) -> ArchivalOutcome:
    """Archives a trace. If that fails, a later pass tries again. It fails, for example, while the
    experiment's partition is full (10 GB): then other traces must be archived first."""
    try:
        outcome = archival.archive(trace)
        if outcome is ArchivalOutcome.REMOVED:
            _remove_files(trace)  # at once: no later pass would find the trace
        return outcome
    except Exception:  # any error: the other traces must still be archived
        logger.exception("a trace could not be archived", extra={"trace": trace.trace_id})
        return ArchivalOutcome.LATER


def _remove_files(removed: StoredTrace) -> None:
    """Sends a message to the file remover about the files that were written for a trace which was
    deleted meanwhile, except those that belong to a new trace with the same id."""
    owner = archival.owner_of(removed)
    queue = os.environ.get(QUEUE)
    if queue:
        folder, kept = span_packs.archive_folder(owner), span_packs.locations(owner)
        removal = Removal(owner.workspace, now_ms() + CLOCKS_MS, folder, kept)
        file_removal_queue.send(queue, [removal])
