"""Docstrings name parameters and exceptions that exist."""

from __future__ import annotations

import builtins
import itertools
import re
from collections.abc import Iterator

from tests.arch import project

FOLDERS = ("layers", "functions", "local", "operate")
ARGUMENTS = re.compile(r"\*{0,2}\w+(?:, \*{0,2}\w+)*:(?: |$)")
ERRORS = re.compile(r"[A-Za-z][\w.]*(?:, [A-Za-z][\w.]*)*: ")
RAISES = re.compile(r"\b[Rr]aises ([A-Z]\w*[a-z]\w*)\b(?!\.)")


def _entries(docstring: str, title: str, entry: re.Pattern[str]) -> Iterator[str]:
    """The names that the sections with a title, such as ``Args:``, describe.

    An entry is a line with the indentation of the section's first line, such as ``a: the first``
    or ``a, b: both``. Lines with more indentation continue it.
    """
    lines = docstring.splitlines()
    for number, line in enumerate(lines):
        if line.strip() != title:
            continue
        section = list(itertools.takewhile(str.strip, lines[number + 1 :]))
        depth = _depth(section[0]) if section else 0
        for each in section:
            if _depth(each) < depth:
                break
            if _depth(each) == depth and entry.match(each.strip()):
                yield from each.partition(":")[0].replace(" ", "").replace("*", "").split(",")


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def test_docstrings_describe_parameters_that_exist() -> None:
    unknown = []
    described = 0
    for path in project.sources(*FOLDERS):
        for each in project.contents(path).documented:
            names = set(_entries(each.docstring, "Args:", ARGUMENTS))
            described += len(names)
            unknown += [
                f"{path.relative_to(project.ROOT)}:{each.line} {each.name} has no {name}"
                for name in sorted(names - each.parameters)
            ]
    assert described
    assert unknown == []


def test_docstrings_name_exceptions_that_exist() -> None:
    paths = project.sources(*FOLDERS)
    existing = set(dir(builtins)).union(*(project.contents(path).classes for path in paths))
    unknown = []
    described = 0
    for path in paths:
        for each in project.contents(path).documented:
            names = {*_entries(each.docstring, "Raises:", ERRORS), *RAISES.findall(each.docstring)}
            own = {name for name in names if "." not in name}
            described += len(own)
            unknown += [
                f"{path.relative_to(project.ROOT)}:{each.line} {each.name} raises {name}"
                for name in sorted(own - existing)
            ]
    assert described
    assert unknown == []
