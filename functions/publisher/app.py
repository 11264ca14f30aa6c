"""Copies the table's changes to the system tables, on a schedule: reads the objects that the lander
(a function that consumes the stream) wrote to S3. One invocation at a time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from mlcore.system_tables import landing_objects

AGE: Final = "SystemTablesAge"
"""The metric: seconds that the oldest batch, or the oldest trace that is too large to be published,
has waited when a publication starts. It is not written while nothing waits, as CloudWatch charges a
metric by the hours in which it is written."""


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Copies the changes in the unpublished landing objects to the system tables. Deferred objects
    wait for an upkeep; objects for which the time is too short wait for the next call. Returns the
    counts of :class:`mltables.publish_step.Published`, with upkeep also ``files``, the number of
    removed files; {} if no object is due and the event does not ask for upkeep, at once and without
    loading the table engines.

    Args:
        event: ``{"upkeep": true}`` also merges small files and removes unused ones; ``{"seconds":
            n}`` limits when steps after the first begin.
    """
    upkeep = bool(event.get("upkeep"))
    landed = landing_objects.waiting((*landing_objects.KINDS, landing_objects.DEFERRED))
    waiting = landed if upkeep else landing_objects.without_deferred(landed)
    age = landing_objects.age(landed, time.time())
    if age is not None:
        from mlcore.observability import seconds  # noqa: PLC0415 -- not needed if nothing waits

        seconds({AGE: age}, {})
    if not upkeep and not waiting:
        return {}
    from mltables import publisher  # noqa: PLC0415 -- 500 ms and 100 MB that most calls do not need

    counts = publisher.publish(_seconds(event, context), waiting)._asdict()
    if upkeep:
        from mltables.table_maintenance import maintain_tables  # noqa: PLC0415

        counts["files"] = maintain_tables()
    return counts


def _seconds(event: Mapping[str, Any], context: Any) -> float:
    """Returns the seconds in which new steps may begin: half of Lambda's remaining time, as a step
    may take as long as all steps before it."""
    if "seconds" in event:
        return float(event["seconds"])
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    return remaining() / 2000 if remaining else float("inf")
