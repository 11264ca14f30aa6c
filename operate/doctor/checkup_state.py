"""The state that the steps of one checkup share: the server, values for later steps, and the
entities to remove at the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from uuid import uuid4

from operate.doctor.api import Api
from operate.doctor.outcome import LeftOut, Wrong
from operate.doctor.stack import Deployment

PREFIX: Final = "mlflow-doctor-"
"""The names of the experiment, the registered model and the webhook that a checkup creates begin
with this."""
PAUSE_SECONDS: Final = 0.5


class Options(NamedTuple):
    """The options of the command ``doctor`` that its steps use."""

    client: str | None
    """The path of a Python interpreter with mlflow; None to look for one."""
    receiver: str | None
    """``HOST:PORT`` at which this machine listens for a webhook's delivery."""
    receiver_url: str | None
    """The URL that leads to ``receiver``, if the server knows it by another address, such as a
    tunnel's."""
    endpoint: str | None
    """The name of a chat endpoint of the AI gateway that may be called; None for none."""
    patience: float
    """How many seconds to wait for results of asynchronous work."""


class CreatedEntity(NamedTuple):
    """An entity that a step of ``doctor``'s checkup created on the checked server, and the function
    that removes it."""

    name: str
    remove: Callable[[], object]


class Checkup:
    """The state of one checkup (command ``doctor``) of one server: values for later steps, and the
    created entities, which the checkup removes at its end."""

    def __init__(self, api: Api, deployment: Deployment | None, options: Options) -> None:
        self.api = api
        self.deployment = deployment
        self.options = options
        self.name = f"{PREFIX}{uuid4().hex[:12]}"
        self.facts: dict[str, Any] = {}
        """Values that a step stores for later steps, by name."""
        self.made: list[CreatedEntity] = []
        self.secrets: list[str] = [*api.login.secrets(), secret := uuid4().hex]
        self.webhook_secret = secret

    def will_remove(self, name: str, remove: Callable[[], object]) -> None:
        """Registers an entity that the checkup removes at its end. To be called just before the
        entity is created, so that it is removed even if the step fails."""
        self.made.append(CreatedEntity(name, remove))

    def fact(self, name: str) -> Any:
        """Returns a value that an earlier step of the checkup stored in ``facts``.

        Raises:
            LeftOut: no step has stored it, because that step failed or was left out.
        """
        if name not in self.facts:
            raise LeftOut(f"an earlier step did not learn the {name.replace('_', ' ')}")
        return self.facts[name]

    @property
    def aws(self) -> Deployment:
        """The stack in AWS of the server that is checked.

        Raises:
            LeftOut: the command line names neither a stack nor a profile.
        """
        if self.deployment is None:
            raise LeftOut("needs AWS credentials: give --stack, and --profile if you use one")
        return self.deployment

    def wait(self, awaited: str, condition: Callable[[], Any]) -> Any:
        """Calls ``condition`` repeatedly until its result is true, and returns that result.

        Args:
            awaited: describes the condition in the error message, such as "the delivery arrived".

        Raises:
            Wrong: the condition was not true within ``options.patience`` seconds.
        """
        deadline = time.monotonic() + self.options.patience
        while not (seen := condition()):
            if time.monotonic() > deadline:
                raise Wrong(f"{awaited}: not after {self.options.patience:.0f} s")
            with self.api.interruption.immediate():
                time.sleep(PAUSE_SECONDS)
        return seen


def expect(condition: object, message: str) -> None:
    """Raises :class:`Wrong` (a step found a fault) with the message if the condition is not
    true."""
    if not condition:
        raise Wrong(message)
