"""Requests of those routes of MLflow's that are no protobuf RPCs but FastAPI's: what pydantic makes
of a JSON body and of a query string, with its messages.

A reader takes a value and answers what is kept of it. What does not fit is noted with its place;
all that does not fit is told at once, in a sentence or as FastAPI's list.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, NamedTuple, Self

from mlcore import errors
from mlcore.wire.message import Message

Place = tuple[str | int, ...]
Read = Callable[[Any, Place, "Misfits"], Any]

_OBJECT: Final = "Input should be a valid dictionary or object to extract fields from"
_MOST_LISTED: Final = 1000
_TRUE: Final = frozenset(("true", "t", "yes", "y", "on", "1"))
_FALSE: Final = frozenset(("false", "f", "no", "n", "off", "0"))


class Misfits:
    """What of a request does not fit, in pydantic's order and words.

    Args:
        listed: it is a body, and is told as FastAPI does it by itself, with kinds and values.
    """

    def __init__(self, *, listed: bool = False) -> None:
        self._listed = listed
        self.texts: list[str] = []
        self._details: list[dict[str, Any]] = []

    def note(
        self, place: Place, text: str, kind: str, value: Any, told: Mapping[str, Any] | None = None
    ) -> None:
        """
        Args:
            kind: pydantic's name of what is wrong.
            value: what does not fit.
            told: the parts of the text that pydantic gives by themselves.
        """
        if len(self._details) == _MOST_LISTED:
            return
        self.texts.append(": ".join((*((".".join(map(str, place)),) if place else ()), text)))
        if self._listed:
            detail = {"type": kind, "loc": ["body", *place], "msg": text, "input": value}
            self._details.append({**detail, "ctx": told} if told else detail)

    def check(self) -> None:
        """Raises InvalidParameterValue: something did not fit."""
        if not self.texts:
            return
        if self._listed:
            raise errors.Detailed(422, _of_bounded_size(self._details))
        raise errors.InvalidParameterValue(f"Invalid request: {'; '.join(self.texts)}")


def _of_bounded_size(details: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many as an answer has room for, and at least one."""
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


class Field(NamedTuple):
    """A field of a JSON object. ``key`` is its name in the answer, where that is another."""

    read: Read
    required: bool = False
    key: str = ""


Fields = Mapping[str, Field]


def anything(value: Any, _place: Place, _misfits: Misfits) -> Any:
    return value


def text(value: Any, place: Place, misfits: Misfits) -> Any:
    if not isinstance(value, str):
        misfits.note(place, "Input should be a valid string", "string_type", value)
    elif not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        said = "Input should be a valid string, unable to parse raw data as a unicode string"
        misfits.note(place, said, "string_unicode", value)
    return value


def json_object(value: Any, place: Place, misfits: Misfits) -> Any:
    """An object with any fields."""
    if not isinstance(value, dict):
        misfits.note(place, "Input should be a valid dictionary", "dict_type", value)
    return value


def boolean(value: Any, place: Place, misfits: Misfits) -> Any:
    """True or false, also as the words and numbers that pydantic takes for them."""
    word = value.lower() if isinstance(value, str) else value
    if isinstance(word, bool):
        return word
    if isinstance(word, str | int | float):
        if word in _TRUE or word == 1:
            return True
        if word in _FALSE or word == 0:
            return False
        said = "Input should be a valid boolean, unable to interpret input"
        misfits.note(place, said, "bool_parsing", value)
    else:
        misfits.note(place, "Input should be a valid boolean", "bool_type", value)
    return value


def optional(read: Read) -> Read:
    """Null, or what is read."""

    def reader(value: Any, place: Place, misfits: Misfits) -> Any:
        return None if value is None else read(value, place, misfits)

    return reader


def list_of(read: Read, most: int | None = None) -> Read:
    def reader(value: Any, place: Place, misfits: Misfits) -> Any:
        if not isinstance(value, list):
            misfits.note(place, "Input should be a valid list", "list_type", value)
            return value
        if most is not None and len(value) > most:
            said = f"List should have at most {most} items after validation, not {len(value)}"
            misfits.note(place, said, "too_long", value)
            return value
        return [read(item, (*place, index), misfits) for index, item in enumerate(value)]

    return reader


def map_of(read: Read) -> Read:
    """An object whose values are all read alike."""

    def reader(value: Any, place: Place, misfits: Misfits) -> Any:
        if not isinstance(value, dict):
            misfits.note(place, "Input should be a valid dictionary", "dict_type", value)
            return value
        return {key: read(item, (*place, key), misfits) for key, item in value.items()}

    return reader


def object_of(fields: Fields, *, extra: bool = False, misfit: str = _OBJECT) -> Read:
    """An object with known fields, of which those that were sent are kept.

    Args:
        extra: other fields are kept as they are, behind the known ones; else they are dropped.
        misfit: what is said of what is no object.
    """

    def reader(value: Any, place: Place, misfits: Misfits) -> Any:
        if not isinstance(value, dict):
            misfits.note(place, misfit, "model_attributes_type", value)
            return value
        kept: dict[str, Any] = {}
        read_keys = set()
        for name, field in fields.items():
            alias = field.key or name
            key = alias if alias in value else name
            if key in value:
                read_keys.add(key)
                kept[alias] = field.read(value[key], (*place, key), misfits)
            elif field.required:
                misfits.note((*place, alias), "Field required", "missing", value)
        if extra:
            kept.update({key: item for key, item in value.items() if key not in read_keys})
        return kept

    return reader


class JsonBody(Message):
    """A request whose fields are those of its JSON body, or of its query string, and the variables
    of its path. A field that was not sent is None."""

    pydantic = True
    body: ClassVar[Fields | None] = None
    """Of a request that has a body."""
    query: ClassVar[Fields] = {}
    before: ClassVar[Callable[[dict[str, Any]], Any] | None] = None
    """What is made of the body before its fields are read; raises ValueError."""
    listed: ClassVar[bool] = False
    """Whether what does not fit is told as FastAPI's list, with 422, and not in a sentence."""

    @classmethod
    def of_body(cls, content: str, is_json: bool, parameters: Mapping[str, str]) -> Self:
        """The request in a body.

        Args:
            content: the body, "" for none.
            is_json: whether its Content-Type says so.

        Raises:
            InvalidParameterValue: it does not fit.
        """
        if cls.body is None:
            return cls(**parameters)
        misfits = Misfits(listed=cls.listed)
        if not content:
            misfits.note((), "Field required", "missing", None)
        misfits.check()
        data: Any = _parsed(content, misfits) if is_json else None
        if isinstance(data, dict) and cls.before is not None:
            try:
                data = cls.before(data)
            except ValueError as error:
                misfits.note((), f"Value error, {error}", "value_error", data)
        misfits.check()
        made = object_of(cls.body)(data, (), misfits)
        misfits.check()
        return cls(**{**made, **parameters})

    @classmethod
    def of_query(cls, arguments: Mapping[str, list[str]], parameters: Mapping[str, str]) -> Self:
        """The request in the arguments of a query string, each with all its values, of which the
        last counts unless the field is a list. Raises InvalidParameterValue: they do not fit."""
        misfits = Misfits()
        made = {
            name: field.read(arguments[name], ("query", name), misfits)
            for name, field in cls.query.items()
            if name in arguments
        }
        misfits.check()
        return cls(**{**made, **parameters})


def word(value: Any, _place: Place, _misfits: Misfits) -> str:
    """An argument of a query string: its last value."""
    return str(value[-1])


def words(value: Any, _place: Place, _misfits: Misfits) -> list[str]:
    """All values of an argument of a query string."""
    return list(value)


def whole_number(value: Any, place: Place, misfits: Misfits) -> int:
    """An argument of a query string that is a whole number, such as ``5`` or ``5.0``."""
    shown = str(value[-1]).strip()
    digits, dot, zeros = shown.partition(".")
    try:
        if not dot or (zeros and not zeros.strip("0")):
            return int(digits)
    except ValueError:
        pass
    said = "Input should be a valid integer, unable to parse string as an integer"
    misfits.note(place, said, "int_parsing", shown)
    return 0


def _parsed(content: str, misfits: Misfits) -> Any:
    data: Any = None
    try:
        data = json.loads(content)
        json.dumps(data, allow_nan=False)
    except json.JSONDecodeError as error:
        misfits.note((error.pos,), "JSON decode error", "json_invalid", {}, {"error": error.msg})
    except ValueError:
        misfits.note((), "Numbers must be finite.", "finite_number", None)
    except RecursionError:
        misfits.note((), "The request body is nested too deeply.", "recursion_loop", None)
    misfits.check()
    return data
