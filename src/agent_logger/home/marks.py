"""Labels, pins and notes that people put on sessions. Each change is a fact; later ones win."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from agent_logger.clock import CLOCK
from agent_logger.files.append import append_shared
from agent_logger.home.facts import fact_lines
from agent_logger.home.layout import facts_path


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """The marks of one session."""

    labels: tuple[str, ...] = ()  # in the order in which they were given
    pinned: bool = False
    note: str | None = None

    def joined(self, other: "Marks") -> "Marks":
        """Return these marks and those of another home; of two notes, the one here."""
        labels = tuple(dict.fromkeys((*self.labels, *other.labels)))
        return Marks(labels=labels, pinned=self.pinned or other.pinned, note=self.note or other.note)


class _Label(msgspec.Struct, frozen=True, tag_field="type", tag="label"):
    session: str
    label: str
    ts: str


class _LabelRemoval(msgspec.Struct, frozen=True, tag_field="type", tag="label_removal"):
    session: str
    label: str
    ts: str


class _Pin(msgspec.Struct, frozen=True, tag_field="type", tag="pin"):
    session: str
    pinned: bool
    ts: str


class _Note(msgspec.Struct, frozen=True, tag_field="type", tag="note"):
    session: str
    text: str  # empty: the note was removed
    ts: str


_Mark = _Label | _LabelRemoval | _Pin | _Note
_decode = msgspec.json.Decoder(_Mark).decode
_TAGS = (b'"label', b'"pin"', b'"note"')  # a line without any of these is another fact


def label_session(home: Path, session_id: str, label: str) -> None:
    """Give a session a label. Raises `OSError`."""
    _append(home, _Label(session_id, label, CLOCK.now()))


def change_marks(
    home: Path,
    names: Sequence[str],
    labels: Iterable[str] = (),
    without_labels: Iterable[str] = (),
    pinned: bool | None = None,
    note: str | None = None,
) -> None:
    """Change the marks of a session. `names`: its id, then what it was called before. Raises `OSError`."""
    from agent_logger.model.redaction.redactor import hidden  # every command reads marks, and few write any

    session, now = names[0], CLOCK.now()
    for label in labels:
        _append(home, _Label(session, label, now))
    for label in without_labels:
        for name in names:
            _append(home, _LabelRemoval(name, label, now))
    if pinned is not None:
        _append(home, _Pin(session, pinned, now))
    if note is not None:
        _append(home, _Note(session, hidden(note.strip()), now))


def marked_sessions(marks: Mapping[str, Marks], *, label: str | None, pinned: bool) -> Iterator[str]:
    """Yield the sessions that have this label, if one is given, and a pin, if that is asked for."""
    for session, own in marks.items():
        has_label = label is None or label.lower() in (other.lower() for other in own.labels)
        if has_label and (own.pinned or not pinned):
            yield session


def session_labelled(home: Path, label: str) -> str | None:
    """Return the client's id of the session that was last given this label, and still has it."""
    marks = read_marks(home)
    labelled = [mark.session for mark in _marks(home) if isinstance(mark, _Label) and mark.label == label]
    return next((name for name in reversed(labelled) if label in marks[name].labels), None)


def read_marks(home: Path, current_ids: Callable[[Sequence[str]], dict[str, str]] | None = None) -> dict[str, Marks]:
    """Return the marks of every session that has some, by its id; also of those whose marks were all removed.
    `current_ids` returns the ids that sessions have now, of those that were called differently before."""
    facts = list(_marks(home))
    ids = current_ids([fact.session for fact in facts]) if current_ids and facts else {}
    marks: dict[str, Marks] = {}
    for fact in facts:
        name = ids.get(fact.session, fact.session)
        marks[name] = _applied(marks.get(name, Marks()), fact)
    return marks


def _applied(marks: Marks, fact: _Mark) -> Marks:
    match fact:
        case _Label(label=label):
            return replace(marks, labels=tuple(dict.fromkeys((*marks.labels, label))))
        case _LabelRemoval(label=label):
            return replace(marks, labels=tuple(other for other in marks.labels if other != label))
        case _Pin(pinned=pinned):
            return replace(marks, pinned=pinned)
        case _Note(text=text):
            return replace(marks, note=text or None)


def _append(home: Path, fact: _Mark) -> None:
    append_shared(facts_path(home), msgspec.json.encode(fact))


def _marks(home: Path) -> Iterator[_Mark]:
    for line in fact_lines(home):
        if any(tag in line for tag in _TAGS):
            try:
                yield _decode(line)
            except (ValueError, RecursionError):  # another fact, or a line that a killed process did not end
                continue
