"""The demo's conversation, recorded by both witnesses into a folder."""

from collections.abc import Callable
from pathlib import Path

from agent_logger.demo.conversation import DemoInput, converse, scripted_api
from agent_logger.demo.proxied import proxied
from agent_logger.home.layout import prepare_log_folder
from agent_logger.messages import sdk
from agent_logger.protocols.json_text import encode
from agent_logger.recording import exchanges
from agent_logger.recording.session_writer import SessionWriter


def record_demo(folder: Path, *, pace: float = 1.0) -> Path:
    """Record the demo, and return the exchange log: the agent's messages go to it, in `folder`; what passes the proxy
    goes to wire logs, in `logs` below `folder`.

    Needs no key and no network, and takes some seconds. Raises `StoreError`.
    """
    prepare_log_folder(folder)
    with scripted_api(pace=pace) as api, proxied(api.url, folder / "logs") as url:
        return record(url, folder)


def record(url: str, folder: Path, on_prompt: Callable[[str], None] = lambda _: None) -> Path:
    """Record message by message, as it happens. (Without the `SessionLogger`, which would make the folder known to
    `ls`.)"""
    writer = SessionWriter(folder)
    for happening in converse(url):
        if isinstance(happening, DemoInput):
            writer.input(exchanges.UserInput(happening.text))
            on_prompt(happening.text)
        else:
            writer.message(sdk.read(encode(happening.message)))
    writer.finish()
    return folder if writer.path is None else writer.path
