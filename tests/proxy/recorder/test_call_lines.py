"""The line that the proxy prints of each call it has recorded."""

import json
from pathlib import Path

from agent_logger.proxy.call_lines import CallLine
from agent_logger.proxy.recorder_process import Recorder
from agent_logger.proxy.spool.folder import spool_folder
from agent_logger.proxy.spool.spool import Spool
from tests.proxy.spooling import Relay

ANSWER = {
    "id": "msg_01abcdefghijklmn",
    "type": "message",
    "role": "assistant",
    "model": "claude-haiku-4-5",
    "content": [{"type": "text", "text": "hello"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 7},
}


def test_the_line_of_a_call_has_the_tokens_of_its_answer(tmp_path: Path) -> None:
    shown: list[CallLine] = []
    recorder = Recorder(tmp_path / "logs", tmp_path / "home", show=shown.append, shows_all=True)
    spool = Spool(spool_folder(tmp_path / "logs"), send_credential=recorder.send)
    relay = Relay(spool)
    fields = [b"content-type: application/json"]
    relay.call(path=b"/v1/messages", answer=[json.dumps(ANSWER).encode()], fields=fields)
    relay.call(path=b"/v1/other", answer=[b"hello"], fields=fields)
    assert spool.close()
    assert recorder.stop(60)
    assert [(line.path, line.status, line.model, line.input_tokens, line.output_tokens) for line in shown] == [
        ("/v1/messages", 200, "claude-haiku-4-5", 7, 7),
        ("/v1/other", 200, None, None, None),
    ]
