"""Which models a session used: the one its main thread was answered by mostly comes first."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from agent_logger.model.session import MAIN, SIDE, SYNTHETIC


class Answered(NamedTuple):
    """That a model answered in a thread."""

    model: str | None
    thread: str
    has_usage: bool


class SessionModels(NamedTuple):
    all: list[str]  # the main one first, those of the conversation before those beside it
    aside: list[str]  # that answered beside the conversation alone: titles, classifiers


def models_of(answers: Iterable[Answered]) -> SessionModels:
    """Of answers in the order of time. The main model is the one that answered most often in the main thread, of equal
    ones the latest; without a main thread, that of the sub-agents. What told no usage counts where nothing did."""
    known = [it for it in answers if it.model and it.model != SYNTHETIC]
    told = [it for it in known if it.has_usage] or known
    main = [it.model for it in told if it.thread == MAIN and it.model]
    of_agents = [it.model for it in told if it.thread not in (MAIN, SIDE) and it.model]
    conversation = [*main, *of_agents]
    others = [it.model for it in told if it.thread == SIDE and it.model]
    ranked = [*_main_model(main or of_agents or others), *conversation, *others]
    return SessionModels(
        list(dict.fromkeys(ranked)), list(dict.fromkeys(it for it in others if it not in conversation))
    )


def _main_model(models: list[str]) -> list[str]:
    counts, last = Counter(models), {model: at for at, model in enumerate(models)}
    return [max(counts, key=lambda it: (counts[it], last[it]))] if models else []
