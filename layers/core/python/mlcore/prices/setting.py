"""The field names of the setting ``llm_prices``, which holds a deployment's own prices:
``{provider: {model: {part: US dollars for a million tokens}}}``.
"""

from __future__ import annotations

from typing import Final

SETTING: Final = "llm_prices"
ANY: Final = "*"
"""In the place of a provider's name, means every provider of the model."""
FIELDS: Final = (
    "input_per_million_tokens",
    "output_per_million_tokens",
    "cache_read_per_million_tokens",
    "cache_write_per_million_tokens",
    "cache_write_1hr_per_million_tokens",
)
"""The parts of a price, in MLflow's words."""
REQUIRED: Final = FIELDS[:2]
