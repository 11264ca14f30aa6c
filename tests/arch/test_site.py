"""The site of the documents has every page in its menu, once."""

from __future__ import annotations

import runpy
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from tests.arch import project

SCRIPT = SimpleNamespace(**runpy.run_path(str(project.ROOT / "docs/generate_site.py")))


MAKEFILE = (project.ROOT / "Makefile").read_text()


class _Loader(yaml.SafeLoader):
    """Reads what MkDocs makes Python objects of as None."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
SITE: dict[str, Any] = yaml.load((project.ROOT / "mkdocs.yml").read_text(), _Loader)


def _menu(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for part in entry.values() if isinstance(entry, dict) else entry:
            yield from _menu(part)


def test_the_menu_has_every_page_once() -> None:
    menu = Counter(_menu(SITE["nav"]))
    decisions = {page for page in SCRIPT.pages() if page.startswith("docs/adr/0")}
    assert set(menu) == set(SCRIPT.pages()) - decisions
    assert set(menu.values()) == {1}


def test_the_site_is_strict() -> None:
    assert SITE["strict"] is True
    [command] = [line for line in MAKEFILE.splitlines() if "mkdocs build" in line]
    assert command.endswith("mkdocs build --strict"), "--quiet hides the warnings from --strict"
    for rules in SITE["validation"].values():
        assert set(rules.values()) == {"warn"}
    assert SITE["theme"]["font"] is False, "a font would come from elsewhere"


@pytest.mark.parametrize(
    ("page", "link", "target"),
    [
        ("docs", "adr", "adr/README.md"),
        ("docs", "adr/", "adr/README.md"),
        ("docs", "clients.md#files", "clients.md#files"),
        ("docs", "https://example.com/adr", "https://example.com/adr"),
        (".", "docs#documents", "docs/README.md#documents"),
    ],
)
def test_a_link_to_a_folder_leads_to_its_page(page: str, link: str, target: str) -> None:
    changed = SCRIPT.with_pages_of_folders(f"[a]({link}) b", project.ROOT / page)
    assert changed == f"[a]({target}) b"


def test_decisions_are_listed() -> None:
    listed = SCRIPT.listing("docs/adr")
    for path in (project.ROOT / "docs/adr").glob("*.md"):
        assert f"]({path.name})" in listed
