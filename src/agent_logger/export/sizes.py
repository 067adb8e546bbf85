"""Amounts, as people read them."""


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def bytes_text(size: int) -> str:
    if size < 1000:
        return counted(size, "byte")
    for unit, top in (("KB", 1_000_000), ("MB", 1_000_000_000)):
        if size < top:
            return f"{size / (top / 1000):.1f} {unit}"
    return f"{size / 1_000_000_000:.1f} GB"


def seconds_text(seconds: float) -> str:
    """`340 ms`, `4.2 s`, `3:07`, `2:10:45`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
