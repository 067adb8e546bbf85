"""The colour of an agent's name on the page."""

import re
from pathlib import Path

from agent_logger.agents.registry import AGENTS
from agent_logger.web.site import TINTS, _tint_class

CSS = (Path(__file__).parents[2] / "src/agent_logger/web/static/page.css").read_text()


def test_every_agent_has_a_colour_and_the_first_ones_have_their_own() -> None:
    classes = [_tint_class(agent.name).strip() for agent in AGENTS]
    assert set(classes) <= set(re.findall(r"^\.(tint-\d+) \{ color", CSS, re.MULTILINE))
    assert len(set(classes)) == min(len(AGENTS), TINTS)


def test_an_agent_that_is_not_known_has_the_colour_of_plain_text() -> None:
    assert _tint_class("no-such-agent") == _tint_class(None) == ""
