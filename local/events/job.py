"""What the process that follows the stream is to do, and how that is told to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from local.definitions import FunctionDefinition, ScheduleDefinition, StreamMapping


class Job(NamedTuple):
    """``stream`` is an ARN; ``database`` the engine's file, None for an engine of somebody else."""

    stream: str
    region: str
    table: str
    database: str | None
    checkpoints: str
    dead_letters: str
    mappings: list[StreamMapping]
    functions: list[FunctionDefinition]
    """Those of the mappings and of the schedules."""
    schedules: list[ScheduleDefinition]
    pulse: int
    """Descriptor of a :class:`local.pulse.Pulse`."""
    began: float
    """Before the first request was served, in seconds since 1970."""
    end: int
    """The last record then; 0 where it is not known."""

    def text(self) -> str:
        """One line."""
        return json.dumps(self._asdict(), default=str)

    @classmethod
    def of(cls, text: str) -> Job:
        """What :meth:`text` says."""
        said = cls(**json.loads(text))
        mappings = [StreamMapping(*one) for one in said.mappings]
        functions = [FunctionDefinition(*one) for one in said.functions]
        return said._replace(
            mappings=[one._replace(patterns=tuple(one.patterns)) for one in mappings],
            functions=[one._replace(code=Path(one.code)) for one in functions],
            schedules=[ScheduleDefinition(*one) for one in said.schedules],
        )
