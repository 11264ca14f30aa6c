"""Values that outlive a request are kept in one module."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

from tests.arch import project, references

REGISTRIES = {
    ("layers/core/python/mlcore/db/embedded_stores.py", "_makers"): "the stores of a program",
    ("layers/core/python/mlcore/http/audit.py", "_keepers"): "where a laptop keeps the audit",
    ("layers/core/python/mlcore/models/base.py", "MODELS"): "the models that were imported",
    ("layers/core/python/mlcore/models/base.py", "_VIEWS"): "a class for each model",
    ("layers/core/python/mlcore/models/base.py", "_WRITERS"): "a function for each model",
    (
        "layers/core/python/mlcore/scorer_cage/importable_modules.py",
        "_failures",
    ): "imports that failed in a scorer's process, which ends with its judgement",
    ("layers/core/python/mlcore/secrets.py", "_in_process"): "the local runner's key",
    (
        "layers/core/python/mlcore/system_tables/table_refresh.py",
        "_refresh",
    ): "the local runner's way",
    (
        "layers/tables/python/mltables/duckdb_connection.py",
        "_databases_before_fork",
    ): "an empty database, which forked processes copy",
}
"""Filled by the program itself, whatever it is asked."""

INTERNED = {
    "layers/core/python/mlcore/db/keys/pattern.py": "halves of keys, when keys are declared",
    "layers/core/python/mlcore/scorer_cage/remote_cage.py": "at most eight clients, by timeout",
}
"""Caches with parameters that the program itself gives, or with few entries."""

CACHE_MODULE = project.LAYER / "process_cache.py"

CHANGES = {
    *("add", "append", "appendleft", "clear", "discard", "extend", "insert", "move_to_end", "pop"),
    *("popitem", "remove", "setdefault", "update"),
}
CACHES = {"cache", "lru_cache"}


@functools.cache
def _sources() -> list[tuple[str, ast.Module]]:
    return [
        (str(path.relative_to(project.ROOT)), ast.parse(path.read_text()))
        for path in project.sources("layers", "functions")
        if path != CACHE_MODULE
    ]


def _bound(tree: ast.Module) -> set[str]:
    """The names that a module binds."""
    return {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }


def _changed(node: ast.AST) -> str | None:
    """The name whose content a statement or call changes."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        owner: ast.expr = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr not in CHANGES:
            return None
        owner = node.func.value
    elif isinstance(node, ast.AugAssign):
        owner = node.target
    else:
        return None
    return owner.id if isinstance(owner, ast.Name) else None


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _process_caches(tree: ast.Module) -> set[str]:
    """The names of the process caches of a module."""
    return {
        node.target.id
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and "ProcessCache" in ast.unparse(node.annotation)
    }


def test_no_module_keeps_what_calls_bring() -> None:
    kept = set()
    for path, tree in _sources():
        own = _bound(tree) - _process_caches(tree)
        for function in _functions(tree):
            inside = list(ast.walk(function))
            local = references.local_names(function)
            assert not [node for node in inside if isinstance(node, ast.Global)], (
                path,
                function.name,
            )
            for node in inside:
                name = _changed(node)
                if name in own and name not in local:
                    kept.add((path, name))
    assert kept == REGISTRIES.keys()


def test_only_what_is_made_once_is_cached() -> None:
    """A cache of a function without parameters holds one object, such as a client."""
    cached = []
    for path, tree in _sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute | ast.Name):
                name = node.attr if isinstance(node, ast.Attribute) else node.id
                if name in CACHES and isinstance(node.ctx, ast.Load):
                    cached.append((path, node.lineno))
    made_once = {
        (path, decorator.lineno)
        for path, tree in _sources()
        for function in _functions(tree)
        if not (function.args.args or function.args.kwonlyargs or function.args.posonlyargs)
        for decorator in function.decorator_list
    }
    others = {path for path, line in cached if (path, line) not in made_once}
    assert others == INTERNED.keys()
    assert len(cached) > len(others)
