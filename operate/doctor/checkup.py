"""What the steps of one checkup share: the server, the names they make, and how it is removed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from uuid import uuid4

from operate.doctor.api import Api
from operate.doctor.deployment import Deployment
from operate.doctor.outcome import LeftOut, Wrong

PREFIX: Final = "mlflow-doctor-"
"""With this begins the name of everything that a checkup makes."""
PAUSE_SECONDS: Final = 0.5


class Options(NamedTuple):
    """What the command line asks for."""

    client: str | None
    """An interpreter with mlflow; None looks for one."""
    receiver: str | None
    """``HOST:PORT`` at which this machine listens for a webhook's delivery."""
    receiver_url: str | None
    """URL that leads to ``receiver``, where the server knows it by another one: that of a tunnel,
    for example."""
    endpoint: str | None
    """A chat endpoint of the AI gateway that may be called."""
    patience: float
    """Seconds to wait for what is followed asynchronously."""


class Made(NamedTuple):
    """Something that a step made, and how to remove it."""

    name: str
    remove: Callable[[], object]


class Checkup:
    """One checkup of one server."""

    def __init__(self, api: Api, deployment: Deployment | None, options: Options) -> None:
        self.api = api
        self.deployment = deployment
        self.options = options
        self.name = f"{PREFIX}{uuid4().hex[:12]}"
        self.facts: dict[str, Any] = {}
        """What a step learned and later ones use."""
        self.made: list[Made] = []
        self.secrets: list[str] = [*api.login.secrets(), secret := uuid4().hex]
        self.webhook_secret = secret

    def will_remove(self, name: str, remove: Callable[[], object]) -> None:
        """Registers something that was made, or is about to be."""
        self.made.append(Made(name, remove))

    def fact(self, name: str) -> Any:
        """Returns what an earlier step learned.

        Raises:
            LeftOut: that step did not get so far.
        """
        if name not in self.facts:
            raise LeftOut(f"an earlier step did not learn the {name.replace('_', ' ')}")
        return self.facts[name]

    @property
    def aws(self) -> Deployment:
        """The deployment in AWS.

        Raises:
            LeftOut: nobody named its stack or profile.
        """
        if self.deployment is None:
            raise LeftOut("needs AWS credentials: give --stack, and --profile if you use one")
        return self.deployment

    def wait(self, what: str, condition: Callable[[], Any]) -> Any:
        """Returns the first true value of a condition that becomes true later.

        Raises:
            Wrong: it has not become true after the patience of the options.
        """
        deadline = time.monotonic() + self.options.patience
        while not (seen := condition()):
            if time.monotonic() > deadline:
                raise Wrong(f"{what}: not after {self.options.patience:.0f} s")
            with self.api.interruption.immediate():
                time.sleep(PAUSE_SECONDS)
        return seen


def expect(condition: object, message: str) -> None:
    """Raises Wrong with the message if the condition is not true."""
    if not condition:
        raise Wrong(message)
