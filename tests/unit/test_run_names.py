"""Generated run names."""

import re

from mlcore.run_names import generate


def test_form() -> None:
    names = {generate() for _ in range(200)}
    assert all(re.fullmatch(r"[a-z]+-[a-z]+-\d{1,3}", name) for name in names)
    assert len(names) > 190
