"""Which functions, classes and values of the project a piece of it may come to use.

Names are followed as Python resolves them: through imports, also those inside functions. A value
that is passed on counts as used where it is named. Of a class that is reached, the methods count
whose name is written as an attribute anywhere in what is reached. So nothing is missed, but what is
looked up by a text; annotations and ``isinstance`` use nothing.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.arch import project

ROOTS = (project.LAYER.parent, project.FUNCTIONS)


class Name(NamedTuple):
    """A top-level name of a module, or ``Class.method``; "" is the module as a value."""

    module: str
    name: str


class Use(NamedTuple):
    """A name as it is used: what is written after it, and the call that this is part of."""

    target: Name
    attribute: str
    call: ast.Call | None


class Reached(NamedTuple):
    """Everything that is used, by whom."""

    uses: tuple[tuple[Name, Use], ...]
    texts: frozenset[tuple[str, str]]
    """(module, text) of each string literal."""


class Piece:
    """A top-level statement or a method: what it uses, mentions and says."""

    def __init__(self, module: Module, node: ast.AST) -> None:
        self.uses: list[Use] = []
        self.attributes: set[str] = set()
        self.texts: set[str] = set()
        self._module = module
        self._imports: dict[str, Name] = {}
        self._locals: set[str] = set()
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                self._imports.update(imported(inner))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            self._locals = local_names(node) - self._imports.keys()
        self._visit(node)

    def _visit(self, node: ast.AST, attribute: str = "", call: ast.Call | None = None) -> None:
        if isinstance(node, ast.Attribute):
            if (target := self._named(node)) is not None:
                self.uses.append(Use(target, attribute, call))
            else:
                self.attributes.add(node.attr)
                self._visit(node.value, node.attr, call)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and (target := self._named(node)) is not None:
                self.uses.append(Use(target, attribute, call))
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                self.texts.add(node.value)
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                self._visit(node.args[0])
                return
            # Of ``store().get(…)`` the use of ``store`` is told of ``get``.
            self._visit(node.func, attribute and f"().{attribute}", call if attribute else node)
            for part in (*node.args, *node.keywords):
                self._visit(part)
        elif not (isinstance(node, ast.Assign) and _keeps_module(node, self._named)):
            for part in _evaluated(node):
                self._visit(part)

    def _named(self, node: ast.expr) -> Name | None:
        """What a name, or an attribute of a module, stands for in the project."""
        if isinstance(node, ast.Name):
            if node.id in self._locals:
                return None
            target = self._imports.get(node.id) or self._module.names.get(node.id)
            return None if target is None else resolved(target)
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id == "self":
                return self._module.held(node.attr)
            owner = self._named(node.value)
            if owner is not None and owner.name == "":
                return resolved(Name(owner.module, node.attr))
        return None


class Module:
    """What a module's top level binds."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.names: dict[str, Name] = {}
        self.statements: dict[str, ast.AST] = {}
        self.classes: dict[str, list[str]] = {}
        self._pieces: dict[str, Piece] = {}
        self._held: dict[str, list[Name]] = {}
        for node in ast.parse(path.read_text()).body:
            self._bind(node)

    def piece(self, name: str) -> Piece:
        if name not in self._pieces:
            self._pieces[name] = Piece(self, self.statements[name])
        return self._pieces[name]

    def held(self, attribute: str) -> Name | None:
        """The module that objects keep in an attribute."""
        for name in self._held.get(attribute, ()):
            module = resolved(name)
            if module is not None and module.name == "":
                return module
        return None

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.names.update(imported(node))
        elif isinstance(node, ast.ClassDef):
            self._own(node.name, node)
            functions = [
                statement for statement in node.body if isinstance(statement, ast.FunctionDef)
            ]
            self.classes[node.name] = [function.name for function in functions]
            for function in functions:
                self.statements[f"{node.name}.{function.name}"] = function
                self._keep(function)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._own(node.name, node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for inner in ast.walk(target):
                    if isinstance(inner, ast.Name):
                        self._own(inner.id, node)
        elif isinstance(node, ast.If | ast.Try):
            for inner in ast.iter_child_nodes(node):
                self._bind(inner)

    def _keep(self, method: ast.FunctionDef) -> None:
        inside = list(ast.walk(method))
        names = dict(self.names)
        for node in inside:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names.update(imported(node))
        for node in inside:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
                target = node.targets[0]
                if isinstance(target, ast.Attribute) and node.value.id in names:
                    self._held.setdefault(target.attr, []).append(names[node.value.id])

    def _own(self, name: str, node: ast.AST) -> None:
        self.names[name] = Name(self.name, name)
        self.statements[name] = node


def imported(node: ast.Import | ast.ImportFrom) -> dict[str, Name]:
    if isinstance(node, ast.Import):
        return {
            name.asname or name.name.split(".")[0]: Name(
                name.name if name.asname else name.name.split(".")[0], ""
            )
            for name in node.names
        }
    return {name.asname or name.name: Name(node.module or "", name.name) for name in node.names}


def local_names(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """Parameters and what is assigned, in inner functions as well."""
    results = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.arg):
            results.add(inner.arg)
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            results.add(inner.id)
        elif isinstance(inner, ast.FunctionDef) and inner is not node:
            results.add(inner.name)
    return results


def _keeps_module(node: ast.Assign, named: Callable[[ast.expr], Name | None]) -> bool:
    """Whether a statement is ``self.attribute = module``: what is used of it is told there."""
    value = named(node.value)
    return value is not None and value.name == "" and isinstance(node.targets[0], ast.Attribute)


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a statement that are run with it: no annotation, no class pattern, and of a
    class not its methods."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns") or (
            isinstance(node, ast.MatchClass) and field == "cls"
        ):
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.ClassDef) and isinstance(part, ast.FunctionDef):
                yield from part.decorator_list
            elif isinstance(part, ast.AST):
                yield part


@functools.cache
def modules() -> dict[str, Module]:
    results = {}
    for root in ROOTS:
        for path in root.rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            results[name] = Module(name, path)
    return results


@functools.cache
def resolved(name: Name) -> Name | None:
    """Where a name is at home; None outside of the project."""
    if name.name == "":
        return name if name.module in modules() else None
    inner = f"{name.module}.{name.name}"
    if name.module not in modules():
        return None
    target = modules()[name.module].names.get(name.name)
    if target is None:
        return Name(inner, "") if inner in modules() else None
    return name if target == name else resolved(target)


def reached(roots: Iterable[Name], *, closed: Iterable[Name | str] = ()) -> Reached:
    """What the roots come to use.

    Args:
        closed: modules and names that are used, but not entered.
    """
    shut = set(closed)
    entered: set[Name] = set()
    attributes: set[str] = set()
    classes: list[Name] = []
    uses: list[tuple[Name, Use]] = []
    texts: set[tuple[str, str]] = set()
    waiting = list(roots)
    while waiting:
        while waiting:
            name = waiting.pop()
            if name in entered or name in shut or name.module in shut:
                continue
            entered.add(name)
            module = modules()[name.module]
            if name.name == "":
                waiting += [Name(name.module, own) for own in module.statements if "." not in own]
                continue
            piece = module.piece(name.name)
            attributes |= piece.attributes
            texts |= {(name.module, text) for text in piece.texts}
            uses += [(name, use) for use in piece.uses]
            waiting += [use.target for use in piece.uses]
            if name.name in module.classes:
                classes.append(name)
        waiting = [
            method
            for owner in classes
            for own in modules()[owner.module].classes[owner.name]
            if own.startswith("__") or own in attributes
            if (method := Name(owner.module, f"{owner.name}.{own}")) not in entered
        ]
    return Reached(tuple(uses), frozenset(texts))
