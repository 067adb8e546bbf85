"""What a run and the proxy say to each other over the proxy's socket: each message is a line of JSON.

A connection registers one run, or one shell. The proxy answers each message with a `ProxyReply`. What was registered
holds until the connection is closed and the last process of the run, or of the shell's session, has ended.
"""

import secrets
import string

import msgspec

from agent_logger.config import Network
from agent_logger.model.session import Usage
from agent_logger.proxy.forward.traffic import HostTraffic
from agent_logger.proxy.relay.route import TOKEN_PREFIX

TOKEN_LENGTH = 32
LONGEST_MESSAGE = 1 << 20
_ALPHABET = string.ascii_letters + string.digits


def new_token() -> str:
    """Make a token: a credential, by which the proxy knows the requests of a run."""
    return TOKEN_PREFIX + "".join(secrets.choice(_ALPHABET) for _ in range(TOKEN_LENGTH))


class RegisterRun(msgspec.Struct, frozen=True, kw_only=True, tag="register"):
    """Announces a run that is about to start its agent."""

    id: str
    token: str
    origins: tuple[str, ...]  # the origins that its base URLs name
    network: Network
    within: str | None = None  # the token of the run that this one was started in: its origins hold here, too
    # The hosts that the forward door records for it: those that the certificate in its CA file permits. It tunnels all
    # others.
    record_hosts: tuple[str, ...] = ()
    # Of a shell: the registration holds while a process of this session (of the operating system) lives. A shell does
    # not have the token in its own environment as other processes see it.
    session: int | None = None


class AgentStarted(msgspec.Struct, frozen=True, kw_only=True, tag="started"):
    """Tells which process the agent is. The read ends of its output pipes come with it: if the run is killed, the proxy
    reads them, or the agent would fail at its next output."""

    pid: int


class OutputClosed(msgspec.Struct, frozen=True, kw_only=True, tag="output_closed"):
    """Tells that nobody reads the agent's output any more: the agent is to notice."""


class FinishRun(msgspec.Struct, frozen=True, kw_only=True, tag="finish"):
    """Asks for the requests of the run, when those that were made so far are in the log."""


class HoldForShell(msgspec.Struct, frozen=True, kw_only=True, tag="hold"):
    """Asks the proxy to stay while a process of this session (of the operating system) lives."""

    session: int


class ReleaseShells(msgspec.Struct, frozen=True, kw_only=True, tag="release"):
    """Takes back what all shells asked for."""


RunMessage = RegisterRun | AgentStarted | OutputClosed | FinishRun | HoldForShell | ReleaseShells


class RecordedRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model request of a run that has a response record."""

    session: str | None = None  # the client's id of it; else the name of our log
    model: str | None = None
    usage: Usage | None = None
    tier: str | None = None
    ts: str | None = None
    message_id: str | None = None  # the vendor's id of the answer


class ProxyReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    problem: str | None = None
    is_ending: bool = False  # the proxy takes no more runs; another one has to be started
    requests: tuple[RecordedRequest, ...] = ()
    is_complete: bool = True  # `requests` has all that were made
    not_understood: int = 0  # calls to models that are kept as bytes
    not_understood_paths: tuple[str, ...] = ()  # of some of them, each once
    hosts: tuple[HostTraffic, ...] = ()  # what the run sent through the forward door, to `FinishRun`
    released: int = 0  # shells that had asked for the proxy


encode = msgspec.json.encode
decode_message = msgspec.json.Decoder(RunMessage).decode
decode_reply = msgspec.json.Decoder(ProxyReply).decode
