"""The publisher: brings the system tables up to what has landed, on a schedule; one at a time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from mlcore.system_tables import landing

AGE: Final = "SystemTablesAge"
"""The metric: for how many seconds the oldest batch of the stream has waited when a publication
begins. There is none while nothing waits: a metric costs by the hours in which it is written."""


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """What was published, by kind. Ends at once, without loading the engines, when nothing waits.

    Args:
        event: ``{"upkeep": true}`` also merges small files and removes those that nobody reads any
            more; ``{"seconds": n}`` says after how long no new step begins.
    """
    upkeep = bool(event.get("upkeep"))
    if not upkeep and next(landing.waiting(1), None) is None:
        return {}
    age = landing.age(time.time())
    if age is not None:
        from mlcore.observability import seconds  # noqa: PLC0415 -- nor a logger

        seconds({AGE: age}, {})
    from mltables import publisher  # noqa: PLC0415 -- 500 ms and 100 MB that most calls do not need

    done = publisher.publish(_seconds(event, context))._asdict()
    if upkeep:
        from mltables.upkeep import keep_up  # noqa: PLC0415

        done["files"] = keep_up()
    return done


def _seconds(event: Mapping[str, Any], context: Any) -> float:
    """Half of the time that Lambda leaves: a step may take as long as all before it."""
    if "seconds" in event:
        return float(event["seconds"])
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    return remaining() / 2000 if remaining else float("inf")
