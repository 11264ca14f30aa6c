"""What the template declares, as plain values; reads no template."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple


class TemplateError(Exception):
    """The template uses something that the local runner cannot serve; the message names it."""


class FunctionDefinition(NamedTuple):
    """One Lambda function.

    ``handler`` is ``module.attribute``; ``code`` is the folder that holds the module.
    """

    name: str
    handler: str
    code: Path
    timeout_seconds: float
    memory_mb: int
    environment: dict[str, str]


class RouteDefinition(NamedTuple):
    """One route of the HTTP API.

    ``ANY /path/{proxy+}`` or ``$default``, the function behind it, and the one that is asked first
    who calls.
    """

    key: str
    function: str
    authorizer: str | None = None


class StreamMapping(NamedTuple):
    """One event-source mapping from the table's stream; the names are Lambda's.

    −1 stands for no limit.
    """

    name: str
    function: str
    patterns: tuple[str, ...]
    batch_size: int
    batching_window_seconds: float
    starting_position: str
    maximum_retry_attempts: int
    maximum_record_age_seconds: int
    bisect: bool
    report_batch_item_failures: bool


class Admission(NamedTuple):
    """What each record has, at least, that one filter pattern lets through."""

    events: frozenset[str] | None
    """Of which kinds it may be; None for any."""
    image: str
    """``NewImage`` or ``OldImage``."""
    types: frozenset[str]
    """Of which types the item in that image may be."""
    present: tuple[tuple[str, str], ...]
    """Attributes that it has, each with its DynamoDB type."""


class QueueDefinition(NamedTuple):
    """One SQS queue. ``dead_letter`` is the queue for what was received too often, if any."""

    name: str
    visibility_seconds: float
    delay_seconds: float
    retention_seconds: float
    dead_letter: str | None
    maximum_receives: int


class QueueMapping(NamedTuple):
    """One event-source mapping from a queue; the names are Lambda's."""

    name: str
    function: str
    queue: str
    batch_size: int
    concurrency: int
    report_batch_item_failures: bool


class ScheduleDefinition(NamedTuple):
    """A rule that calls a function again and again. ``event`` is what the function gets."""

    name: str
    function: str
    seconds: float
    event: Any
