"""What the documents name is there: files, folders, and other documents with their headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.arch import project

DOCUMENTS = sorted(
    path
    for path in (
        *project.ROOT.glob("*.md"),
        *(project.ROOT / "docs").glob("*.md"),
        *(project.ROOT / "docs/adr").glob("*.md"),
        *(project.ROOT / "docs/mechanisms").glob("*.md"),
    )
    # What was true when it was written.
    if path.name != "CHANGELOG.md"
)
_QUOTED = re.compile(r"`([^`\s]+)`")
_ANY = re.compile(r"[<‹][^>›]*[>›]")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FOLDERS = (
    "bench",
    "distribution",
    "docs",
    "events",
    "examples",
    "functions",
    "layers",
    "local",
    "operate",
    "tests",
)


def _paths(text: str) -> Iterator[str]:
    """Paths as the documents write them: from the root, from ``mlcore`` or one of its rooms, or the
    name of a module alone; perhaps without .py, with ``<…>`` for any name."""
    for quoted in _QUOTED.findall(text):
        path = _ANY.sub("*", quoted)
        first, slash, _ = path.partition("/")
        if not re.fullmatch(r"[\w./*-]+", path):
            continue
        if not slash:
            if path.endswith(".py"):
                yield path
        elif first == "mlcore":
            yield f"layers/core/python/{path}"
        elif first in _FOLDERS:
            yield path
        elif path.endswith(".py") and (project.LAYER / first).is_dir():
            yield f"layers/core/python/mlcore/{path}"


def _is_there(path: str) -> bool:
    if "/" not in path:
        return any(file.name == path for file in project.tracked())
    return any(
        match for form in (path.rstrip("/"), f"{path}.py") for match in project.ROOT.glob(form)
    )


def _anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_a_document_names_is_there(document: Path) -> None:
    text = document.read_text()
    assert [path for path in _paths(text) if not _is_there(path)] == []
    broken = []
    for link in _LINK.findall(text):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            broken.append(link)
    assert not broken


def _said() -> str:
    """All texts of the product, those that are written in pieces as one."""
    files = [
        path
        for folder in ("functions", "layers", "local", "operate")
        for path in (project.ROOT / folder).rglob("*.py")
    ]
    texts = [path.read_text() for path in (*files, project.ROOT / "Makefile")]
    return re.sub(r"\"\s*f?\"", "", "\n".join(texts))


def test_symptoms_are_words_that_the_product_says() -> None:
    product_text = _said()
    rows = re.findall(r"^\| (.*?) \|", (project.ROOT / "docs/troubleshooting.md").read_text(), re.M)
    quoted = {text for row in rows for text in re.findall(r"`([^`]+)`", row)}
    # The system's words, and names of what is looked at.
    elsewhere = {"Address already in use", "UiUrl", "/", "verify"}
    assert len(quoted) > 20
    assert {text for text in quoted - elsewhere if text not in product_text} == set()


@pytest.mark.parametrize(("folder", "most_lines"), [("adr", 60), ("mechanisms", 175)])
def test_decisions_and_mechanisms_are_short(folder: str, most_lines: int) -> None:
    pages = list((project.ROOT / "docs" / folder).glob("*.md"))
    assert len(pages) > 10
    assert [page.name for page in pages if len(page.read_text().splitlines()) > most_lines] == []


_OWN_COMMAND = re.compile(
    r"([\w./]*)python -m (?:local\.admin|operate\.|bench\.)|`local\.admin \w"
    # As a line of its own; in a sentence it is the runner's name.
    r"|^(?:\w+=\S+ )*python -m local\b",
    re.MULTILINE,
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_documented_commands_run_as_they_stand(document: Path) -> None:
    """In another environment than the clone's they would not find the core layer."""
    if document.parent.name == "adr":
        return
    commands = list(_OWN_COMMAND.finditer(document.read_text()))
    assert [command[0] for command in commands if command[1] != ".venv/bin/"] == []
