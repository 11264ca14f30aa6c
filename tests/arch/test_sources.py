"""Files are short, named by nouns, and leave keys to one of them."""

from __future__ import annotations

import re

from tests.arch import project

LINES = 400
BANNED = {"utils", "util", "helpers", "helper", "manager", "misc", "common"}
KEY = re.compile(r"(?:^|#)(?:[A-Z][A-Z_]*|[A-Z]|m|p)#|^(?:E|M|WS|U)#META$|^RUN#REF$")


def _name(path: object) -> str:
    return str(path).removeprefix(f"{project.ROOT}/")


def test_files_are_short() -> None:
    too_long = {
        _name(path): lines
        for path in project.sources(*project.SOURCE_FOLDERS)
        if (lines := len(path.read_text().splitlines())) >= LINES
    }
    assert too_long == {}


def test_files_are_named_by_nouns() -> None:
    assert [
        _name(path)
        for path in project.tracked()
        if BANNED & set(re.split(r"[/_.-]", _name(path).lower()))
    ] == []


def test_only_keys_spells_keys() -> None:
    keys = project.LAYER / "db/keys.py"
    assert [
        f"{_name(path)}:{line}: {text}"
        for path in project.sources("layers", "functions", "local")
        if path != keys
        for line, text in project.literals(path)
        if KEY.search(text)
    ] == []
    assert any(KEY.search(text) for _, text in project.literals(keys))


def test_every_module_says_what_it_owns() -> None:
    assert [
        _name(path)
        for path in project.sources("layers", "functions", "local")
        if path.stat().st_size and not path.read_text().startswith('"""')
    ] == []
