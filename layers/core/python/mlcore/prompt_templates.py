"""Templates of prompts: a text, or a list of chat messages, with variables in double braces.

A template is passed as one text. For a chat prompt the text is the JSON of its messages, as the
registry stores it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mlcore.wire.json_text import load_json

VARIABLE: Final = re.compile(r"\{\{\s*([a-zA-Z_][a-zA-Z0-9_]*(?:\.[a-zA-Z_][a-zA-Z0-9_]*)*)\s*\}\}")

Message = dict[str, Any]


class PromptTemplate(NamedTuple):
    """The text of a prompt template, and whether it is the JSON of chat messages."""

    text: str
    is_chat: bool = False

    def messages(self) -> list[Message]:
        """Returns the template as chat messages. A text template becomes one message of the role
        ``user``.

        Raises:
            ValueError: the JSON of a chat prompt is no list of messages with role and content.
        """
        if not self.is_chat:
            return [{"role": "user", "content": self.text}]
        messages = load_json(self.text)
        if not isinstance(messages, list) or not messages:
            raise ValueError("it is no list of messages")
        for message in messages:
            if not isinstance(message, dict) or not all(
                isinstance(message.get(field), str) for field in ("role", "content")
            ):
                raise ValueError("a message needs a role and a content that are strings")
        return messages

    def variables(self) -> set[str]:
        """Returns the names of the template's variables."""
        return set(VARIABLE.findall(self.text))

    def is_jinja(self) -> bool:
        """Whether the template contains statements of Jinja2 (``{% … %}``), which this server does
        not run."""
        return "{%" in self.text and "%}" in self.text

    def filled(self, values: Mapping[str, Any]) -> list[Message]:
        """Returns the template as messages in which the variables are replaced by their values. A
        variable without a value stays. Values are not searched for variables. Raises ValueError as
        :meth:`messages`."""

        def value(match: re.Match[str]) -> str:
            return str(values[match[1]]) if match[1] in values else match[0]

        return [
            {"role": message["role"], "content": VARIABLE.sub(value, message["content"])}
            for message in self.messages()
        ]
