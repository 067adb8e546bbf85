"""Pushes: one, or one after the other in the background."""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from agent_logger import platform
from agent_logger.catalog.catalog import Catalog
from agent_logger.errors import AgentLoggerError, StoreError
from agent_logger.files.append import lock_for_a_while
from agent_logger.home.homes import Homes
from agent_logger.home.layout import install_key
from agent_logger.push.client import HubClient
from agent_logger.push.levels import ShareRules
from agent_logger.push.machine import TOKEN_FILE, Membership, is_paused, joined, note_status, push_folder
from agent_logger.push.protocol import HubRefusalError
from agent_logger.push.sender import Sender, Sent, begin_numbers
from agent_logger.push.sharing import Sharing
from agent_logger.push.state_database import StateDatabase

LOCK_FILE = "lock"
LOCK_SECONDS = 10.0
EVERY_SECONDS = 60.0
MOST_WAIT_SECONDS = 900.0

Wait = Callable[[float], None]


class PushError(AgentLoggerError):
    """A push failed. What it did not send, the next one does."""


class RefusedDeviceError(PushError):
    """The hub does not take anything from this device: to try again is useless until somebody has done something."""


def push_once(home: Path, rules: ShareRules) -> Sent:
    """Send what the hub does not have. Raises `PushError`, `NotJoinedError` and `StoreError`."""
    member = joined(home)
    platform.make_folder(push_folder(home))
    with platform.open_or_create(push_folder(home) / LOCK_FILE) as lock:
        if not lock_for_a_while(lock, LOCK_SECONDS):
            raise PushError("another process is pushing")
        return _push(home, member, rules)


def _push(home: Path, member: Membership, rules: ShareRules) -> Sent:
    state = StateDatabase(push_folder(home))
    client = HubClient(member.url, member.token)
    sender = Sender(state, client)
    count, done = 0, 0
    error: str | None = None
    try:
        with Catalog(Homes(home)) as catalog:
            catalog.refresh()
            if state.is_new:
                begin_numbers(state, client.report())
            sharing = Sharing(catalog, install_key(home), rules)
            shared = list(sharing.sessions())
            count = sum(session.level != "none" for session in shared)
            gone = list(sharing.of_gone(state, {session.id for session in shared}))
            sender.push([*shared, *gone])
            done = count
    except HubRefusalError as refused:
        error = _reason(refused)
        raise RefusedDeviceError(error) from refused
    except (OSError, sqlite3.Error) as failure:
        error = str(failure)
        raise PushError(f"{error}; what is missing is sent later") from failure
    except AgentLoggerError as failure:
        error = str(failure)
        raise
    finally:
        if error:
            done = sum(session_state.version != "" for _, session_state in state.sessions())
        note_status(home, error=error, sessions=count, waiting=max(0, count - done))
        client.close()
        state.close()
    return sender.sent


def _reason(refused: HubRefusalError) -> str:
    match refused.refusal.error:
        case "unauthorized":
            return "the hub does not know this machine any more; 'agent-logger join URL' joins again"
        case "version":
            return "the hub is too old for this version of agent-logger; it must be updated"
    return f"the hub refused: {refused}"


def push_always(
    home: Path, rules: Callable[[], ShareRules], note: Callable[[str], None], wait: Wait = time.sleep
) -> None:
    """Push every minute, and less often while it fails. Returns when this machine leaves the hub."""
    seconds, last = EVERY_SECONDS, ""
    while (home / TOKEN_FILE).exists():
        if not is_paused(home):
            try:
                push_once(home, rules())
                seconds, last = EVERY_SECONDS, ""
            except (PushError, StoreError) as error:
                seconds = (
                    MOST_WAIT_SECONDS if isinstance(error, RefusedDeviceError) else min(2 * seconds, MOST_WAIT_SECONDS)
                )
                if str(error) != last:
                    note(str(error))
                last = str(error)
        wait(seconds)


def withdraw(home: Path, session: str) -> tuple[int, tuple[str, ...]]:
    """Withdraw a session. Returns how many objects the hub has deleted, and the people whose copies stay. Raises
    `PushError` and `NotJoinedError`."""
    member = joined(home)
    state, client = StateDatabase(push_folder(home)), HubClient(member.url, member.token)
    try:
        withdrawn = Sender(state, client).withdraw(session)
    except HubRefusalError as refused:
        raise PushError(_reason(refused)) from refused
    except OSError as error:
        raise PushError(f"{error}; nothing was withdrawn") from error
    finally:
        client.close()
        state.close()
    return withdrawn.objects, withdrawn.others
