"""Replaces private texts in the requests that a gateway call sends to model providers, by those
rules of the setting ``redaction`` that apply to providers.

A request with content that cannot be searched (pictures, sound, compressed files, lists of tokens)
is refused unless the rules let it through. No error quotes a text of the request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, unquote_plus

from mlcore.errors import GatewayCallFailed
from mlcore.gateway import enclosed_files, proxied_forms
from mlcore.gateway.enclosed_files import Holder, Unsearched
from mlcore.gateway.proxied_forms import Field
from mlcore.providers.provider import LOGINS, brings_credentials
from mlcore.providers.proxied import ProxiedRequest
from mlcore.redaction.redactor import Redactor, SearchTooLong, parsed_text
from mlcore.redaction.rules import RequestRules

Json = dict[str, Any]

_BODY_PATHS: Final = ("inputs",)
"""The path of a request's body, by which rules on fields name it; the trace of the call has the
same path."""
_BOM: Final = "\ufeff"
_MAX_DECODINGS: Final = 5
_PARAMETERS: Final = re.compile("[&;=]")
_IN_BRACKETS: Final = re.compile(r"\[([^\]]*)\]")


@contextmanager
def _in_time() -> Iterator[None]:
    """Raises GatewayCallFailed (400) if a search inside the ``with`` block takes too long, or if
    the searched value is nested too deeply."""
    try:
        yield
    except SearchTooLong:
        raise GatewayCallFailed(
            400, "The request is not sent: rules of redaction cannot search it in time."
        ) from None
    except RecursionError:
        raise GatewayCallFailed(400, "The request is nested too deeply.") from None


class RequestRedaction(NamedTuple):
    """Applies a gateway endpoint's redaction rules to the requests for model providers."""

    rules: RequestRules

    def body(self, body: Json) -> Json:
        """Returns a JSON body in which the texts that rules match are replaced; the original is
        unchanged.

        Raises:
            GatewayCallFailed: the body has content that cannot be searched, or a rule replaces all
                of the body; status 400.
        """
        with _in_time():
            return _Search(self.rules).object(body, _BODY_PATHS)

    def translated(self, body: Json) -> Json:
        """Redacts a body again after its translation to a provider's form, because the translation
        may have joined texts. Rules on fields do not apply, since they name fields of the original.
        Raises the errors of :meth:`body`."""
        with _in_time():
            return _Search(self.rules).object(body, ())

    @_in_time()
    def headers(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Returns a caller's headers without those in which a rule matches. Some client programs
        send credentials for the provider in headers; rules that find credentials do not apply to
        these headers.

        Args:
            headers: names in lower case.

        Raises:
            GatewayCallFailed: another rule matches in such credentials, or any rule in the
                User-Agent beside them. They cannot be removed, since the call would then use the
                endpoint's credentials; status 400.
        """
        redactor = self.rules.redactor()
        brought = LOGINS if brings_credentials(headers) else frozenset()
        others = {name: value for name, value in headers.items() if name not in brought}
        if not redactor.is_clean((others,)):
            others = {
                name: value for name, value in others.items() if not _finds(redactor, (name, value))
            }
        of_logins = self.rules.redactor(finds_credentials=False)
        logins = {name: headers[name] for name in brought if name in headers}
        if logins and _finds(redactor, (headers["user-agent"],)):
            raise _refused("matches in the User-Agent by which the call may bring credentials")
        if logins and _finds(of_logins, logins.values()):
            raise _refused("matches in the credentials that the call brings for the provider")
        return {**others, **logins}

    @_in_time()
    def proxied(self, request: ProxiedRequest) -> ProxiedRequest:
        """Returns a copy of a request to any path of a model provider, in which the texts that
        redaction rules match are replaced.

        Raises:
            GatewayCallFailed: a rule matches in the address, in a content type or in the headers of
                a form's part, or content cannot be searched; status 400.
        """
        search = _Search(self.rules)
        if search.finds(_texts_of_address(request.path)):
            raise _refused("matches in the address")
        if request.body is not None:
            return request._replace(body=search.object(request.body, _BODY_PATHS))
        if search.finds((request.content_type,)):
            raise _refused("matches in the content type")
        if request.content is None:
            return request
        if proxied_forms.is_form(request):
            return request._replace(content=proxied_forms.changed(request, search.field))
        return request._replace(content=search.file(request.content, _BODY_PATHS))


class _Search:
    """Redacts the parts of one request, with one time limit for all of them."""

    def __init__(self, rules: RequestRules) -> None:
        self._rules = rules
        self._redactor = rules.redactor()

    def finds(self, texts: Iterable[str]) -> bool:
        """Whether a rule matches in one of the texts."""
        return _finds(self._redactor, texts)

    def object(self, body: Json, paths: tuple[str, ...]) -> Json:
        """Returns a JSON object in which the texts that rules match are replaced. Raises the errors
        of :meth:`RequestRedaction.body`.

        Args:
            paths: the paths by which rules on fields name the object.
        """
        redacted = self._value(body, paths)
        if not isinstance(redacted, dict):
            raise _refused("replaces the whole request")
        return redacted

    def _value(self, value: Any, paths: tuple[str, ...]) -> Any:
        """Returns a JSON value in which the texts that rules match are replaced; the same object if
        they match nothing."""
        if self._rules.refuse_unsearchable and isinstance(value, dict):
            self._check_tokens(value)
        opened = self._opened(value, "", Holder({}))
        redacted = self._redactor.value(opened, *paths)
        if redacted == value:
            return value
        return redacted if opened is value else _closed(redacted)

    def _check_tokens(self, request: Json) -> None:
        if enclosed_files.has_tokens(request):
            raise _unsearchable("texts as lists of token numbers")

    def _opened(self, value: Any, member: str, holder: Holder, *, is_item: bool = False) -> Any:
        """Returns a value in which files that are texts are redacted, and other files are replaced
        by :class:`Unsearched`. A value without files is returned as it is.

        Args:
            member: the name of the holder's member that is the value, or a list with the value.
            is_item: whether the value is in a list.
        """
        if isinstance(value, str):
            return self._opened_text(value, member, holder)
        if not isinstance(value, dict | list):
            return value
        if not is_item and enclosed_files.is_arguments(member, holder):
            return value
        if isinstance(value, dict):
            inner = Holder(value, member, holder, is_item=is_item)
            members = {name: self._opened(item, name, inner) for name, item in value.items()}
            is_same = all(members[name] is item for name, item in value.items())
            return value if is_same else members
        items = [self._opened(item, member, holder, is_item=True) for item in value]
        is_same = all(new is item for new, item in zip(items, value, strict=True))
        return value if is_same else items

    def _opened_text(self, value: str, member: str, holder: Holder) -> Any:
        file = enclosed_files.file_in(member, value, holder)
        if file is None:
            return value
        if enclosed_files.text_of(file.content) is None:
            if not (file.is_state or file.is_identifier):
                self._check_sent("a file that is not text")
            is_apart = file.is_known and not self.finds((file.kind,))
            return Unsearched(value) if is_apart else value
        content = self.file(file.content, _BODY_PATHS)
        return value if content == file.content else enclosed_files.encoded(file, content)

    def file(self, content: bytes, paths: tuple[str, ...]) -> bytes:
        """Returns the content of a file (a text, JSON, or lines of JSON) in which the texts that
        rules match are replaced."""
        text = enclosed_files.text_of(content)
        if text is None:
            self._check_sent("a file that is not text in UTF-8")
            return content
        redacted = self._text(text, paths)
        return content if redacted == text else redacted.encode("utf-8", "replace")

    def field(self, field: Field) -> bytes:
        """Returns the value of a form's field in which the texts that rules match are replaced."""
        headers = field.headers.decode("utf-8", "replace")
        if self.finds((headers, unquote(headers), *headers.split("\r\n"), field.name)):
            raise _refused("matches in the headers of a part of the form")
        if field.is_file:
            return self.file(field.value, _BODY_PATHS)
        name = _IN_BRACKETS.sub(r".\1", field.name).rstrip(".")
        return self.file(field.value, tuple(f"{path}.{name}" for path in _BODY_PATHS))

    def _text(self, text: str, paths: tuple[str, ...]) -> str:
        """Redacts the text of a file and returns it."""
        mark = _BOM if text.startswith(_BOM) else ""
        plain = text[len(mark) :]
        whole = self._json_text(plain, paths)
        if whole is None:
            lines = plain.split("\n")
            redacted = (self._json_text(line, paths) for line in lines)
            plain = "\n".join(
                line if new is None else new for line, new in zip(lines, redacted, strict=True)
            )
            return mark + self._redactor.text(plain, *paths)
        return mark + whole

    def _json_text(self, text: str, paths: tuple[str, ...]) -> str | None:
        """Redacts a JSON text and returns it; None if the text is no JSON object, array or
        string."""
        value, has_duplicates = parsed_text(text)
        if value is None:
            return None
        redacted = self._value(value, paths)
        return text if redacted is value and not has_duplicates else json.dumps(redacted)

    def _check_sent(self, content: str) -> None:
        """Raises GatewayCallFailed (400) if the rules refuse content that cannot be searched.

        Args:
            content: names the content, for the message.
        """
        if self._rules.refuse_unsearchable:
            raise _unsearchable(content)


def _closed(value: Any) -> Any:
    """Returns a value in which each :class:`Unsearched` is replaced by its file again."""
    if isinstance(value, Unsearched):
        return value.value
    if isinstance(value, dict):
        return {name: _closed(item) for name, item in value.items()}
    return [_closed(item) for item in value] if isinstance(value, list) else value


def _finds(redactor: Redactor, texts: Iterable[str]) -> bool:
    return any(redactor.text(text) != text for text in texts)


def _texts_of_address(path: str) -> set[str]:
    """Returns the texts in which rules search an address: path and query, whole and in parts, as
    sent and percent-decoded. Raises GatewayCallFailed (400) for more than 5 layers of encoding."""
    way, _, query = path.partition("?")
    texts = {path, way, query, *way.split("/"), *_PARAMETERS.split(query)}
    waiting = texts
    for _ in range(_MAX_DECODINGS):
        decoded = {decode(text) for text in waiting for decode in (unquote, unquote_plus)}
        waiting = decoded - texts
        texts |= decoded
        if not waiting:
            return texts
    raise GatewayCallFailed(400, "The address is encoded too often.")


def _refused(reason: str) -> GatewayCallFailed:
    return GatewayCallFailed(400, f"The request is not sent: a rule of redaction {reason}.")


def _unsearchable(content: str) -> GatewayCallFailed:
    return GatewayCallFailed(
        400,
        f"The request is not sent: it has {content}, which rules of redaction cannot search. An "
        "administrator can let it through ('unsearchable': 'send').",
    )
