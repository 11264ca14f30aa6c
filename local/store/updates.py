"""Applies DynamoDB's update expressions to items, in the local server's SQLite store."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from local.store.attribute_values import Raw, decimal, exact_sum, name_size, normal_decimal, size_of
from local.store.condition_validation import Given
from local.store.conditions import Evaluate, evaluation, nested_operands, placeholders
from local.store.errors import invalid, invalid_parameter
from local.store.parser import Action, Operand, Path, parse_update
from local.store.placeholders import Placeholders

_BAD_PATH: Final = "The document path provided in the update expression is invalid for update"
_BAD_TYPE: Final = "An operand in the update expression has an incorrect data type"
_MISSING: Final = "The provided expression refers to an attribute that does not exist in the item"
_NAMES_OF_TYPES: Final = {
    "S": "STRING",
    "N": "NUMBER",
    "B": "BINARY",
    "BOOL": "BOOLEAN",
    "NULL": "NULL",
    "M": "MAP",
    "L": "LIST",
    "SS": "STRING_SET",
    "NS": "NUMBER_SET",
    "BS": "BINARY_SET",
}
_SETS: Final = ("SS", "NS", "BS")


class _Change(NamedTuple):
    verb: str
    path: Path
    value: Evaluate | None


class _CompiledUpdate(NamedTuple):
    changes: tuple[_Change, ...]
    names: frozenset[str]
    values: frozenset[str]


@functools.lru_cache(2048)
def _compiled(text: str) -> _CompiledUpdate:
    actions = parse_update(text)
    operands = [
        operand for action in actions if action.value for operand in nested_operands(action.value)
    ]
    paths = [action.path for action in actions]
    paths += [operand.path for operand in operands if operand.kind == "path"]
    return _CompiledUpdate(
        tuple(_Change(action.verb, action.path, _value(action)) for action in actions),
        placeholders(iter(paths)),
        frozenset(str(operand.path[0]) for operand in operands if operand.kind == "value"),
    )


class BoundUpdate:
    """A compiled UpdateExpression of DynamoDB, together with the values of its placeholders."""

    __slots__ = ("_changes", "_given", "paths")

    def __init__(self, text: str, given: Placeholders, keys: tuple[str, str]) -> None:
        """Compiles an update expression.

        Args:
            keys: the names of the primary key's attributes, which no update may change.

        Raises:
            ClientError: the text or a placeholder is invalid, a key would be changed, or two paths
                overlap.
        """
        compiled = _compiled(text)
        given.use("UpdateExpression", compiled.names, compiled.values)
        names = given.names
        self._given = given
        self.paths: list[Path] = []
        """The changed paths, in the order of the text, without placeholders."""
        self._changes: list[tuple[_Change, Path]] = []
        for change in compiled.changes:
            path: Path = tuple([names.get(part, part) for part in change.path])
            if path[0] in keys:
                raise invalid_parameter(
                    f"Cannot update attribute {path[0]}. This attribute is part of the key"
                )
            if change.verb in ("ADD", "DELETE") and change.value is not None:
                _check_operand(change.verb, change.value({}, names, given.values))
            self.paths.append(path)
            self._changes.append((change, path))
        if len(self.paths) > 1:
            _check_overlaps(self.paths)

    def applied(self, item: Raw) -> tuple[Raw, int]:
        """Returns a copy of ``item`` with the changes of the update expression, and by how many
        bytes the copy is larger.

        Raises:
            ClientError: a path or the type of a value does not fit the item.
        """
        names, values = self._given.names, self._given.values
        evaluated = [
            (change.verb, path, change.value and change.value(item, names, values))
            for change, path in self._changes
        ]
        draft = _Draft(item)
        removed = []
        for verb, path, value in evaluated:
            if verb == "REMOVE" or not draft.change(verb, path, value):
                removed.append(path)
        # Indexes refer to the list before the update, so the last members are removed first.
        if len(removed) > 1:
            removed.sort(key=lambda path: [(isinstance(part, int), part) for part in path])
        for path in reversed(removed):
            draft.remove(path)
        return draft.item, draft.growth


class _Draft:
    """A copy of an item that is being changed. Unchanged values are shared with the original."""

    def __init__(self, item: Raw) -> None:
        self.item = dict(item)
        self.growth = 0
        self._copied: dict[Path, Any] = {}

    def change(self, verb: str, path: Path, value: Raw | None) -> bool:
        """Applies one change to the value at a path. Returns False without a change if a DELETE
        leaves no member of a set; the caller then removes the attribute.
        """
        container = self._container(path)
        old = _member(container, path[-1])
        if verb == "ADD":
            value = _added(old, value or {})
        elif verb == "DELETE":
            value = _without(old, value or {})
            if value is None:
                return False
        elif value is None:
            raise invalid(_MISSING)
        last = path[-1]
        self.growth += size_of(value)
        if old is not None:
            self.growth -= size_of(old)
        elif isinstance(last, int):
            self.growth += 1
        else:
            self.growth += name_size(last) + (len(path) > 1)
        if isinstance(last, int) and last >= len(container):
            container.append(value)
        else:
            container[last] = value
        return True

    def remove(self, path: Path) -> None:
        container = self._container(path)
        self._drop(container, path, _member(container, path[-1]))

    def _drop(self, container: Any, path: Path, old: Raw | None) -> None:
        if old is None:
            return
        last = path[-1]
        self.growth -= size_of(old)
        self.growth -= 1 if isinstance(last, int) else name_size(last) + (len(path) > 1)
        del container[last]

    def _container(self, path: Path) -> Any:
        """Returns a copy of the map or list that directly contains the value at a path. The copy is
        part of the draft.
        """
        container: Any = self.item
        for depth in range(1, len(path)):
            start = path[:depth]
            copied = self._copied.get(start)
            if copied is None:
                value = _member(container, path[depth - 1])
                kind = "L" if isinstance(path[depth], int) else "M"
                if value is None or kind not in value:
                    raise invalid(_BAD_PATH)
                copied = value[kind].copy()
                container[path[depth - 1]] = {kind: copied}
                self._copied[start] = copied
            container = copied
        if isinstance(path[-1], int) != isinstance(container, list):
            raise invalid(_BAD_PATH)
        return container


def _member(container: Any, part: str | int) -> Raw | None:
    if isinstance(part, int):
        if not isinstance(container, list):
            raise invalid(_BAD_PATH)
        return container[part] if part < len(container) else None
    member: Raw | None = container.get(part) if isinstance(container, dict) else None
    return member


def _value(action: Action) -> Evaluate | None:
    return None if action.value is None else _evaluation(action.value)


def _evaluation(operand: Operand) -> Evaluate:
    if operand.kind in ("path", "value"):
        return evaluation(operand)
    left, right = map(_evaluation, operand.arguments)
    if operand.kind == "if_not_exists":
        if operand.arguments[0].kind != "path":
            raise invalid(
                "Invalid UpdateExpression: Operator or function requires a document path; "
                "operator or function: if_not_exists"
            )

        def existing(item: Raw, names: Given, values: Given) -> Any:
            value = left(item, names, values)
            return right(item, names, values) if value is None else value

        return existing
    combine = _COMBINATIONS[operand.kind]
    return lambda item, names, values: combine(
        left(item, names, values), right(item, names, values)
    )


def _sum(sign: int, left: Raw | None, right: Raw | None) -> Raw:
    if left is None or right is None:
        raise invalid(_MISSING)
    if "N" not in left or "N" not in right:
        raise invalid(_BAD_TYPE)
    return {"N": _total(left["N"], right["N"], sign)}


def _total(left: str, right: str, sign: int = 1) -> str:
    return normal_decimal(exact_sum(decimal(left), decimal(right), sign))


def _appended(left: Raw | None, right: Raw | None) -> Raw:
    if left is None or right is None:
        raise invalid(_MISSING)
    if "L" not in left or "L" not in right:
        raise invalid(_BAD_TYPE)
    return {"L": left["L"] + right["L"]}


_COMBINATIONS: Final[dict[str, Callable[[Raw | None, Raw | None], Raw]]] = {
    "+": functools.partial(_sum, 1),
    "-": functools.partial(_sum, -1),
    "list_append": _appended,
}


def _added(old: Raw | None, value: Raw) -> Raw:
    if old is None:
        return value
    ((kind, content),) = value.items()
    if kind not in old:
        raise invalid(_BAD_TYPE)
    if kind == "N":
        return {"N": _total(old["N"], content)}
    return {kind: sorted({*old[kind], *content})}


def _without(old: Raw | None, value: Raw) -> Raw | None:
    if old is None:
        return None
    ((kind, content),) = value.items()
    if kind not in old:
        raise invalid(_BAD_TYPE)
    members = [member for member in old[kind] if member not in content]
    return {kind: members} if members else None


def _check_operand(verb: str, value: Raw) -> None:
    kind = next(iter(value))
    if kind not in _SETS and not (verb == "ADD" and kind == "N"):
        raise invalid(
            "Invalid UpdateExpression: Incorrect operand type for operator or function; operator: "
            f"{verb}, operand type: {_NAMES_OF_TYPES[kind]}, typeSet: ALLOWED_FOR_{verb}_OPERAND"
        )


def _check_overlaps(paths: list[Path]) -> None:
    """Raises ClientError if a path begins with another one, or if two paths treat the same value as
    a map and as a list.
    """
    known: dict[Path, Path] = {}
    for path in paths:
        if path in known:
            raise _clash("overlap", known[path], path)
        known[path] = path
    inner: dict[Path, Path] = {}
    """For each proper beginning of a path, one path that begins with it."""
    for path in paths:
        for depth in range(1, len(path)):
            start = path[:depth]
            if start in known:
                raise _clash("overlap", known[start], path)
            other = inner.setdefault(start, path)
            if isinstance(other[depth], int) != isinstance(path[depth], int):
                raise _clash("conflict", other, path)


def _clash(kind: str, first: Path, second: Path) -> Exception:
    return invalid(
        f"Invalid UpdateExpression: Two document paths {kind} with each other; must remove or "
        f"rewrite one of these paths; path one: {_shown(first)}, path two: {_shown(second)}"
    )


def _shown(path: Path) -> str:
    return f"[{', '.join(f'[{part}]' if isinstance(part, int) else part for part in path)}]"
