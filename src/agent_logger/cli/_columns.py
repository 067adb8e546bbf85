"""Fit a table into a terminal: cut some columns, then leave others out."""

from collections.abc import Mapping, Sequence

from agent_logger.views.terminal import screen

GAP = 2  # columns of the screen between those of a table


def fit_columns(widths: list[int], least: Mapping[int, int], less: Sequence[int], widest: int) -> list[int]:
    """Return the columns for which the screen has room, and reduce `widths` to what each gets.

    Columns of `least` are cut first, each to that width. Those of `less` are left out then, in this order, and
    `widest` gets the room that is left over.
    """
    room = screen.columns() + GAP - sum(widths) - GAP * len(widths)
    for column, width in least.items():
        taken = min(max(0, widths[column] - width), max(0, -room))
        widths[column] -= taken
        room += taken
    gone = []
    for column in less:
        if room < 0:
            gone.append(column)
            room += widths[column] + GAP
    if gone:
        widths[widest] = max(0, widths[widest] + room)
    return [column for column in range(len(widths)) if column not in gone]
