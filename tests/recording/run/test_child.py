"""A child process, at moments that are hard to come by from outside."""

import time

from agent_logger.model.records import Exit
from agent_logger.recording.run.child import Child


def test_the_exit_status_is_returned_when_a_signal_handler_saw_the_exit_first() -> None:
    """A signal to all of a group ends the child and runs our handler, which sends it on; to send is to look first."""
    with Child(["sh", "-c", "exit 7"], given=None, piped=False) as child:
        give_up = time.monotonic() + 60
        while child._process.returncode is None:
            child.send(0)
            assert time.monotonic() < give_up
        assert child.wait_in_terminal() == Exit(status=7, signal=None)
