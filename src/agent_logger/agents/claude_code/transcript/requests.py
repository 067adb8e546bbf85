"""Requests in a session's files that no answer follows: they were billed, and no line says how much.

Before each call Claude Code writes a line `api-request`. An answer follows it; or an error of the API, which bills
nothing; or another request, as after an error that the client does not write down. If nothing follows, the connection
was lost, a person interrupted the answer, or the client was killed. When the client ends it writes a total, which
includes lost and interrupted answers. What a killed client received is in no total.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import msgspec

from agent_logger.model.session import ClientTotal, ModelTotal
from agent_logger.providers.lenient import REFUSED

REQUEST, API_ERROR = "api-request", "api_error"  # types of lines, and of what a system line says


class _Params(msgspec.Struct, gc=False):
    model: str | None = None


class _Error(msgspec.Struct, gc=False):
    status: int | None = None


_params, _error = msgspec.json.Decoder(_Params), msgspec.json.Decoder(_Error)


def model_of(params: msgspec.Raw) -> str | None:
    """Return the model that a request names."""
    try:
        return _params.decode(params).model if params else None
    except REFUSED:
        return None


def is_refusal(error: msgspec.Raw) -> bool:
    """Whether the API answered with an error; else the connection was lost."""
    try:
        return bool(error) and _error.decode(error).status is not None
    except REFUSED:
        return False


class UnansweredRequest(NamedTuple):
    at: datetime | None
    model: str | None
    is_open: bool  # the answer may still come
    exchange: int | None = None


class RequestReader:
    """Reads the lines of a file in order; call its methods for each.

    `requests` are those that were read of the file earlier, if this reader continues from there.
    """

    def __init__(self, requests: Iterable[UnansweredRequest] = ()) -> None:
        self._earlier = list(requests)  # lost requests, or those of a killed client
        self._last = self._earlier.pop() if self._earlier and self._earlier[-1].is_open else None
        self._lost: list[UnansweredRequest] = []  # the client may have counted them
        self._killed: list[UnansweredRequest] = []
        self.must_reread = False  # it is unknown whether a total includes the earlier requests

    def request(self, at: datetime | None, model: str | None, exchange: int | None = None) -> None:
        if self._last and not self._last.is_open:
            self._lost.append(self._last)
        self._last = UnansweredRequest(at, model, is_open=True, exchange=exchange)

    def answer(self) -> None:
        """Note a response of the model, or an error that the API sent in its place."""
        self._last = None

    def interruption(self) -> None:
        """Note that the connection was lost, or that the next prompt is here."""
        if self._last and self._last.is_open:
            self._last = self._last._replace(is_open=False)

    def restart(self) -> None:
        """Note that the client was started again, and found a conversation whose last message has no answer."""
        if self._last:
            self._killed.append(self._last._replace(is_open=False))
            self._last = None

    def total(self) -> None:
        """Note that the client has ended, and written its total."""
        self.must_reread = self.must_reread or bool(self._earlier)
        self._lost.clear()
        self._last = None

    def error(self, error: msgspec.Raw) -> None:
        """Note a failed call that a system line reports."""
        if is_refusal(error):
            self.answer()
        else:
            self.interruption()

    def unanswered(self) -> list[UnansweredRequest]:
        return [*self._earlier, *self._killed, *self._lost, *([self._last] if self._last else ())]


def total_of_request(request: UnansweredRequest) -> ClientTotal:
    """Return the request as a total: it used tokens, and no line says how many."""
    return ClientTotal(
        witness="transcript",
        models=(ModelTotal(model=request.model, usage=None),),
        started=request.at,
        ended=None if request.is_open else request.at,
        exchange=request.exchange,
    )


def request_of_total(total: ClientTotal) -> UnansweredRequest | None:
    """Return the request that a total stands for; None if it is the client's total of a session."""
    if not total.is_request:
        return None
    return UnansweredRequest(total.started, total.models[0].model, is_open=total.ended is None)


def of_agents(
    requests: Iterable[UnansweredRequest], total: ClientTotal | None, restarts: Iterable[datetime]
) -> list[UnansweredRequest]:
    """Return the requests of sub-agents that the session's total does not include. It includes all before its end,
    except those before the client was started again."""
    if total is None or total.ended is None:
        return list(requests)
    first = max((restart for restart in restarts if restart <= total.ended), default=None)
    return [
        request
        for request in requests
        if request.at is None or request.at > total.ended or (first is not None and request.at < first)
    ]
