"""The parameters of the stream process (the child process that runs the indexer), and their
conversion to JSON and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from local.template_definitions import FunctionDefinition, ScheduleDefinition, StreamMapping


class StreamJob(NamedTuple):
    """The parameters of the stream process. ``stream`` is an ARN; ``database`` is the path of the
    table's file; None if the table is in a DynamoDB engine that the user runs.
    """

    stream: str
    region: str
    table: str
    database: str | None
    checkpoints: str
    dead_letters: str
    mappings: list[StreamMapping]
    functions: list[FunctionDefinition]
    """The definitions of the functions that mappings and schedules call."""
    schedules: list[ScheduleDefinition]
    shared_activity: int
    """Descriptor of a :class:`local.shared_activity.SharedActivity`."""
    end: int
    """The sequence number of the last record before the first request was served; 0 if it is
    unknown."""

    def text(self) -> str:
        """Returns the parameters of the process that reads DynamoDB streams, as a line of JSON."""
        return json.dumps(self._asdict(), default=str)

    @classmethod
    def of(cls, text: str) -> StreamJob:
        """Returns the parameters of the stream process from a line of JSON that :meth:`text`
        returned."""
        job = cls(**json.loads(text))
        mappings = [StreamMapping(*mapping) for mapping in job.mappings]
        functions = [FunctionDefinition(*function) for function in job.functions]
        return job._replace(
            mappings=[mapping._replace(patterns=tuple(mapping.patterns)) for mapping in mappings],
            functions=[function._replace(code=Path(function.code)) for function in functions],
            schedules=[ScheduleDefinition(*schedule) for schedule in job.schedules],
        )
