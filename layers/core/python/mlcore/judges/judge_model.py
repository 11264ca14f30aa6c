"""Calls the AI models of judges, through endpoints of the AI gateway. A question is asked again
without a JSON schema of the answer if the model refuses one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mlcore import errors
from mlcore.entities.evaluation.judges import Judge

Complete = Callable[[str, str, Mapping[str, Any], str | None], dict[str, Any]]
"""Completes a chat: (workspace, endpoint name, chat in OpenAI's form, username) → completion.
Raises MlflowError."""

_KEYS: Final = {
    "openai": "OPENAI_API_KEY",
    "azure": "AZURE_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "mistral": "MISTRAL_API_KEY",
}
_FORMAT_REFUSALS: Final = ("response_format", "json_schema", "structured output", "output_config")


class JudgeModel:
    """The model that a judge asks. Calls are made, and count to budgets, in a user's name."""

    def __init__(
        self, workspace: str, endpoint_name: str, username: str | None, complete: Complete
    ) -> None:
        self._workspace = workspace
        self._endpoint = endpoint_name
        self._username = username
        self._complete = complete
        self._sends_format = True

    def ask(self, chat: Mapping[str, Any]) -> dict[str, Any]:
        """Completes a chat and returns the completion. If the model refuses ``response_format``,
        this and all later chats are sent without it.

        Raises:
            MlflowError: the model could not be called; the message gives the reason.
        """
        if self._sends_format:
            try:
                return self._call(chat)
            except errors.MlflowError as error:
                message = error.message.lower()
                if error.status != 400 or not any(word in message for word in _FORMAT_REFUSALS):
                    raise
                self._sends_format = False
        plain = {name: value for name, value in chat.items() if name != "response_format"}
        return self._call(plain)

    def _call(self, chat: Mapping[str, Any]) -> dict[str, Any]:
        return self._complete(self._workspace, self._endpoint, chat, self._username)


def endpoint_of(judge: Judge) -> str:
    """Returns the name of the gateway endpoint that a judge calls. Raises InvalidParameterValue if
    the judge's model is not behind a gateway endpoint, since this server has no API keys for models
    elsewhere."""
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
