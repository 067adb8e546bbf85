"""The proxy's socket for runs: what becomes of a run that cannot be registered."""

from pathlib import Path
from threading import Event

import pytest

from agent_logger.config import Network
from agent_logger.errors import StoreError
from agent_logger.proxy.forward.traffic import RunTraffic
from agent_logger.proxy.relay.route import RegisteredRun
from agent_logger.proxy.runs import leases as subject
from agent_logger.proxy.runs.leases import Leases
from agent_logger.proxy.runs.messages import RegisterRun, new_token
from agent_logger.proxy.runs.server import RunCalls, RunServer, RunTable
from agent_logger.proxy.runs.shared import ProxyConnection
from agent_logger.proxy.state import ProxyState


@pytest.mark.parametrize("error", [ValueError("not an origin"), TimeoutError("the loop is busy")])
def test_a_proxy_does_not_stay_for_a_run_that_it_could_not_register(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    for name, seconds in (("LOOK_SECONDS", 0.01), ("LINGER_SECONDS", 0.05), ("FIRST_SECONDS", 0.1)):
        monkeypatch.setattr(subject, name, seconds)

    def register(_message: RegisterRun) -> RegisteredRun:
        raise error

    unused = Event()
    leases = Leases(lambda _token: None, unused.set)
    server = RunServer(tmp_path, RunTable(register, lambda _token: None, RunCalls(), lambda _: RunTraffic()), leases)
    state = ProxyState(pid=1, started="", port=1, log_dir="", version="", socket=server.path)
    message = RegisterRun(id="run", token=new_token(), origins=(), network=Network())
    with ProxyConnection(state) as connection, pytest.raises((StoreError, OSError)):
        connection.ask(message)
    assert unused.wait(20)
    server.close()
    leases.close()
