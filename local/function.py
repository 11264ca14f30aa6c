"""One Lambda function in this process: imports its module once and calls its handler.

Knows neither HTTP nor streams.
"""

from __future__ import annotations

import importlib
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from typing import Any

from local.definitions import FunctionDefinition

Handler = Callable[[Any, Any], Any]


class Context:
    """What Lambda passes beside the event."""

    function_version = "$LATEST"
    identity = None
    client_context = None
    log_stream_name = "local"
    streams = True
    """An answer's body may come in parts; Lambda's own runtime for Python takes none."""

    __slots__ = (
        "_deadline",
        "aws_request_id",
        "function_name",
        "invoked_function_arn",
        "log_group_name",
        "memory_limit_in_mb",
    )

    def __init__(self, definition: FunctionDefinition, request_id: str | None = None) -> None:
        self.function_name = definition.name
        self.memory_limit_in_mb = str(definition.memory_mb)
        self.invoked_function_arn = (
            f"arn:aws:lambda:us-east-1:000000000000:function:{definition.name}"
        )
        self.log_group_name = f"/aws/lambda/{definition.name}"
        self.aws_request_id = request_id or str(uuid.uuid4())
        self._deadline = time.monotonic() + definition.timeout_seconds

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the function's timeout."""
        return max(0, int((self._deadline - time.monotonic()) * 1000))


class ImportFailed(Exception):
    """The function's module could not be imported; every call of it fails."""


class Function:
    """One function of the template."""

    def __init__(self, definition: FunctionDefinition) -> None:
        self.definition = definition
        self._lock = threading.Lock()
        self._handler: Handler | None = None

    def load(self) -> Handler:
        """The handler; the first call imports the module.

        A failed import is tried again, as Lambda does.

        Raises:
            ImportFailed: the traceback is in the message.
        """
        if self._handler is not None:
            return self._handler
        with self._lock:
            if self._handler is None:
                module_name, _, attribute = self.definition.handler.rpartition(".")
                code = str(self.definition.code)
                if code not in sys.path:
                    sys.path.insert(0, code)
                try:
                    module = importlib.import_module(module_name)
                    self._handler = getattr(module, attribute)
                except Exception:
                    raise ImportFailed(
                        f"{self.definition.name}: cannot import {self.definition.handler}\n"
                        + traceback.format_exc()
                    ) from None
        assert self._handler is not None  # noqa: S101 - for the type checker
        return self._handler

    def invoke(self, event: Any, request_id: str | None = None) -> Any:
        """Calls the handler in this thread and lets its exceptions out."""
        handler = self._handler or self.load()
        return handler(event, Context(self.definition, request_id))
