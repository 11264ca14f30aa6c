"""Whoever loads what belongs to a workspace says whose it must be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.arch import project

REPOS = project.LAYER / "repos"

OWNED = {
    "Dataset",
    "EvaluationDataset",
    "EvaluationRecord",
    "Experiment",
    "Issue",
    "LabelSchema",
    "LoggedModel",
    "ModelVersion",
    "QueueItem",
    "RegisteredModel",
    "ReviewQueue",
    "Run",
    "ScorerVersion",
    "Summary",
    "Trace",
    "Webhook",
}
"""Entities that are in a workspace. How they are stored has names that begin with STORED."""

STORED = "Stored"

READ_BEFORE = {"Document", "Owner", "Raw"}
"""What else a function is given only by who has loaded it."""


def _names(annotation: ast.expr | None) -> set[str]:
    if annotation is None:
        return set()
    inside = list(ast.walk(annotation))
    return {node.id for node in inside if isinstance(node, ast.Name)} | {
        node.attr for node in inside if isinstance(node, ast.Attribute)
    }


def _owned(names: set[str]) -> bool:
    return any(name in OWNED or name.startswith(STORED) for name in names)


def _loaders(path: Path) -> Iterator[ast.FunctionDef]:
    """Public functions that answer something owned and are given nothing that was read before."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            known = set().union(*(_names(argument.annotation) for argument in given))
            if _owned(_names(node.returns)) and not (_owned(known) or known & READ_BEFORE):
                yield node


def _names_workspace(function: ast.FunctionDef) -> bool:
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return any(argument.arg == "workspace" for argument in given)


def test_no_loader_comes_without_the_workspace() -> None:
    loaders = {
        f"{path.relative_to(REPOS)}: {function.name}": _names_workspace(function)
        for path in sorted(REPOS.rglob("*.py"))
        for function in _loaders(path)
    }
    assert len(loaders) > 20
    assert [name for name, names_it in loaders.items() if not names_it] == []
