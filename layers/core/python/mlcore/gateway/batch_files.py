"""Checks the models in files with the requests of a batch (lines of JSON) that are uploaded through
the proxy.

The provider executes a batch later. The gateway does not see which models it uses then, and counts
the results at the price of the endpoint's model. So the lines may name only models of the endpoint.
Lines are read one at a time; a file is never decoded as a whole, unless it is in UTF-16 or UTF-32.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, Final

from mlcore.errors import GatewayCallFailed
from mlcore.gateway import proxied_forms
from mlcore.providers.proxied import ProxiedRequest

_REQUESTS: Final = ("body", "params", "request")
"""Names of the member of a line that holds the request, at OpenAI, Anthropic and Gemini."""
_LIST: Final = "requests"
"""Holds the requests of a batch that is sent whole, in Anthropic's form."""
_MODEL: Final = "model"
_PURPOSE: Final = "purpose"
_BATCH: Final = "batch"
_UPLOADS: Final = "/uploads"
"""The end of OpenAI's path that begins an upload in parts."""
_MAY_NAME: Final = re.compile(rb"model|\\u00", re.IGNORECASE)
"""Matches every line that can name a model: it contains the word, or an escape that may spell a
letter of the word."""
_OTHER_NAMES: Final = re.compile(r"[\s_-]")
_SPACE: Final = re.compile(r"\s*")
_GOOGLES: Final = "models/"


class _Object(list[tuple[str, Any]]):
    """The members of a JSON object as (name, value) pairs, also those with equal names."""


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_Object)


def check(request: ProxiedRequest, models: Collection[str]) -> None:
    """Checks the files that a request uploads, in a form or as its body.

    Args:
        models: the names of models that the lines may contain.

    Raises:
        GatewayCallFailed: a line names another model (403); or the file of a batch has a line that
            is not JSON, or is uploaded in parts, between which a name can be cut (400).
    """
    purpose = request.named.get(_PURPOSE)
    path = request.path.partition("?")[0].rstrip("/").lower()
    if path.endswith(_UPLOADS) and isinstance(purpose, str) and _BATCH in purpose.lower():
        raise GatewayCallFailed(
            400, "The file of a batch cannot be uploaded in parts. Upload it as one file."
        )
    if request.content is None:
        return
    if not proxied_forms.is_form(request):
        _check_file(request.content, models, is_batch=False)
        return
    fields = list(proxied_forms.fields(request))
    is_batch = any(
        field.name.strip().lower() == _PURPOSE and _BATCH.encode() in field.value.lower()
        for field in fields
    )
    for field in fields:
        if field.is_file:
            _check_file(field.value, models, is_batch=is_batch)


def _check_file(content: bytes, models: Collection[str], *, is_batch: bool) -> None:
    for number, line in enumerate(_lines(content), 1):
        if not is_batch and _MAY_NAME.search(line) is None:
            continue
        try:
            values, is_json = _values(line)
        except RecursionError:
            raise GatewayCallFailed(
                400, f"Line {number} of the file is nested too deeply."
            ) from None
        if is_batch and not is_json:
            raise GatewayCallFailed(400, f"Line {number} of the file of a batch is not JSON.")
        if any(not _is_one_of(name, models) for value in values for name in _named(value)):
            raise GatewayCallFailed(
                403,
                f"Line {number} of the file names a model that is not the endpoint's. The requests "
                "of a batch may name only the model that the endpoint has.",
            )


def _lines(content: bytes) -> Iterator[bytes]:
    """Yields the lines of a file that are not empty, in UTF-8 if their encoding is known."""
    encoding = json.detect_encoding(content)
    if encoding not in ("utf-8", "utf-8-sig"):
        content = content.decode(encoding, "replace").encode()
    begin = 0
    while begin < len(content):
        end = content.find(b"\n", begin)
        end = len(content) if end < 0 else end
        line = content[begin:end].strip()
        begin = end + 1
        if line:
            yield line


def _values(line: bytes) -> tuple[list[Any], bool]:
    """Returns the JSON values of a line, and whether it consists of nothing else. If not, the list
    also has the values in the parts of the line between other line separators, at which another
    parser may end a line. Raises RecursionError."""
    text = line.decode("utf-8-sig", "replace")
    values, is_json = _sequence(text)
    if not is_json:
        for part in text.splitlines():
            values += _sequence(part)[0]
    return values, is_json


def _sequence(text: str) -> tuple[list[Any], bool]:
    """Returns the JSON values at the beginning of a text, one after the other, and whether they are
    the whole text."""
    values: list[Any] = []
    position = _end_of_space(text, 0)
    while position < len(text):
        try:
            value, position = _DECODER.raw_decode(text, position)
        except ValueError:
            return values, False
        values.append(value)
        position = _end_of_space(text, position)
    return values, True


def _end_of_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return position if match is None else match.end()


def _named(value: Any) -> Iterator[Any]:
    """Yields the values of ``model`` in the requests of a line, also in a list of requests."""
    if isinstance(value, _Object):
        for name, request in value:
            if _plain(name) == _LIST and isinstance(request, list):
                yield from _named(request)
            if _plain(name) in _REQUESTS and isinstance(request, _Object):
                yield from (named for inner, named in request if _plain(inner) == _MODEL)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, _Object):
                yield from _named(item)


def _plain(name: str) -> str:
    return _OTHER_NAMES.sub("", name).lower()


def _is_one_of(name: Any, models: Collection[str]) -> bool:
    return isinstance(name, str) and (name in models or name.removeprefix(_GOOGLES) in models)
