"""The language model that a job calls."""

from __future__ import annotations

from typing import Any, NamedTuple

from mlcore.entities.gateway import Configuration, SavedKeyModel


class JobModel(NamedTuple):
    """The model of a job: an endpoint of the AI gateway or, if ``endpoint_name`` is empty, a
    provider's model with a saved key."""

    endpoint_name: str
    saved_key: SavedKeyModel | None = None

    @property
    def uri(self) -> str:
        """The URI of the job's AI model: ``gateway:/<endpoint>`` or ``<provider>:/<model>``."""
        if self.saved_key is None:
            return f"gateway:/{self.endpoint_name}"
        return f"{self.saved_key.provider}:/{self.saved_key.model_name}"

    @property
    def params(self) -> dict[str, Any]:
        """The entries that name this model in the ``params`` of a background job that asks it."""
        key = {} if self.saved_key is None else {"saved_key": list(self.saved_key)}
        return {"model": self.uri, "endpoint_name": self.endpoint_name, **key}

    @property
    def tags(self) -> dict[str, str]:
        """The tags by which a job's run names the job's model."""
        endpoint = {"endpoint_name": self.endpoint_name} if self.endpoint_name else {}
        return {"model": self.uri, **endpoint}

    def check_usable(self, known: Configuration) -> None:
        """Checks that the AI gateway has this model's endpoint or, without an endpoint, that the
        model's saved API key can be used with the model's provider.

        Raises:
            ResourceDoesNotExist: there is no such endpoint or saved key.
            InvalidParameterValue: the saved key is another provider's.
        """
        if self.saved_key is None:
            known.existing_endpoint(self.endpoint_name)
        else:
            self.saved_key.check_usable(known)
