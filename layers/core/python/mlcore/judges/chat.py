"""Calls of the models that judges ask: those behind endpoints of this deployment's gateway."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mlcore import errors
from mlcore.entities.evaluation.judges import Judge

Complete = Callable[[str, str, Mapping[str, Any], str | None], dict[str, Any]]
"""(workspace, endpoint's name, chat as OpenAI's API has it, whose call it is) → its completion;
raises MlflowError."""

_KEYS: Final = {
    "openai": "OPENAI_API_KEY",
    "azure": "AZURE_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "mistral": "MISTRAL_API_KEY",
}
_ABOUT_FORMAT: Final = ("response_format", "json_schema", "structured output", "output_config")


class Chat:
    """A model that is asked in somebody's name, whose budget it may be."""

    def __init__(
        self, workspace: str, endpoint_name: str, username: str | None, complete: Complete
    ) -> None:
        self._workspace = workspace
        self._endpoint = endpoint_name
        self._username = username
        self._complete = complete
        self._formatted = True

    def ask(self, chat: Mapping[str, Any]) -> dict[str, Any]:
        """The completion of a chat. A model that refuses to be told the form of its answer is asked
        without it from then on.

        Raises:
            MlflowError: the model was not to be had; its message says why.
        """
        if self._formatted:
            try:
                return self._call(chat)
            except errors.MlflowError as error:
                told = error.message.lower()
                if error.status != 400 or not any(word in told for word in _ABOUT_FORMAT):
                    raise
                self._formatted = False
        plain = {name: value for name, value in chat.items() if name != "response_format"}
        return self._call(plain)

    def _call(self, chat: Mapping[str, Any]) -> dict[str, Any]:
        return self._complete(self._workspace, self._endpoint, chat, self._username)


def endpoint_of(judge: Judge) -> str:
    """The name of the endpoint that a judge asks. Models that need a key of their own have none
    here.

    Raises:
        InvalidParameterValue: it is no model that this server can ask.
    """
    provider, separator, name = judge.model.partition(":/")
    name = name.lstrip("/")
    if provider == "gateway" and separator and name:
        return name
    key = _KEYS.get(provider)
    if separator and key is not None:
        raise errors.InvalidParameterValue(
            f"{key} environment variable must be set to use the {provider} provider."
        )
    raise errors.InvalidParameterValue(
        f"Judge '{judge.name}' asks the model '{judge.model}', which this server cannot reach. "
        "Use an endpoint of the AI gateway: 'gateway:/<name>'."
    )
