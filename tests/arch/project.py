"""The project as the architecture tests see it: its files, its template, its RPC tables."""

from __future__ import annotations

import ast
import functools
import importlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from local import cloudformation

ROOT = Path(__file__).resolve().parents[2]
LAYER = ROOT / "layers/core/python/mlcore"
FUNCTIONS = ROOT / "functions"
TABLES = ROOT / "layers/tables/python"
DOMAINS = tuple(sorted(path.parent.name for path in FUNCTIONS.glob("*/app.py")))
SOURCE_FOLDERS = (
    *("layers", "functions", "local", "operate", "distribution", "tests", "bench", "examples"),
)


CONSUMERS = {
    ":table/mlflow-Table": "indexer",
    ":mlflow-WebhookQueue": "webhook_sender",
    ":mlflow-FileRemovalQueue": "file_remover",
    ":mlflow-JobQueue": "judge_runner",
}
"""Functions that no request reaches, by what the ARN of their source holds in events/."""


BY_NAME = {
    "land_changes": "lander",
    "publish_tables": "publisher",
    "run_code_scorer": "code_scorers",
}
"""Functions whose events in events/ do not say for whom they are: the second reader of the stream,
a schedule's, and one that another function invokes."""


def consumer(event: dict[str, Any]) -> str:
    """The function that takes an event with records."""
    [consumer_name] = {
        function
        for record in event["Records"]
        for part, function in CONSUMERS.items()
        if part in record["eventSourceARN"]
    }
    return consumer_name


@functools.cache
def template() -> dict[str, Any]:
    """template.yaml, with CloudFormation's short forms in their long form."""
    return cloudformation.load(ROOT / "template.yaml")


def resources(kind: str) -> dict[str, dict[str, Any]]:
    """Logical id → properties of the template's resources of a type."""
    return {
        name: resource["Properties"]
        for name, resource in template()["Resources"].items()
        if resource["Type"] == kind
    }


def handlers() -> dict[str, str]:
    """Logical id of a function → the package of its handler."""
    return {
        name: properties["Handler"].split(".")[0]
        for name, properties in resources("AWS::Serverless::Function").items()
    }


def routes() -> dict[str, str]:
    """Route key → the package that answers it."""
    integrations = {
        name: handlers()[properties["IntegrationUri"]["Ref"].removesuffix(".Alias")]
        for name, properties in resources("AWS::ApiGatewayV2::Integration").items()
    }
    return {
        properties["RouteKey"]: integrations[
            properties["Target"]["Fn::Sub"].removeprefix("integrations/${").removesuffix("}")
        ]
        for properties in resources("AWS::ApiGatewayV2::Route").values()
    }


def rpcs() -> Iterator[tuple[str, str, str]]:
    """(package, method, path) of every RPC in the functions' tables, with each of its prefixes."""
    for domain in DOMAINS:
        for rpc in getattr(importlib.import_module(f"{domain}.app"), "RPCS", ()):
            for prefix in ("/ajax-api",) if rpc.ajax_only else ("/api", "/ajax-api"):
                yield domain, rpc.method, prefix + rpc.path


@functools.cache
def tracked() -> tuple[Path, ...]:
    """Files that are, or are about to be, in the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    paths = (ROOT / name for name in listed.split("\0") if name)
    return tuple(path for path in paths if path.is_file())


def sources(*folders: str) -> list[Path]:
    """Python files of the repository below some folders."""
    return [
        path
        for path in tracked()
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders
    ]


class Documented(NamedTuple):
    """A function or class with a docstring."""

    line: int
    name: str
    parameters: frozenset[str]
    """Of a class: those of its ``__init__``, and its annotated fields."""
    docstring: str


class Contents(NamedTuple):
    """What the tests read of a Python file, which is parsed once for all of them."""

    literals: tuple[tuple[int, str], ...]
    documented: tuple[Documented, ...]
    classes: frozenset[str]
    """The names of the classes that it defines, and of what it imports from modules."""


@functools.cache
def contents(path: Path) -> Contents:
    tree = ast.parse(path.read_text())
    return Contents(tuple(_literals(tree)), tuple(_documented(tree)), frozenset(_class_names(tree)))


def literals(path: Path) -> tuple[tuple[int, str], ...]:
    """(line, text) of each string literal of a file; parts of f-strings count, docstrings not."""
    return contents(path).literals


def _literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    prose = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value


def _documented(tree: ast.Module) -> Iterator[Documented]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and (
            docstring := ast.get_docstring(node)
        ):
            yield Documented(node.lineno, node.name, frozenset(_parameters(node)), docstring)


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Iterator[str]:
    if isinstance(node, ast.ClassDef):
        for member in node.body:
            if isinstance(member, ast.FunctionDef) and member.name == "__init__":
                yield from _parameters(member)
            elif isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
                yield member.target.id
    else:
        yield from (
            argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)
        )


def _class_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
