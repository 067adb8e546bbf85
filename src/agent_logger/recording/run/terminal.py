"""Record an agent that uses the terminal, without touching what it writes there.

A running proxy is used; if there is none, one is started for as long as the agent runs. Only the agent's environment
sends it there. Its start, its end and the session file that it leaves are recorded beside what the proxy saw.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from agent_logger import config
from agent_logger.errors import AgentLoggerError
from agent_logger.proxy.attached import attached
from agent_logger.proxy.base_urls import Chosen, chosen, proxied_environment
from agent_logger.proxy.relay.route import KNOWN_HOSTS
from agent_logger.proxy.state import ProxyState, running, using


@contextmanager
def proxy_for_child(home: Path, log_dir: Path) -> Iterator[tuple[dict[str, str], str | None]]:
    """The child's environment, and the reason if the child is not sent through a proxy."""
    environment = config.child_environment()
    with ExitStack() as stack:
        try:
            port = _port(stack, home, log_dir, environment)
        except (AgentLoggerError, OSError) as error:
            yield environment, str(error)
            return
        yield {**environment, **(proxied_environment(environment, port) if port else {})}, None


def _port(stack: ExitStack, home: Path, log_dir: Path, environment: dict[str, str]) -> int | None:
    """The port of the proxy to use; `None` if the environment leads to one of our proxies already."""
    states = sorted(running(home), key=lambda state: state.started)
    named = chosen(environment)
    if any(
        address.origin.host == "127.0.0.1" and address.origin.port == state.port
        for address in named
        for state in states
    ):
        return None
    if states and _may_call(states[-1], named) and stack.enter_context(using(home, states[-1])):
        return states[-1].port
    return stack.enter_context(attached(log_dir, [str(address.origin) for address in named]))


def _may_call(state: ProxyState, named: list[Chosen]) -> bool:
    """Whether a proxy that others started may call the addresses that the user chose."""
    allowed = {*state.allow_upstream, *(f"https://{host}" for host in KNOWN_HOSTS)}
    return all(str(choice.origin) in allowed for choice in named)
