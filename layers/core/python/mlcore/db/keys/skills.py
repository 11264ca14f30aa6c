"""Keys of the skill registry. The skills of a workspace have a partition of their own, so that a
search is a consistent Query per MB. Each skill has a partition for the contents of its versions."""

from __future__ import annotations

from mlcore.db.keys.pattern import Key, Pattern

SKILL = Pattern(
    "skill",
    "SKILLS#<workspace>",
    "SKILL#<organization>#<skill_name>",
    "a skill with its tags, aliases, and the states of its versions",
)
SKILL_VERSION = Pattern(
    "skill_version",
    "SKILL#<workspace>#<organization>#<skill_name>",
    "SKILLVERSION#<version>",
    "the source of a version of a skill, with its tags",
)

SKILL_PATTERNS = (SKILL, SKILL_VERSION)


def skill(workspace: str, organization: str, name: str) -> Key:
    return Key(SKILL.pk.build(workspace), SKILL.sk.build(organization, name))


def skill_prefix() -> str:
    return SKILL.sk.prefix()


def skill_version(workspace: str, organization: str, name: str, version: int) -> Key:
    return Key(
        SKILL_VERSION.pk.build(workspace, organization, name), SKILL_VERSION.sk.build(version)
    )


def skill_version_prefix() -> str:
    return SKILL_VERSION.sk.prefix()
