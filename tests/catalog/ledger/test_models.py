"""Which models a session used."""

import pytest

from agent_logger.catalog.ledger.models import AnswerModel, models_of

OPUS, SONNET, HAIKU = "claude-opus-5-5", "claude-sonnet-4-5", "claude-haiku-4-5"


def main(model: str | None, *, has_usage: bool = True) -> AnswerModel:
    return AnswerModel(model, "main", has_usage)


def side(model: str) -> AnswerModel:
    return AnswerModel(model, "side", has_usage=True)


def agent(model: str) -> AnswerModel:
    return AnswerModel(model, "agent:a", has_usage=True)


@pytest.mark.parametrize(
    ("answers", "models", "aside"),
    [
        pytest.param([side(HAIKU), main(OPUS)], [OPUS, HAIKU], [HAIKU], id="a title comes first"),
        pytest.param([side(HAIKU), main(HAIKU)], [HAIKU], [], id="the title is by the same model"),
        pytest.param([main(OPUS), main(SONNET), main(SONNET)], [SONNET, OPUS], [], id="the most used"),
        pytest.param([main(OPUS), main(SONNET)], [SONNET, OPUS], [], id="the latest of equal ones"),
        pytest.param([main(OPUS), *[agent(HAIKU)] * 9], [OPUS, HAIKU], [], id="the main thread before sub-agents"),
        pytest.param([agent(HAIKU), side(OPUS)], [HAIKU, OPUS], [OPUS], id="no main thread"),
        pytest.param([side(HAIKU)], [HAIKU], [HAIKU], id="nothing but a title"),
        pytest.param([main(OPUS, has_usage=False)], [OPUS], [], id="no usage was told"),
        pytest.param([main(OPUS, has_usage=False), main(HAIKU)], [HAIKU], [], id="of some it was"),
        pytest.param([main("<synthetic>"), main(None)], [], [], id="unknown"),
    ],
)
def test_the_model_of_the_main_thread_comes_first(
    answers: list[AnswerModel], models: list[str], aside: list[str]
) -> None:
    assert models_of(answers) == (models, aside)
