"""Copies the documents to where ``make site`` builds a site from them.

    python docs/generate_site.py FOLDER

A link to a folder becomes one to its README.md, which stands for the list of files that GitHub
shows. Folders without one get a page that lists their files.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("*.md", "docs/**/*.md", "examples/**/*.md")
FILES = ("LICENSE", "docs/**/*.svg", "docs/**/*.png", "examples/**/*")
"""What pages show or link to."""
LISTED = {"docs/adr": "Decisions", "examples/kserve": "Example: KServe"}
"""Folders without a README.md to which pages link, with the titles of their pages."""
_LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")


def generate(folder: Path) -> None:
    """Replaces the folder by copies of the documents."""
    shutil.rmtree(folder, ignore_errors=True)
    for path in _sources(FILES):
        _copy(path, folder)
    for path in _sources(PAGES):
        target = _copy(path, folder)
        target.write_text(with_pages_of_folders(path.read_text(), path.parent))
    for name in LISTED:
        (folder / name / "README.md").write_text(listing(name))


def pages() -> list[str]:
    """Returns the paths of all pages, from the repository's root."""
    return [
        *(path.relative_to(ROOT).as_posix() for path in _sources(PAGES)),
        *(f"{name}/README.md" for name in LISTED),
    ]


def with_pages_of_folders(text: str, folder: Path) -> str:
    """Returns a page in which links to folders lead to the folders' README.md.

    Args:
        folder: that of the page.
    """

    def page(link: re.Match[str]) -> str:
        target = folder / link[1]
        return f"{link[1].rstrip('/')}/README.md" if target.is_dir() else link[1]

    return _LINK.sub(page, text)


def listing(name: str) -> str:
    """Returns the page that lists the files of a folder."""
    lines = [f"# {LISTED[name]}", ""]
    for path in sorted((ROOT / name).iterdir()):
        if path.is_file():
            lines.append(f"- [{_title(path)}]({path.name})")
    return "\n".join(lines) + "\n"


def _title(path: Path) -> str:
    is_page = path.suffix == ".md"
    return path.read_text().splitlines()[0].removeprefix("# ") if is_page else path.name


def _sources(patterns: tuple[str, ...]) -> Iterator[Path]:
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path


def _copy(path: Path, folder: Path) -> Path:
    target = folder / path.relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, target)
    return target


if __name__ == "__main__":
    generate(ROOT / sys.argv[1])
