"""Pick lists: the values that sessions have, and what a picked value selects."""

from pathlib import Path

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.summary import Filter
from tests.catalog.catalogs import ID, assistant, claude_file, user

PROJECTS = ("/p/tea", "/p/tea-timer", "/p/site")
MODELS = ("gpt-5", "gpt-5-mini", "claude-haiku-4-5")


def write(home: Path) -> None:
    for number, (project, model) in enumerate(zip(PROJECTS, MODELS, strict=True)):
        name, first = ID.format(number), 100 * number
        reply = assistant(first + 1, "Done", name, model=model)
        lines = [user(first, f"Task {number} of mine", name), reply]
        claude_file(home, name, [{**line, "cwd": project} for line in lines], project.replace("/", "-"))


def test_choices_are_the_values_of_the_sessions_the_last_active_first(home: Path) -> None:
    write(home)
    with Catalog.open() as catalog:
        catalog.sessions()
        choices = catalog.choices()
        assert (choices.projects, choices.models) == (PROJECTS[::-1], MODELS[::-1])
        assert choices.agents == ("claude-code",)
        assert catalog.choices(most=1).projects == ("/p/site",)


def test_a_whole_name_selects_that_one_alone_and_a_part_all_that_have_it(home: Path) -> None:
    write(home)
    with Catalog.open() as catalog:
        catalog.sessions()
        for given, count in (("/p/tea", 1), ("/p/tea-timer", 1), ("tea", 2), ("TEA", 2), ("/p/", 3), ("none", 0)):
            where = Filter(project=given)
            assert (given, catalog.count(where), catalog.total(where).responses) == (given, count, count)
        for given, count in (("gpt-5", 1), ("gpt", 2), ("5", 3), ("GPT-5-M", 1), ("gpt-6", 0)):
            where = Filter(model=given)
            assert (given, catalog.count(where), catalog.total(where).responses) == (given, count, count)


def test_sessions_match_by_all_words_of_title_project_and_id(home: Path) -> None:
    write(home)
    with Catalog.open() as catalog:
        catalog.sessions()

        def ids(text: str) -> list[str]:
            return [summary.id for summary in catalog.matching(text, limit=10)]

        assert ids("") == [ID.format(number) for number in (2, 1, 0)]
        assert ids("TASK tea") == [ID.format(1), ID.format(0)]
        assert ids("mine site") == [ID.format(2)]
        assert ids("00000001") == [ID.format(1)]
        assert ids("tea site") == []
        assert ids("100%") == ids('"') == []
