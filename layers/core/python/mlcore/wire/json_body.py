"""Parses requests of MLflow's FastAPI routes, which are not protobuf RPCs: validates JSON bodies
and query strings as pydantic does, with its messages.

A *reader* (:data:`Read`) takes a value, its position and the collected errors, and returns the
value to keep. It notes an invalid value as an error and returns something anyway. All errors of a
request are returned together, in one message or as FastAPI's list.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, NamedTuple, Self

from mlcore import errors
from mlcore.wire.json_text import NestedTooDeeply, check_depth, load_json
from mlcore.wire.message import Message

JsonPath = tuple[str | int, ...]
Read = Callable[[Any, JsonPath, "Misfits"], Any]

_OBJECT: Final = "Input should be a valid dictionary or object to extract fields from"
_MOST_LISTED: Final = 1000
_SHOWN_BYTES: Final = 50
_NOT_AN_INTEGER: Final = "Input should be a valid integer, unable to parse string as an integer"
_TRUE: Final = frozenset(("true", "t", "yes", "y", "on", "1"))
_FALSE: Final = frozenset(("false", "f", "no", "n", "off", "0"))


class Misfits:
    """Collects the validation errors of a request, in pydantic's order and words.

    Args:
        listed: return the errors as FastAPI's list, with their types and the invalid values,
            instead of as one message.
    """

    def __init__(self, *, listed: bool = False) -> None:
        self._listed = listed
        self.texts: list[str] = []
        self._details: list[dict[str, Any]] = []

    def note(
        self,
        path: JsonPath,
        text: str,
        kind: str,
        value: Any,
        context: Mapping[str, Any] | None = None,
    ) -> None:
        """Adds a validation error. FastAPI's list contains the first 1,000 errors only.

        Args:
            path: the position of the value, such as ``("tags", 0, "key")``.
            text: pydantic's message.
            kind: pydantic's name of the type of error.
            value: the invalid value.
            context: the values in the message that pydantic also returns separately (``ctx``).
        """
        if len(self._details) == _MOST_LISTED:
            return
        self.texts.append(": ".join((*((".".join(map(str, path)),) if path else ()), text)))
        if self._listed:
            detail = {"type": kind, "loc": ["body", *path], "msg": text, "input": value}
            self._details.append({**detail, "ctx": context} if context else detail)

    def written_out(self) -> str:
        """Returns the errors as the text of a pydantic exception has them, without its links. Only
        for collected lists (``listed``)."""
        lines = []
        for detail in self._details:
            path, value = detail["loc"][1:], detail["input"]
            if path:
                lines.append(".".join(map(str, path)))
            about = f"type={detail['type']}, input_value={_shown(value)}"
            lines.append(f"  {detail['msg']} [{about}, input_type={type(value).__name__}]")
        return "\n".join(lines)

    def check(self) -> None:
        """Raises the body's collected errors, if any: as InvalidParameterValue, or as Detailed
        (422), a list in FastAPI's form."""
        if not self.texts:
            return
        if self._listed:
            raise errors.Detailed(422, _of_bounded_size(self._details))
        raise errors.InvalidParameterValue(f"Invalid request: {'; '.join(self.texts)}")


def _shown(value: Any) -> str:
    """Returns the value as Python writes it, shortened as pydantic does."""
    try:
        text = repr(value)
    except RecursionError:
        return "..."
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= _SHOWN_BYTES:
        return text
    return f"{data[:25].decode(errors='ignore')}...{data[-24:].decode(errors='ignore')}"


def _of_bounded_size(details: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the first errors that fit in a response, at least one."""
    kept: list[dict[str, Any]] = []
    room = errors.MAX_MESSAGE_LENGTH
    for detail in details:
        try:
            size = len(json.dumps(detail))
        except RecursionError:
            size = room + 1
        if size > room:
            return kept or [{**detail, "input": None}]
        room -= size
        kept.append(detail)
    return kept


class JsonField(NamedTuple):
    """How a field of a JSON object is read. ``key`` is its name in the result, if that differs from
    its name in the object; the object may have either name."""

    read: Read
    required: bool = False
    key: str = ""


Fields = Mapping[str, JsonField]


def anything(value: Any, _place: JsonPath, _misfits: Misfits) -> Any:
    return value


def text(value: Any, path: JsonPath, misfits: Misfits) -> Any:
    if not isinstance(value, str):
        misfits.note(path, "Input should be a valid string", "string_type", value)
    elif not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        message = "Input should be a valid string, unable to parse raw data as a unicode string"
        misfits.note(path, message, "string_unicode", value)
    return value


def json_object(value: Any, path: JsonPath, misfits: Misfits) -> Any:
    """Reads a value of a JSON body that must be an object with any fields; notes any other value in
    ``misfits``."""
    if not isinstance(value, dict):
        misfits.note(path, "Input should be a valid dictionary", "dict_type", value)
    return value


def boolean(value: Any, path: JsonPath, misfits: Misfits) -> Any:
    """Reads a boolean of a JSON body, or one of the words and numbers that pydantic accepts as one;
    notes any other value in ``misfits``."""
    word = value.lower() if isinstance(value, str) else value
    if isinstance(word, bool):
        return word
    if isinstance(word, str | int | float):
        if word in _TRUE or word == 1:
            return True
        if word in _FALSE or word == 0:
            return False
        message = "Input should be a valid boolean, unable to interpret input"
        misfits.note(path, message, "bool_parsing", value)
    else:
        misfits.note(path, "Input should be a valid boolean", "bool_type", value)
    return value


def integer(value: Any, path: JsonPath, misfits: Misfits) -> Any:
    """Reads an integer of a JSON body, or a text or a number that pydantic accepts as one, such as
    ``"1"``; notes any other value in ``misfits``."""
    if isinstance(value, str):
        number = _integer_in(value)
        if number is None:
            misfits.note(path, _NOT_AN_INTEGER, "int_parsing", value)
        return number
    if isinstance(value, float) and not value.is_integer():
        message = "Input should be a valid integer, got a number with a fractional part"
        misfits.note(path, message, "int_from_float", value)
    elif not isinstance(value, int | float):
        misfits.note(path, "Input should be a valid integer", "int_type", value)
        return value
    return int(value)


def optional(read: Read) -> Read:
    """Returns a reader (a function that validates and converts a JSON value) that accepts null, and
    values that the reader ``read`` accepts."""

    def reader(value: Any, path: JsonPath, misfits: Misfits) -> Any:
        return None if value is None else read(value, path, misfits)

    return reader


def list_of(read: Read, most: int | None = None, least: int = 0) -> Read:
    def reader(value: Any, path: JsonPath, misfits: Misfits) -> Any:
        if not isinstance(value, list):
            misfits.note(path, "Input should be a valid list", "list_type", value)
            return value
        if len(value) < least:
            plural = "" if least == 1 else "s"
            message = (
                f"List should have at least {least} item{plural} after validation, not {len(value)}"
            )
            misfits.note(path, message, "too_short", value)
            return value
        if most is not None and len(value) > most:
            message = f"List should have at most {most} items after validation, not {len(value)}"
            misfits.note(path, message, "too_long", value)
            return value
        return [read(item, (*path, index), misfits) for index, item in enumerate(value)]

    return reader


def map_of(read: Read) -> Read:
    """Returns a reader (a function that validates and converts a JSON value) of objects with
    arbitrary keys; ``read`` reads their values."""

    def reader(value: Any, path: JsonPath, misfits: Misfits) -> Any:
        if not isinstance(value, dict):
            misfits.note(path, "Input should be a valid dictionary", "dict_type", value)
            return value
        return {key: read(item, (*path, key), misfits) for key, item in value.items()}

    return reader


def object_of(
    fields: Fields, *, extra: bool = False, forbid: bool = False, misfit: str = _OBJECT
) -> Read:
    """Returns a reader (a function that validates and converts a JSON value) of objects with known
    fields. Fields that were not sent are omitted from the result.

    Args:
        extra: whether other fields are kept unchanged, after the known ones. If False, they are
            dropped.
        forbid: whether other fields are refused.
        misfit: the error message for a value that is not an object.
    """

    def reader(value: Any, path: JsonPath, misfits: Misfits) -> Any:
        if not isinstance(value, dict):
            misfits.note(path, misfit, "model_attributes_type", value)
            return value
        kept: dict[str, Any] = {}
        read_keys = set()
        for name, field in fields.items():
            alias = field.key or name
            key = alias if alias in value else name
            if key in value:
                read_keys.add(key)
                kept[alias] = field.read(value[key], (*path, key), misfits)
            elif field.required:
                misfits.note((*path, alias), "Field required", "missing", value)
        if forbid:
            for key in value:
                if key not in read_keys:
                    message = "Extra inputs are not permitted"
                    misfits.note((*path, key), message, "extra_forbidden", value[key])
        if extra:
            kept.update({key: item for key, item in value.items() if key not in read_keys})
        return kept

    return reader


class JsonBody(Message):
    """Base of messages whose fields come from the JSON body, or from the query string, and from the
    variables of the path. A field that was not sent reads as its default
    (:class:`mlcore.wire.message.Message`)."""

    pydantic = True
    body: ClassVar[Fields | None] = None
    """Fields of the JSON body."""
    query: ClassVar[Fields] = {}
    path: ClassVar[Fields] = {}
    """Readers of those variables of the path that can be invalid."""
    forbid: ClassVar[bool] = False
    """Whether unknown fields of the body are refused."""
    before: ClassVar[Callable[[dict[str, Any]], Any] | None] = None
    """Transforms the body before its fields are read; raises ValueError."""
    listed: ClassVar[bool] = False
    """Whether errors are returned as FastAPI's list with status 422, not as a message."""

    @classmethod
    def of_body(cls, content: str, is_json: bool, parameters: Mapping[str, str]) -> Self:
        """Parses the JSON body and path variables of a request; returns them as this class.

        Args:
            content: the body, "" for none.
            is_json: whether its Content-Type is JSON.
            parameters: the variables of the path.

        Raises:
            InvalidParameterValue, or Detailed if :data:`listed`: the request is invalid.
        """
        misfits = Misfits(listed=cls.listed)
        variables = cls._variables(parameters, misfits)
        if cls.body is None:
            misfits.check()
            return cls(**variables)
        if not content:
            misfits.note((), "Field required", "missing", None)
            misfits.check()
        data: Any = _parsed(content, listed=cls.listed) if is_json else None
        if isinstance(data, dict) and cls.before is not None:
            try:
                data = cls.before(data)
            except ValueError as error:
                misfits.note((), f"Value error, {error}", "value_error", data)
                misfits.check()
        made = object_of(cls.body, forbid=cls.forbid)(data, (), misfits)
        misfits.check()
        return cls(**{**made, **variables})

    @classmethod
    def of_query(cls, arguments: Mapping[str, list[str]], parameters: Mapping[str, str]) -> Self:
        """Returns the message of a request with a query string. If a parameter is repeated, its
        last value is used, unless the field is a list. Raises InvalidParameterValue."""
        misfits = Misfits()
        variables = cls._variables(parameters, misfits)
        made = {
            name: field.read(arguments[name], ("query", name), misfits)
            for name, field in cls.query.items()
            if name in arguments
        }
        misfits.check()
        return cls(**{**made, **variables})

    @classmethod
    def _variables(cls, parameters: Mapping[str, str], misfits: Misfits) -> dict[str, Any]:
        """Returns the variables of the path, converted by their readers."""
        if not cls.path:
            return dict(parameters)
        return {
            name: cls.path[name].read(text, ("path", name), misfits) if name in cls.path else text
            for name, text in parameters.items()
        }


def word(value: Any, _place: JsonPath, _misfits: Misfits) -> str:
    """Reads a parameter of the URL's query that is a text: the last value, if it is repeated."""
    return str(value[-1])


def words(value: Any, _place: JsonPath, _misfits: Misfits) -> list[str]:
    """Reads a query parameter that is a list of texts: all its values."""
    return list(value)


def whole_number(value: Any, path: JsonPath, misfits: Misfits) -> int:
    """Reads a parameter of the URL's query that is an integer, such as ``5`` or ``5.0``."""
    return number_in_path(str(value[-1]), path, misfits)


def number_in_path(value: Any, path: JsonPath, misfits: Misfits) -> int:
    """Reads a variable of the URL's path that is an integer, such as ``5`` or ``5.0``."""
    number = _integer_in(value)
    if number is None:
        misfits.note(path, _NOT_AN_INTEGER, "int_parsing", value.strip())
        return 0
    return number


def _integer_in(text: str) -> int | None:
    digits, dot, zeros = text.strip().partition(".")
    try:
        if not dot or (zeros and not zeros.strip("0")):
            return int(digits)
    except ValueError:
        pass
    return None


def _parsed(content: str, *, listed: bool) -> Any:
    misfits = Misfits(listed=listed)
    data: Any = None
    try:
        data = load_json(content)
        json.dumps(data, allow_nan=False)
        check_depth(data, content)
    except json.JSONDecodeError as error:
        misfits.note((error.pos,), "JSON decode error", "json_invalid", {}, {"error": error.msg})
    except (NestedTooDeeply, RecursionError):
        misfits.note((), "The request body is nested too deeply.", "recursion_loop", None)
    except ValueError:
        misfits.note((), "Numbers must be finite.", "finite_number", None)
    misfits.check()
    return data
