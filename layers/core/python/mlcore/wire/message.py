"""Request messages: their fields and checks, decoded as MLflow's server decodes protobuf-JSON.

A message is a class with annotated fields in the order of MLflow's protobuf definition::

    class LogParam(Message):
        run_id: str
        key: str
        value: str
        checks = {"run_id": (required, string), "key": (required, string), "value": (string,)}

``str``, ``int`` (int64), :data:`Int32`, :data:`ArgumentInt`, ``float`` (double), ``bool``, an
:func:`enum`, another message, ``list[...]``, ``dict[str, ...]`` and ``Any`` (any JSON value,
unchanged) can be fields. A decoder is compiled for a class at its first use.

Decoding follows protobuf's JSON parser as MLflow's server uses it. Keys are read in the order of
the JSON object, in snake_case or camelCase; unknown keys are skipped, null means unset. Parsing
stops at the first value that does not fit its field. Then ``checks`` are applied to the raw values
under their snake_case names: checks of types only if parsing stopped, all others always. If parsing
stopped and no check fails, MLflow's server continues with the fields read so far or fails with 500.
Here such a value raises INVALID_PARAMETER_VALUE, because the caller would not notice the lost
fields.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, NamedTuple, Self, get_args, get_origin, get_type_hints

from mlcore.errors import InvalidParameterValue
from mlcore.wire import checks as checking
from mlcore.wire.checks import SEE_DOCS, Check
from mlcore.wire.scalars import Convert, Stop, scalar, string


class Message:
    """Base of request messages. An unset field reads as the default given in the class, or as
    protobuf's default: "", 0, 0.0, False, a new list or dict, None for an enum, a message or
    ``Any``."""

    checks: ClassVar[Mapping[str, tuple[Check, ...]]] = {}
    from_arguments: ClassVar[tuple[str, ...]] = ()
    """Fields that come from the query string whatever the method is, and never from the body."""
    conceals: ClassVar[tuple[str, ...]] = ()
    """Names of secret fields, whose values must not appear in error messages."""
    pydantic: ClassVar[bool] = False
    """Whether it is a :class:`mlcore.wire.json_body.JsonBody`, which few processes import."""

    def __init__(self, **fields: Any) -> None:
        _plan(type(self))
        self.__dict__.update(fields)

    def has(self, field: str) -> bool:
        """Whether the request set the field (for a list: sent it, even if empty)."""
        return field in self.__dict__

    @classmethod
    def decode(cls, data: Any, checks: Mapping[str, tuple[Check, ...]] | None = None) -> Self:
        """Returns a message from parsed JSON.

        Args:
            data: the parsed body; not necessarily an object.
            checks: instead of the class's own.

        Raises:
            InvalidParameterValue: a check failed, a value does not fit its field, one field has two
                spellings, or ``data`` is no object.
        """
        if not isinstance(data, dict):
            raise InvalidParameterValue(
                f"The request body must be a JSON object, got '{type(data).__name__}'." + SEE_DOCS
            )
        plan = _plan(cls)
        message = cls.__new__(cls)
        stop: Stop | None = None
        seen_alias: list[bool] = []
        try:
            _fill(message.__dict__, data, plan, seen_alias)
        except Stop as misfit:
            stop = misfit
        if stop or seen_alias:
            _reject_two_spellings(data, plan)
        checking.run(cls.checks if checks is None else checks, data, stop is not None)
        if stop:
            raise _misfit(stop, cls.conceals)
        return message

    @classmethod
    def readable(cls, data: Any) -> Self:
        """Returns a message with only the fields whose values are valid, without checks, to decide
        whether the caller of an invalid request has the permission that the request needs."""
        message, plan = cls.__new__(cls), _plan(cls)
        for key, value in data.items() if isinstance(data, dict) else ():
            with contextlib.suppress(Stop):
                _fill(message.__dict__, {key: value}, plan, [])
        return message

    @classmethod
    def from_query(cls, arguments: Mapping[str, list[str]]) -> Self:
        """Parses the arguments of a query string, each with all its values, into this request
        message. Names that are not in snake_case are ignored.

        Raises:
            InvalidParameterValue: as :meth:`decode`, or a boolean is neither "true" nor "false".
        """
        data: dict[str, Any] = {}
        for field in _plan(cls).fields:
            values = arguments.get(field.name)
            if values is None:
                continue
            if field.repeated:
                data[field.name] = values
            elif field.hint is bool:
                if values[0].lower() not in ("true", "false"):
                    raise InvalidParameterValue(
                        f"Invalid boolean value: {values[0]}, must be 'true' or 'false'."
                    )
                data[field.name] = values[0].lower() == "true"
            else:
                data[field.name] = values[0]
        return cls.decode(data)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({fields})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]


MISFIT: Final = "It does not fit the type of the parameter."

Store = Callable[[dict[str, Any], str, Any, list[bool]], None]
"""Puts a JSON value into the fields of a message; raises Stop."""


class MessageField(NamedTuple):
    """How a field of a request message is read from JSON: a scalar by ``convert``; a list, map or
    message by ``store``."""

    name: str
    json_name: str
    hint: Any
    """The annotation; for a list, that of its items."""
    message: type[Message] | None
    repeated: bool
    convert: Convert | None
    store: Store | None


def fields_of(cls: type[Message]) -> list[MessageField]:
    """Returns the fields of a message class in their declared order."""
    return _plan(cls).fields


class _Plan:
    __slots__ = ("by_json_name", "by_name", "fields")

    def __init__(self, fields: list[MessageField]) -> None:
        self.fields = fields
        self.by_name = {field.name: (field.name, field.convert, field.store) for field in fields}
        self.by_json_name = {
            field.json_name: (field.name, field.convert, field.store)
            for field in fields
            if field.json_name != field.name
        }


def _plan(cls: type[Message]) -> _Plan:
    plan: _Plan | None = cls.__dict__.get("_compiled")
    if plan is None:
        hints = get_type_hints(cls, include_extras=True)
        fields = [
            _field(cls, name, hint)
            for name, hint in hints.items()
            if get_origin(hint) is not ClassVar
        ]
        plan = _Plan(fields)
        cls._compiled = plan  # type: ignore[attr-defined]
    return plan


class _New:
    """Descriptor for the default of a list or dict field: returns a new object at each access, so
    that none is shared."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def __get__(self, instance: object, owner: type) -> Any:
        return self.make()


def _field(cls: type[Message], name: str, hint: Any) -> MessageField:
    json_name = re.sub("_+([a-zA-Z0-9])?", lambda match: (match[1] or "").upper(), name)
    origin, arguments = get_origin(hint), get_args(hint)
    convert: Convert | None = None
    store: Store | None = None
    message: type[Message] | None = None
    default: Any
    if origin is list:
        default = _New(list)
        message = _message_type(arguments[0])
        store = (
            _store_messages(message) if message else _store_scalars(scalar(arguments[0]).convert)
        )
    elif origin is dict:
        default = _New(dict)
        map_value = _message_type(arguments[1])
        store = (
            _store_map_of_messages(map_value)
            if map_value
            else _store_map(scalar(arguments[1]).convert)
        )
    else:
        message = _message_type(hint)
        if message:
            default, store = None, _store_message(message)
        else:
            kind = scalar(hint)
            default, convert = kind.default, kind.convert
    if name not in cls.__dict__:
        setattr(cls, name, default)
    item = arguments[0] if origin is list else hint
    return MessageField(name, json_name, item, message, origin is list, convert, store)


def _message_type(hint: Any) -> type[Message] | None:
    for candidate in (hint, *get_args(hint)):
        if isinstance(candidate, type) and issubclass(candidate, Message):
            return candidate
    return None


def _fill(fields: dict[str, Any], data: Any, plan: _Plan, seen_alias: list[bool]) -> None:
    """Reads a JSON object into the dict of a message's fields. Raises Stop at the first value that
    does not fit."""
    if data.__class__ is not dict:
        raise Stop
    by_name = plan.by_name
    key, value = "", None
    try:
        for key, value in data.items():
            known = by_name.get(key)
            if known is None:
                known = plan.by_json_name.get(key)
                if known is None:
                    continue
                seen_alias.append(True)
            name, convert, store = known
            if value is None:
                fields.pop(name, None)
            elif convert is not None:
                fields[name] = convert(value)
            else:
                store(fields, name, value, seen_alias)  # type: ignore[misc]
    except Stop as stop:
        stop.within(key, value)
        raise


def _misfit(stop: Stop, concealed: tuple[str, ...]) -> InvalidParameterValue:
    """Returns the error for a value at which parsing stopped although no check failed."""
    hidden = isinstance(stop.value, list | dict) or stop.path.split(".")[0] in concealed
    shown = "" if hidden else f" {json.dumps(stop.value)}"
    return InvalidParameterValue(
        f"Invalid value{shown} for parameter '{stop.path}' supplied: {MISFIT}{SEE_DOCS}"
    )


def _store_message(cls: type[Message]) -> Store:
    def store(fields: dict[str, Any], name: str, value: Any, seen_alias: list[bool]) -> None:
        message = fields[name] = cls.__new__(cls)
        _fill(message.__dict__, value, _plan(cls), seen_alias)

    return store


def _store_messages(cls: type[Message]) -> Store:
    def store(fields: dict[str, Any], name: str, value: Any, seen_alias: list[bool]) -> None:
        if value.__class__ is not list:
            raise Stop
        messages = fields[name] = []
        plan, new, fill, append = _plan(cls), cls.__new__, _fill, messages.append
        for item in value:
            message = new(cls)
            fill(message.__dict__, item, plan, seen_alias)
            append(message)

    return store


def _store_scalars(convert: Convert) -> Store:
    def store(fields: dict[str, Any], name: str, value: Any, _seen_alias: list[bool]) -> None:
        if value.__class__ is not list or None in value:
            raise Stop
        fields[name] = [convert(item) for item in value]

    return store


def _store_map(convert: Convert) -> Store:
    def store(fields: dict[str, Any], name: str, value: Any, _seen_alias: list[bool]) -> None:
        if value.__class__ is not dict:
            raise Stop
        fields[name] = {string(key): convert(item) for key, item in value.items()}

    return store


def _store_map_of_messages(cls: type[Message]) -> Store:
    def store(fields: dict[str, Any], name: str, value: Any, seen_alias: list[bool]) -> None:
        if value.__class__ is not dict:
            raise Stop
        values = fields[name] = {}
        for key, item in value.items():
            message = values[string(key)] = cls.__new__(cls)
            _fill(message.__dict__, item, _plan(cls), seen_alias)

    return store


def _reject_two_spellings(data: Any, plan: _Plan) -> None:
    """Refuses an object that has a field under both of its names (snake_case and camelCase)."""
    if not isinstance(data, dict):
        return
    for field in plan.fields:
        if field.name != field.json_name and field.name in data and field.json_name in data:
            raise InvalidParameterValue(
                f"Request specifies both '{field.name}' and '{field.json_name}'; "
                "provide only one of them."
            )
        if field.message is None:
            continue
        value = data.get(field.name, data.get(field.json_name))
        nested = _plan(field.message)
        for item in value if isinstance(value, list) else (value,):
            _reject_two_spellings(item, nested)
