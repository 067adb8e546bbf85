"""Numbers with their noun, for every text that a person reads."""


def pluralize(number: int, singular: str, plural: str | None = None) -> str:
    """The text `1 turn` or `1,204 turns`. `plural`: for nouns that take more than an `s`, such as `proxies`."""
    return f"{number:,} {noun(number, singular, plural)}"


def noun(number: int, singular: str, plural: str | None = None) -> str:
    """The noun alone, where the number stands apart."""
    return singular if number == 1 else plural or f"{singular}s"
