"""A process that logs a session, for tests that kill it: prints a number after each `log` that returned."""

import json
import os
import signal
import sys
from typing import Any

from agent_logger import SessionLogger

SESSION = "7b320356-a178-418e-a692-69ce6e1e657c"
USAGE = {"input_tokens": 1, "output_tokens": 1}


def messages(size: int) -> list[dict[str, Any]]:
    text = {"type": "text", "text": "x" * size}
    return [
        {"type": "system", "subtype": "init", "session_id": SESSION, "model": "m", "cwd": "/", "tools": []},
        *(
            {"type": "assistant", "session_id": SESSION, "message": {"id": f"m{it}", "content": [text]}}
            for it in range(5)
        ),
        {"type": "result", "session_id": SESSION, "is_error": False, "total_cost_usd": 1, "usage": USAGE},
    ]


def said(message: str) -> dict[str, Any]:
    return {"id": message, "content": [{"type": "text", "text": "the last"}]}


def event(**fields: Any) -> dict[str, Any]:
    return {"type": "stream_event", "session_id": SESSION, "event": fields}


def begins(message: str) -> dict[str, Any]:
    return event(type="message_start", message={"id": message})


def ends(tokens: int) -> dict[str, Any]:
    return event(type="message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": tokens})


def main(folder: str, how: str) -> None:
    logger = SessionLogger(folder)
    number = 0
    while True:
        logger.log_user_input(f"input {number}")
        print(json.dumps({"input": number}), flush=True)
        for message in messages(200):
            logger.log({**message, "mark": number})
            number += 1
            print(json.dumps({"logged": number}), flush=True)
            if number == 10 and how == "exit":
                sys.exit(3)
            if number == 10 and how == "raise":
                raise ZeroDivisionError
            if number == 10 and how == "close":
                logger.log(begins(f"m{number}"))
                logger.log(messages(200)[1] | {"message": {**said(f"m{number}"), "usage": USAGE}})
                logger.log(ends(40))
                logger.close()
                os.kill(os.getpid(), signal.SIGKILL)
            if number == 10 and how == "fork":
                if os.fork() == 0:
                    sys.exit(0)
                os.wait()
                sys.exit(0)
            if number == 10 and how == "term":

                def stop(*_: object) -> None:
                    logger.close("terminated")
                    sys.exit(143)

                signal.signal(signal.SIGTERM, stop)
                os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main(*sys.argv[1:])
