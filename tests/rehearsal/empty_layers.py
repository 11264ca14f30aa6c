"""The template with empty layers in place of those that the emulator cannot run: their libraries
are built for Lambda's processors, and are 260 MB."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tests.engines import ROOT

EMPTY: Final = ("layers/tables", "layers/catalog", "layers/tokens")
"""Folders of layers. Where people sign in, ``site.py`` adds that of tokens for this machine."""
MAKEFILE: Final = """\
build-%Layer:
\techo empty > "$(ARTIFACTS_DIR)/empty.txt"
"""


def with_empty_layers(folder: Path) -> Path:
    """Writes the template into a folder. Returns its path."""
    layer, made = folder / "layer", folder / "template.yaml"
    layer.mkdir()
    (layer / "Makefile").write_text(MAKEFILE)
    template = (ROOT / "template.yaml").read_text()
    for source in EMPTY:
        template, count = re.subn(rf"(?<=ContentUri: ){source}\b", str(layer), template)
        assert count == 1, source
    made.write_text(template)
    return made
