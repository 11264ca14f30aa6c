"""Applies rules of redaction to texts and JSON values.

A value that a rule on fields names is replaced as a whole. Any other redacted value has the form of
the original: objects keep their members, arrays their length. Only texts, numbers and names of
members that a rule matches are replaced. Redacting a redacted value changes nothing.

Most texts contain nothing to redact. So all texts of a value are searched together first
(:meth:`Redactor.is_clean`), and only a value with a match is redacted member by member.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from mlcore.redaction import fields as field_paths
from mlcore.redaction import leaves
from mlcore.redaction.detectors import Searched
from mlcore.redaction.fields import Paths, RedactedField
from mlcore.redaction.replacers import Replacer
from mlcore.wire.json_text import load_json

T = TypeVar("T")

REQUEST_SECONDS: Final = 10.0
"""Maximum processor time of detectors in one request to a provider, whose caller waits."""
TOTAL_SECONDS: Final = 2.0
"""Maximum time of one redactor for all regular expressions of rules. A redactor is made for one
trace, export or request."""
MAX_PATH_CHARACTERS: Final = 50_000_000
"""Maximum length of all paths together that one redactor compares with the fields of rules. A path
repeats the names of all objects around a member, so a long name with many members in it would take
hours. 6 MB of usual JSON have less than 20 million."""
_KNOWN_PATHS: Final = 20_000
_KNOWN_CHARACTERS: Final = 300
"""Maximum number and length of the paths that a redactor remembers."""
MAX_PASSES: Final = 8
WITHOUT_CONTENT: Final = "[REDACTED]"
"""Replaces required values if traces are stored without their content."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class SearchTooLong(Exception):
    """Raised if redaction rules cannot search all of a request to a model in time. A text that is
    not searched cannot simply be replaced: without a message's role, for example, a request has
    another meaning."""


class Redactor:
    """Applies given redaction rules: replaces in texts and JSON values what the rules match."""

    __slots__ = (
        "_detector_seconds_left",
        "_fields",
        "_last_segments",
        "_of_paths",
        "_path_characters_left",
        "_raises",
        "_replacers",
        "_seconds_left",
        "is_content_free",
    )

    def __init__(
        self,
        fields: Sequence[RedactedField],
        replacers: Sequence[Replacer],
        *,
        is_content_free: bool = False,
        detector_seconds: float = math.inf,
    ) -> None:
        """Makes a redactor for one trace, export or request.

        Args:
            fields: the fields whose values are replaced as a whole.
            replacers: replace parts of texts, in this order.
            is_content_free: whether traces are to be stored without their content
                (:mod:`.content_free`), before texts are redacted.
            detector_seconds: maximum processor time of all detectors. If it is limited, a text that
                cannot be searched in time raises SearchTooLong; otherwise the whole text is
                replaced.
        """
        self.is_content_free = is_content_free
        self._fields = fields
        self._last_segments = frozenset(field.last_segment for field in fields)
        self._of_paths: dict[Paths, str | None] = {}
        self._replacers = replacers
        self._seconds_left = TOTAL_SECONDS
        self._path_characters_left = MAX_PATH_CHARACTERS
        self._detector_seconds_left = detector_seconds
        self._raises = detector_seconds < math.inf

    def is_clean(self, values: Iterable[Any], names: Iterable[str] = ()) -> bool:
        """Whether no redaction rule matches inside JSON values or in names of members. True is
        certain; False means that a rule may match. Fields that name the values themselves are not
        considered."""
        texts, known_names = leaves.collected(values)
        known_names.update(names)
        if self._last_segments and self._may_have_field(known_names):
            return False
        texts += known_names
        lines = Searched("\n".join(texts))
        return not any(self._may_match(replacer, lines, texts) for replacer in self._replacers)

    def names(self, *paths: str) -> bool:
        """Whether a field of a redaction rule names one of these paths, so that the whole value at
        the path is replaced."""
        return self._replacement_at(self._normalized(paths)) is not None

    def text(self, text: str, *paths: str) -> str:
        """Redacts a text and returns it. In a text that is JSON, the values inside are redacted,
        also in JSON texts that are nested in it.

        Args:
            paths: the paths by which redaction rules can name this text, such as ``inputs``.
        """
        return self._text(text, self._normalized(paths))

    def value(self, value: Any, *paths: str) -> Any:
        """Returns a redacted copy of a JSON value; the value itself if :meth:`is_clean` says that
        no rule matches in it.

        Args:
            paths: the paths by which redaction rules can name this value, such as ``inputs``.
        """
        normalized = self._normalized(paths)
        if value is not None and self._replacement_at(normalized) is None:
            return value if self.is_clean((value,)) else self._guarded(value, normalized)
        return self._value(value, normalized)

    def matches(self, text: str) -> bool:
        """Whether a redaction rule matches in a text. Rules on fields are not considered."""
        return self._once(text, ()) != text

    def preview(self, text: str, *paths: str) -> str:
        """Redacts a client's preview of a value and returns it. If a rule names fields of the value
        and the preview is no complete JSON, the whole preview is replaced, since it is unknown
        which fields it shows."""
        normalized = self._normalized(paths)
        if self._fields and not isinstance(parsed_text(text)[0], dict | list):
            for field in self._fields:
                first = field.first_segment
                if first in field_paths.WILDCARDS or any(
                    path.split(".")[0] == first for path in normalized
                ):
                    return field.replacement
        return self._text(text, normalized)

    def _may_have_field(self, names: set[str]) -> bool:
        """Whether a field of a rule may name a member with one of these names."""
        if not self._last_segments.isdisjoint(field_paths.WILDCARDS):
            return bool(names)
        return not self._last_segments.isdisjoint(map(field_paths.last_segment, names))

    def _may_match(self, replacer: Replacer, lines: Searched, texts: Sequence[str]) -> bool:
        if not replacer.timed:
            return self._detected(lambda: replacer.matches(lines), otherwise=True)
        if self._seconds_left <= 0:
            return True
        started = time.perf_counter()
        try:
            if replacer.line_by_line:
                return any(map(replacer.matches, map(Searched, texts)))
            return replacer.matches(lines)
        except (TimeoutError, MemoryError):
            return True
        finally:
            self._seconds_left -= time.perf_counter() - started

    def _instead_of_whole(self, replacer: Replacer) -> str:
        """Returns the replacement of a text that cannot be searched in time. Raises SearchTooLong
        in a request."""
        if self._raises:
            raise SearchTooLong
        return replacer.replacement

    def _detected(self, search: Callable[[], T], *, otherwise: T) -> T:
        """Returns the result of a detector's search; ``otherwise`` if the time for detectors is
        over."""
        if self._detector_seconds_left <= 0:
            return otherwise
        started = 0.0 if self._detector_seconds_left == math.inf else time.thread_time()
        try:
            return search()
        except TimeoutError:
            return otherwise
        finally:
            if started:  # without a limit the clock is not read: it costs more than most searches
                self._detector_seconds_left -= time.thread_time() - started

    def _replacement_at(self, paths: Paths) -> str | None:
        """Returns the text that replaces the whole value at these paths; None if no field names
        them. Every value is replaced once the paths are longer than MAX_PATH_CHARACTERS together.
        """
        if not paths:
            return None
        if paths in self._of_paths:
            return self._of_paths[paths]
        length = sum(map(len, paths))
        self._path_characters_left -= length
        if self._path_characters_left < 0:
            return self._whole
        replacement = field_paths.replacement_at(self._fields, paths)
        if length <= _KNOWN_CHARACTERS and len(self._of_paths) < _KNOWN_PATHS:
            self._of_paths[paths] = replacement
        return replacement

    def _normalized(self, paths: Sequence[str]) -> Paths:
        return tuple(map(field_paths.normalized, paths)) if self._fields else ()

    def _guarded(self, value: Any, paths: Paths) -> Any:
        try:
            return self._value(value, paths)
        except RecursionError:
            return self._whole

    @property
    def _whole(self) -> str:
        """The replacement of a value that cannot be searched. Raises SearchTooLong in a request."""
        if self._raises:
            raise SearchTooLong
        rules: Sequence[Replacer | RedactedField] = self._replacers or self._fields
        return rules[0].replacement if rules else WITHOUT_CONTENT

    def _value(self, value: Any, paths: Paths) -> Any:
        if value is None:
            return None
        replacement = self._replacement_at(paths)
        if replacement is not None:
            return replacement
        if isinstance(value, str):
            return self._text(value, paths)
        if isinstance(value, dict):
            return self._object(value, paths)
        if isinstance(value, list | tuple):
            return [self._value(item, paths) for item in value]
        if isinstance(value, bool):
            return value
        text = leaves.digits(value) if isinstance(value, int | float) else str(value)
        redacted = self._plain(text)
        return value if redacted == text else redacted

    def _object(self, value: dict[str, Any], paths: Paths) -> dict[str, Any]:
        redacted: dict[str, Any] = {}
        numbers: dict[str, int] = {}
        """By redacted name, the number to append to the next equal one, so that all members stay
        distinct."""
        for key, item in value.items():
            name = new = self._unescaped(key)
            number = numbers.get(new, 2)
            while name in redacted or (name != key and name in value):
                name = f"{new} {number}"
                number += 1
            numbers[new] = number
            if paths and self._path_characters_left < 0:
                redacted[name] = self._whole  # to make the path would take the time
                continue
            redacted[name] = self._value(item, field_paths.below(paths, key) if paths else paths)
        return redacted

    def _text(self, text: str, paths: Paths) -> str:
        replacement = self._replacement_at(paths)
        if replacement is not None:
            return replacement
        is_plain = "\\u" not in text and text.lstrip()[:1] not in leaves.CONTAINERS
        for _ in range(MAX_PASSES):
            if not is_plain and self.is_clean((text,)):
                return text
            redacted = self._once(text, paths)
            if redacted == text:
                return text
            text = redacted
        return self._whole

    def _once(self, text: str, paths: Paths) -> str:
        parsed, has_duplicates = parsed_text(text)
        if parsed is None:
            return self._unescaped(text)
        redacted = self._guarded(parsed, paths)
        if redacted == parsed and not has_duplicates:
            return text
        return _json(redacted)

    def _unescaped(self, text: str) -> str:
        """Redacts a text that is no JSON. It may be a part of a JSON text, so it is also searched
        with escapes such as ``\\u0061`` replaced by their characters."""
        if "\\u" in text:
            decoded = leaves.unescaped(text)
            redacted = self._plain(decoded)
            if redacted != decoded:
                return redacted
        return self._plain(text)

    def _plain(self, text: str) -> str:
        searched = Searched(text)
        for replacer in self._replacers:
            if self._may_match(replacer, searched, (text,)):
                text = self._replaced(replacer, text)
                searched = Searched(text)
        return text

    def _replaced(self, replacer: Replacer, text: str) -> str:
        if not replacer.timed:
            redacted = self._detected(lambda: replacer.replace(text), otherwise=None)
            return self._instead_of_whole(replacer) if redacted is None else redacted
        if self._seconds_left <= 0:
            return self._instead_of_whole(replacer)
        started = time.perf_counter()
        try:
            return replacer.replace(text)
        except (TimeoutError, MemoryError):
            return self._instead_of_whole(replacer)
        finally:
            self._seconds_left -= time.perf_counter() - started


def parsed_text(text: str) -> tuple[Any, bool]:
    """Returns the value of a JSON text (None unless it is an object, array or string), and whether
    an object in it has two members of the same name. The value has only the last of these."""
    if not text.lstrip().startswith(leaves.CONTAINERS):
        return None, False
    has_duplicates = False

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_duplicates
        value = dict(pairs)
        has_duplicates = has_duplicates or len(value) < len(pairs)
        return value

    try:
        return load_json(text, object_pairs_hook=members), has_duplicates
    except ValueError:
        return None, False


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if _SURROGATE.search(text) else text
