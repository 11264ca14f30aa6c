"""The names of items' attributes are spelled in models alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.arch import project

MODELS = project.LAYER / "models"

TYPES = {"B", "BOOL", "L", "M", "N", "NULL", "S", "SS"}
"""What DynamoDB's JSON says of a value."""

EXPRESSIONS = {
    *("add", "remove", "require_absent", "require_absent_or_equal", "require_absent_or_less"),
    *("require_equal", "require_exists", "require_less", "set", "set_once"),
}

SPELLING = {
    "layers/core/python/mlcore/db/capacity.py",
    "layers/core/python/mlcore/db/table.py",
}
"""Who reads what is no item of a model: keys in answers of DynamoDB. The
list only gets shorter."""


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _looked_up(node: ast.AST) -> tuple[str | None, ast.AST]:
    """The text in ``of["text"]`` or ``of.get("text")``, and what it is looked up in."""
    if isinstance(node, ast.Subscript):
        return _text(node.slice), node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        return _text(node.args[0]) if node.func.attr == "get" else None, node.func.value
    return None, node


def _spelled(path: Path) -> Iterator[int]:
    """Lines that read ``item["name"]["S"]``, also by ``get``, or name an attribute of an update by
    a text."""
    for node in ast.walk(ast.parse(path.read_text())):
        kind, of = _looked_up(node)
        if kind in TYPES and _looked_up(of)[0] is not None:
            yield node.lineno  # type: ignore[attr-defined]  # an expression
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            named = node.func.attr in EXPRESSIONS and _text(node.args[0]) is not None
            if named and "update" in ast.unparse(node.func.value):
                yield node.lineno


def test_only_models_spell_attributes() -> None:
    spelling: dict[str, list[int]] = {}
    for path in project.sources("layers", "functions", "operate", "local"):
        if not path.is_relative_to(MODELS) and (lines := list(_spelled(path))):
            spelling[str(path.relative_to(project.ROOT))] = lines
    others = {
        name: lines
        for name, lines in spelling.items()
        if not any(name.startswith(allowed) for allowed in SPELLING)
    }
    assert others == {}
    for allowed in SPELLING:
        assert any(name.startswith(allowed) for name in spelling), f"{allowed} spells none any more"
