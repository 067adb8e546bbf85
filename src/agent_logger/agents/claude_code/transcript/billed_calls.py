"""The calls of a session beside its responses: the client's totals, and requests without an answer.

Both readers of a session use this, the one of whole sessions and the one of responses alone, so they give the same.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from agent_logger.agents.claude_code.transcript.cost_state import BilledAnswer, covered_by, total_of
from agent_logger.agents.claude_code.transcript.requests import (
    RequestReader,
    UnansweredRequest,
    model_of,
    of_agents,
    request_of_total,
    total_of_request,
)
from agent_logger.messages.result_usage import ModelTotals
from agent_logger.model.session import MAIN, SYNTHETIC, ClientTotal, Usage


class BilledCalls:
    """Reads the lines of a session's files in order: the main file first, then those of its sub-agents.

    `totals` are those that were read of the main file earlier, if this reader continues from there.
    """

    def __init__(self, totals: Sequence[ClientTotal] = ()) -> None:
        self._last_total = next((total for total in totals if not total.is_request), None)
        self._main = RequestReader(filter(None, map(request_of_total, totals)))
        self._file = self._main  # requests of the file that is read
        self._of_agents: list[UnansweredRequest] = []
        self._models: Mapping[str, Usage] | None = None  # the client's total of the session
        self._covered = 0  # responses before that total

    @property
    def must_reread(self) -> bool:
        """Whether what was read earlier is not enough to continue from there."""
        return self._main.must_reread

    def begin_agent(self) -> None:
        """Begin the file of a sub-agent."""
        self._file = RequestReader()

    def end_agent(self) -> None:
        self._of_agents += self._file.unanswered()

    def request(self, at: datetime | None, params: msgspec.Raw, exchange: int | None = None) -> None:
        self._file.request(at, model_of(params), exchange)

    def answer(self, model: str | None, *, is_error: bool) -> None:
        """Note a response. The client writes one of its own when it was started again, and when a call failed."""
        if model == SYNTHETIC and not is_error:
            self._file.restart()
        else:
            self._file.answer()

    def prompt(self) -> None:
        """Note input of the model: a request before it has no answer."""
        self._file.interruption()

    def error(self, error: msgspec.Raw) -> None:
        self._file.error(error)

    def end(self) -> None:
        """Note that the client has ended, and written a total."""
        self._main.total()

    def count(self, models: Mapping[str, ModelTotals], responses: int) -> None:
        """Note the client's total. `responses`: how many are before it."""
        self._models, self._covered = {name: totals.usage for name, totals in models.items()}, responses

    def totals(self, answers: Sequence[BilledAnswer], of_main: int) -> tuple[ClientTotal, ...]:
        """Return the client's total and the requests without an answer. `of_main`: how many answers, the first ones,
        are in the session's own file."""
        total = self._total(answers, of_main)
        restarts = (
            answer.at for answer in answers if answer.at and answer.thread == MAIN and answer.model == SYNTHETIC
        )
        requests = [*self._main.unanswered(), *of_agents(self._of_agents, total, restarts)]
        return (*([total] if total else ()), *map(total_of_request, requests))

    def _total(self, answers: Sequence[BilledAnswer], of_main: int) -> ClientTotal | None:
        models, covered = self._models, self._covered
        if models is None and self._last_total is not None:
            models = {model.model or "": model.usage for model in self._last_total.models if model.usage}
            covered = covered_by(self._last_total, answers[:of_main])
        return None if models is None else total_of(models, answers[:covered], answers[of_main:])
