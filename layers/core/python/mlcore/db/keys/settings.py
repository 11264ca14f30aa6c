"""Keys of the DynamoDB items that hold the settings of the deployment."""

from __future__ import annotations

from mlcore.db.keys.pattern import Key, Pattern

CONFIG = Pattern("config", "CONFIG", "CFG#<key>", "one setting of the deployment")

SETTING_PATTERNS = (CONFIG,)


def config(key: str) -> Key:
    return Key(CONFIG.pk.text, CONFIG.sk.build(key))


def config_prefix() -> str:
    return CONFIG.sk.prefix()
