"""The Markdown around a model's answer is removed, in time in proportion to the answer."""

from __future__ import annotations

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from mlcore.judges.verdicts import without_fences

PIECES = ("`", "```", " ", "\n", "json", "{", "}", "x-", "é", "\u00a0")
BLOCK = re.compile(r"```[\w-]*\s*(.*?)\s*```", re.DOTALL)


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_blocks(pieces: list[str]) -> None:
    text = "".join(pieces).strip()
    block = None if text.startswith("{") else BLOCK.search(text)
    assert without_fences(text) == (block[1].strip() if block else text)


def test_an_answer_without_an_end() -> None:
    began = time.process_time()
    for end in ("", "x", "``"):
        for middle in ("\n", " ", "\n ", "a"):
            text = "```json" + middle * 200_000 + end
            assert without_fences(text) == text.strip()
    assert time.process_time() - began < 10
