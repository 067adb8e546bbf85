"""The models that a session used: the one that answered most in its main thread comes first."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from agent_logger.model.session import MAIN, SIDE, SYNTHETIC


class AnswerModel(NamedTuple):
    """An answer of a model in a thread."""

    model: str | None
    thread: str
    has_usage: bool


class SessionModels(NamedTuple):
    all: list[str]  # the main one first, those of the conversation before those outside it
    aside: list[str]  # models that answered only outside the conversation: titles, classifiers


def models_of(answers: Iterable[AnswerModel]) -> SessionModels:
    """Return the models of answers, which are in the order of time. The main model is the one that answered most often
    in the main thread, of equal ones the latest; without a main thread, that of the sub-agents. Answers without usage
    count only where none has any."""
    named = [answer for answer in answers if answer.model and answer.model != SYNTHETIC]
    counted = [answer for answer in named if answer.has_usage] or named
    main = [answer.model for answer in counted if answer.thread == MAIN and answer.model]
    of_agents = [answer.model for answer in counted if answer.thread not in (MAIN, SIDE) and answer.model]
    conversation = [*main, *of_agents]
    others = [answer.model for answer in counted if answer.thread == SIDE and answer.model]
    ranked = [*_main_model(main or of_agents or others), *conversation, *others]
    return SessionModels(
        list(dict.fromkeys(ranked)),
        list(dict.fromkeys(other for other in others if other not in conversation)),
    )


def _main_model(models: list[str]) -> list[str]:
    counts, last = Counter(models), {model: at for at, model in enumerate(models)}
    return [max(counts, key=lambda model: (counts[model], last[model]))] if models else []
