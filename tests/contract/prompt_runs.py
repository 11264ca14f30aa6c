"""A run as the prompt lab of the web UI makes it."""

from __future__ import annotations

from tests.contract.route_requests import PROMPT

TRIED = {
    **PROMPT,
    "run_name": "tried",
    "prompt_template": "Say {{ thing }}:\n{{thing}}!",
    "prompt_parameters": [{"key": "thing", "value": "é: ☃"}],
    "model_parameters": [{"key": "temperature", "value": 0.5}, {"key": "stop", "value": None}],
    "model_output_parameters": [{"key": "tokens", "value": 7}],
    "user_id": "ann",
    "start_time": 5,
    "tags": [{"key": "t", "value": "v"}],
}
