"""The thread that syncs for all journals: nothing that happens to the one who wakes it may stop it."""

import dis
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from agent_logger.journal.sync import Upkeep

MOST_MOMENTS = 500


class _Kept:
    def __init__(self) -> None:
        self.done = threading.Event()

    def upkeep(self) -> bool:
        self.done.set()
        return False

    def last_chance(self) -> None: ...

    def release(self) -> bool:
        return False

    def after_fork(self) -> None: ...


class _CtrlC:
    """Ctrl-C at the given one of the moments where Python looks for signals."""

    LOOKS_AFTER = ("CALL", "CALL_FUNCTION_EX", "RESUME", "JUMP_BACKWARD")

    def __init__(self, moment: int) -> None:
        self.left = moment
        self._before: dict[FrameType, str] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> "_CtrlC":
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.left -= self._before.get(frame) in self.LOOKS_AFTER
            if self.left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
            self._before[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        return self


def _interrupted_at_every_moment() -> Iterator[Upkeep]:
    for moment in range(1, MOST_MOMENTS):
        upkeep, kept, ctrl_c = Upkeep(), _Kept(), _CtrlC(moment)
        sys.settrace(ctrl_c)
        try:
            upkeep.due(kept)
        except KeyboardInterrupt:
            yield upkeep
        finally:
            sys.settrace(None)
        if ctrl_c.left:
            return
    raise AssertionError("there are more moments than are tried")


def test_ctrl_c_while_waking_the_sync_thread_does_not_stop_later_syncs() -> None:
    moments = 0
    for moments, upkeep in enumerate(_interrupted_at_every_moment(), 1):
        kept = _Kept()
        threading.Thread(target=upkeep.due, args=[kept], daemon=True).start()
        assert kept.done.wait(60), f"nothing is synced any more after Ctrl-C at moment {moments}"
    assert moments > 2


class _Failing(_Kept):
    """Cannot write; its upkeep is under way until it is let go, and is due again after it."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()
        self.had_its_chance = False

    def upkeep(self) -> bool:
        self.done.set()
        self.let_go.wait(60)
        return True

    def last_chance(self) -> None:
        self.had_its_chance = True


def test_a_journal_can_write_its_gap_when_the_process_exits_during_upkeep() -> None:
    upkeep, kept = Upkeep(), _Failing()
    upkeep.due(kept)
    assert kept.done.wait(60)
    end = threading.Thread(target=upkeep.finish, kwargs={"for_good": True})
    end.start()
    end.join(0.05)
    kept.let_go.set()
    end.join(60)
    assert kept.had_its_chance
