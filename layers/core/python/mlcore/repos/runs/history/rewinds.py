"""The attribute ``rewinds`` of a run's item, which records rewinds: deletions of the points after a
step.

A rewind lowers the latest values of a run in one update, which also sets the attribute ``rewinds``
to *open*. From then on no reader shows the deleted points, because they are later than the latest
values, and no request logs metrics, until the points are removed and the attribute is *closed*
(:mod:`mlcore.repos.runs.core.rewinding`).

The attribute keeps the last rewinds with their times, because copies of the deleted points may
still be on their way: to the system tables, or into a pack. A point is deleted if its batch was
written at the time of the rewind or before. So batches that are written afterwards get a later time
than the rewind (:func:`time_after`), whatever the clock of their process says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, NamedTuple

from mlcore.db.expression import Update
from mlcore.ids import now_ms
from mlcore.models.runs import Run

MOST_KEPT: Final = 20
MOST_BYTES: Final = 40_000
"""Maximum bytes of the attribute. The names of metrics in a request have at most a fourth of this
size."""


class Rewind(NamedTuple):
    """A rewind: the deletion of a run's metric points after a step."""

    at: int
    """Points of batches that were written until then are deleted; milliseconds since the epoch."""
    after_step: int | None
    """None: points of all steps."""
    keys: tuple[str, ...] | None
    """The metrics; None for all."""

    def has_metric(self, key: str) -> bool:
        return self.keys is None or key in self.keys

    def deletes(self, key: str, step: int) -> bool:
        """Whether the rewind deletes the points of the metric ``key`` at a step, if they were
        logged before the rewind."""
        return (self.after_step is None or step > self.after_step) and self.has_metric(key)

    def includes(self, other: Rewind) -> bool:
        """Whether this rewind (a deletion of a run's points after a step), which is later than
        ``other``, deletes every point that ``other`` deletes."""
        lower = self.after_step is None or (
            other.after_step is not None and self.after_step <= other.after_step
        )
        return lower and (
            self.keys is None or (other.keys is not None and set(other.keys) <= set(self.keys))
        )


class Rewinds(NamedTuple):
    """The value of the attribute ``rewinds`` of a run's item: how often the run was rewound (its
    points after a step deleted), and its last rewinds."""

    times: int
    """How many times the run was rewound."""
    is_open: bool
    """Whether points that the last rewind deletes may still be in the history."""
    last: tuple[Rewind, ...]
    """The last rewinds, oldest first, without those that a later one includes."""

    def with_next(self, rewind: Rewind) -> Rewinds:
        """Returns the value of a run's attribute ``rewinds`` after another rewind (a deletion of
        metric points after a step) was begun. If there are too many, or their JSON is too large,
        the oldest are dropped."""
        kept = [begun for begun in self.last if not rewind.includes(begun)][1 - MOST_KEPT :]
        while kept and len(Rewinds(0, True, (*kept, rewind)).text()) > MOST_BYTES:
            del kept[0]
        return Rewinds(self.times + 1, True, (*kept, rewind))

    def closed(self) -> Rewinds:
        return self._replace(is_open=False)

    def text(self) -> str:
        """Returns the JSON text to store in the attribute ``rewinds`` of a run's item."""
        fields = {"times": self.times, "open": self.is_open, "last": self.last}
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


NONE: Final = Rewinds(0, False, ())


class RewoundMeanwhile(Exception):
    """Points of a run after a step were deleted (a rewind) after a request had read the run, or are
    being deleted. Points that the request has written may be deleted with them, so it has to begin
    again."""

    def __init__(self, experiment_id: str, run_id: str) -> None:
        super().__init__(run_id)
        self.run = (experiment_id, run_id)


def of(item: Run) -> Rewinds:
    """Returns the rewinds (deletions of metric points after a step) that a run's item records;
    :data:`NONE` if it was never rewound."""
    if item.rewinds is None:
        return NONE
    fields = json.loads(item.rewinds)
    last = (
        Rewind(at, after_step, None if keys is None else tuple(keys))
        for at, after_step, keys in fields["last"]
    )
    return Rewinds(fields["times"], fields["open"], tuple(last))


def time_after(item: Run) -> int:
    """Returns the time to write into a new batch of points, in milliseconds: now, but later than
    the run's last rewind (deletion of its points after a step)."""
    last = of(item).last
    return max(now_ms(), last[-1].at + 1) if last else now_ms()


def check_unchanged(item: Run, before: Run) -> None:
    """Raises RewoundMeanwhile if points of the run after a step are being deleted (a rewind), or
    were deleted since the run's item was read as ``before``.

    Args:
        item: the run's item as it is now.
    """
    if item.rewinds is not None and (item.rewinds != before.rewinds or of(item).is_open):
        raise RewoundMeanwhile(item.experiment_id, item.run_id)


def require_unchanged(update: Update, item: Run) -> None:
    """Adds to ``update`` the condition that no rewind (a deletion of the run's metric points after
    a step) has begun or ended since ``item`` was read."""
    if item.rewinds is None:
        update.require_absent(Run.rewinds)
    else:
        update.require_equal(Run.rewinds, item.rewinds)


def are_deleted(rewinds: Iterable[Rewind], key: str, step: int, written: int) -> bool:
    """Whether one of the rewinds (deletions of points after a step) deletes a point.

    Args:
        written: when the point's batch was written, in milliseconds.
    """
    return any(written <= rewind.at and rewind.deletes(key, step) for rewind in rewinds)
