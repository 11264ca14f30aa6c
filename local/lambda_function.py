"""Runs one Lambda function in this process: imports its module once and calls its handler."""

from __future__ import annotations

import gc
import importlib
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from local.log import report
from local.template_definitions import FunctionDefinition

Handler = Callable[[Any, Any], Any]


class Context:
    """The ``context`` argument of a handler, with the attributes that Lambda gives it."""

    function_version = "$LATEST"
    identity = None
    client_context = None
    log_stream_name = "local"
    streams = True
    """Tells a handler that its answer's body may be an iterator of bytes. Lambda's runtime for
    Python does not allow that."""

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
    """Raised by every call of a Lambda function whose module cannot be imported."""


_importing = threading.Lock()
"""Held while a function is imported: two functions share most of their modules."""


LOADED_FIRST = ("experiments.", "runs.")
"""Beginnings of the handlers' names that every training calls. They are imported when the runner
is ready. Other functions are imported at their first call, to keep the start short and the
memory of an idle runner small."""


class Function:
    """A Lambda function of template.yaml in this process. Its first call imports its module."""

    def __init__(self, definition: FunctionDefinition) -> None:
        self.definition = definition
        self._handler: Handler | None = None

    def load(self) -> Handler:
        """Returns the function's handler and imports its module first if necessary. After a failed
        import the next call tries again, as Lambda does. Raises ImportFailed, whose message holds
        the traceback.
        """
        if self._handler is not None:
            return self._handler
        with _importing:
            if self._handler is None:
                module_name, _, attribute = self.definition.handler.rpartition(".")
                code = str(self.definition.code)
                if code not in sys.path:
                    sys.path.insert(0, code)
                try:
                    module = importlib.import_module(module_name)
                    self._handler = getattr(module, attribute)
                    gc.freeze()  # modules live as long as the process
                except Exception:
                    raise ImportFailed(
                        f"{self.definition.name}: cannot import {self.definition.handler}\n"
                        + traceback.format_exc()
                    ) from None
        assert self._handler is not None  # noqa: S101 - for the type checker
        return self._handler

    def invoke(self, event: Any, request_id: str | None = None) -> Any:
        """Calls the function's handler with the event, in this thread. Exceptions of the handler
        pass to the caller."""
        handler = self._handler or self.load()
        return handler(event, Context(self.definition, request_id))


def load_first(functions: Iterable[Function]) -> None:
    """Imports the modules of those functions whose handlers begin with one of :data:`LOADED_FIRST`.
    A failed import is only logged.
    """
    for function in functions:
        if function.definition.handler.startswith(LOADED_FIRST):
            try:
                function.load()
            except ImportFailed as error:
                report(str(error))
