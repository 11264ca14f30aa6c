"""Rules about the name and the events of a webhook."""

from __future__ import annotations

import re
from typing import Final

from mlcore import errors
from mlcore.entities.webhooks import EventName

_NAME: Final = re.compile("(?=.{1,63}$)[a-z0-9]([a-z0-9._-]*[a-z0-9])?", re.IGNORECASE)


def check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise errors.InvalidParameterValue(
            f"Webhook name {name!r} is invalid. It must start and end with a letter or digit, "
            "be less than 63 characters long, and contain only letters, digits, dots (.), "
            "underscores (_), and hyphens (-)."
        )


def check_distinct_events(events: tuple[EventName, ...]) -> None:
    if len(set(events)) < len(events):
        raise errors.BadRequest("Each event of a webhook may be given only once.")
