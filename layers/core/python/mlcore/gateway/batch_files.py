"""Checks which models the requests in a batch file name: a file with one JSON request in each line,
which a client uploads through the proxy.

The provider executes a batch later. The gateway does not see which models it uses then, and counts
the results at the price of the endpoint's model. So the lines may name only models of the endpoint.
Parsers differ in what they accept. So a file that is not plainly lines of JSON, but has a member
``model`` in some spelling, is refused.

Lines are read one at a time. A file is decoded as a whole only if it is in UTF-16 or UTF-32, or if
its JSON values extend over several lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from mlcore.errors import GatewayCallFailed
from mlcore.gateway import proxied_forms
from mlcore.providers.proxied import ProxiedRequest

_REQUESTS: Final = ("body", "params", "request")
"""Names of the member of a line that holds the request, at OpenAI, Anthropic and Gemini."""
_CONTAINERS: Final = ("requests", "batch", "inputconfig")
"""Names of the members that hold the requests of a batch which is sent whole, at Anthropic and
Gemini."""
_MODEL: Final = "model"
_PURPOSE: Final = "purpose"
_BATCH: Final = "batch"
_UPLOADS: Final = "/uploads"
"""The end of OpenAI's path that begins an upload in parts."""
_GAP: Final = r"[\x00-\x20_-]*"
_WORD: Final = _GAP.join("model")
_MAY_NAME: Final = re.compile(rb"%b|\\[ux0-9]" % _WORD.encode(), re.IGNORECASE)
"""Matches every line that can name a model: it contains the word, or an escape that may spell a
letter of the word."""
_OPENS: Final = re.compile(r"[^\w{\[]*(?:\{|\[\s*[\[{])")
"""Matches a line that begins with an object, or with a list of objects."""
_NAMES: Final = re.compile(rf"""["'{{,]{_GAP}{_WORD}{_GAP}(?:["']\s*)?(?:[:/#]|$)""", re.IGNORECASE)
"""Matches a text with a member ``model``, also with other quotes or none. A comment, or the end of
the line, may follow the name."""
_ESCAPE: Final = re.compile(r"\\(?:u\{?|x)0*([0-9a-f]{2})|\\([0-7]{3})", re.IGNORECASE)
_OTHER_NAMES: Final = re.compile(r"[\W_]")
_SPACE: Final = re.compile(r"\s*")
_UTF_8: Final = ("utf-8", "utf-8-sig")
_COMMAND: Final = "x-goog-upload-command"
_OFFSET: Final = "x-goog-upload-offset"
_RANGE: Final = "content-range"
_GOOGLES: Final = "models/"


class _Object(list[tuple[str, Any]]):
    """The members of a JSON object as (name, value) pairs, also those with equal names."""


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_Object, parse_int=str, parse_float=str, strict=False
)
"""Accepts numbers of any length, and control characters in texts, as other parsers do."""


def check(request: ProxiedRequest, models: Collection[str], headers: Mapping[str, str]) -> None:
    """Checks the files that a request through the AI gateway's proxy uploads, in a form or as its
    body: the requests in a batch file may name only the endpoint's models.

    Args:
        models: the names of models that the lines of a file may contain.
        headers: those of the request.

    Raises:
        GatewayCallFailed: a line names another model (403); or the file of a batch has a line that
            is not JSON, a file without a purpose has a member ``model`` in such a line, or a file
            is uploaded in parts, between which a name can be cut (400).
    """
    purpose = request.named.get(_PURPOSE)
    path = request.path.partition("?")[0].rstrip("/").lower()
    if path.endswith(_UPLOADS) and isinstance(purpose, str) and _BATCH in purpose.lower():
        raise GatewayCallFailed(
            400, "The file of a batch cannot be uploaded in parts. Upload it as one file."
        )
    if _is_part(headers):
        raise GatewayCallFailed(400, "A file cannot be uploaded in parts. Upload it at once.")
    if request.content is None:
        return
    if not proxied_forms.is_form(request):
        _check_file(request.content, models, None)
        return
    fields = list(proxied_forms.fields(request))
    purposes = [field.value for field in fields if field.name.strip().lower() == _PURPOSE]
    is_batch = any(_BATCH.encode() in value.lower() for value in purposes) if purposes else None
    for field in fields:
        if field.is_file:
            _check_file(field.value, models, is_batch)


def names_other(value: Any, models: Collection[str]) -> bool:
    """Whether the JSON of a request to a provider's batch API (a line of the batch's file, or the
    request that begins the batch) names a model other than ``models``."""
    return not all(_is_one_of(name, models) for name in _named(value))


def _is_part(headers: Mapping[str, str]) -> bool:
    """Whether a request sends a part of a file, by Google's protocol of resumable uploads."""
    for name, value in headers.items():
        lower, text = name.lower(), value.strip().lower()
        if lower == _RANGE or (lower == _OFFSET and text.strip("0")):
            return True
        if lower == _COMMAND:
            commands = {command.strip() for command in text.split(",")}
            if commands != {"start"} and not commands >= {"upload", "finalize"}:
                return True
    return False


def _check_file(content: bytes, models: Collection[str], is_batch: bool | None) -> None:
    """Checks a file. ``is_batch`` is what its purpose says; None without a purpose. A file for
    another purpose may be a text about models in any form."""
    encoding = json.detect_encoding(content)
    if encoding not in _UTF_8:  # a guess from the first bytes: another reader may take UTF-8
        decoded = content.decode(encoding, "replace").encode()
        _check_lines(decoded, models, is_batch)
    _check_lines(content, models, is_batch)


def _check_lines(content: bytes, models: Collection[str], is_batch: bool | None) -> None:
    is_document = None
    for number, line in enumerate(_lines(content), 1):
        if not is_batch and _MAY_NAME.search(line) is None:
            continue
        text = line.decode("utf-8-sig", "replace")
        try:
            values, is_json = _sequence(text)
        except RecursionError:
            raise GatewayCallFailed(
                400, f"Line {number} of the file is nested too deeply."
            ) from None
        if any(names_other(value, models) for value in values):
            raise GatewayCallFailed(
                403,
                f"Line {number} of the file names a model that is not the endpoint's. The requests "
                "of a batch may name only the model that the endpoint has.",
            )
        if is_json or is_batch is False:
            continue
        if is_batch:
            raise GatewayCallFailed(400, f"Line {number} of the file of a batch is not JSON.")
        plain = _ESCAPE.sub(_unescaped, text)
        if _OPENS.match(plain) is None:
            if _NAMES.search(plain) is None:
                continue
            if is_document is None:
                is_document = _is_document(content, models)
            if is_document:
                continue
        elif _MAY_NAME.search(plain.encode("utf-8", "replace")) is None:
            continue
        raise GatewayCallFailed(
            400,
            f"Line {number} of the file has a member 'model', but is not JSON in UTF-8, so it "
            "cannot be checked which model it names.",
        )


def _is_document(content: bytes, models: Collection[str]) -> bool:
    """Whether a file consists of JSON values, which extend over several lines and name no other
    model. Raises GatewayCallFailed (400, 403)."""
    try:
        values, is_json = _sequence(content.decode("utf-8-sig", "replace"))
    except RecursionError:
        raise GatewayCallFailed(400, "The file is nested too deeply.") from None
    if any(names_other(value, models) for value in values):
        raise GatewayCallFailed(403, "The file names a model that is not the endpoint's.")
    return is_json


def _unescaped(match: re.Match[str]) -> str:
    hexadecimal, octal = match.groups()
    return chr(int(hexadecimal, 16) if hexadecimal else int(octal, 8))


def _lines(content: bytes) -> Iterator[bytes]:
    """Yields the lines of a file that are not empty."""
    begin = 0
    while begin < len(content):
        end = content.find(b"\n", begin)
        end = len(content) if end < 0 else end
        line = content[begin:end].strip()
        begin = end + 1
        if line:
            yield line


def _sequence(text: str) -> tuple[list[Any], bool]:
    """Returns the JSON values at the beginning of a text, one after the other, and whether they are
    the whole text. Raises RecursionError."""
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
    """Yields the values of ``model`` in the requests of a line, also in lists of requests, however
    deep these are nested."""
    pending = [value]
    while pending:
        value = pending.pop()
        if not isinstance(value, _Object | dict):
            if isinstance(value, list):
                pending += value
            continue
        for name, request in _members(value):
            plain = _plain(name)
            if plain in _CONTAINERS and isinstance(request, list | dict):
                pending.append(request)
            if plain in _REQUESTS and isinstance(request, _Object | dict):
                yield from (named for inner, named in _members(request) if _plain(inner) == _MODEL)


def _members(value: _Object | dict[str, Any]) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, dict) else value


def _plain(name: str) -> str:
    return _OTHER_NAMES.sub("", name).casefold()


def _is_one_of(name: Any, models: Collection[str]) -> bool:
    return isinstance(name, str) and (name in models or name.removeprefix(_GOOGLES) in models)
