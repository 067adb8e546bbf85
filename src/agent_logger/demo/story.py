"""The story that the demo tells, and the tools of its agent: they use the files of the story, and touch no real
file."""

import re
from importlib.resources import files

import msgspec

from agent_logger.demo.script import Scenario, ScriptToolUse, ScriptTurn


class StoryOutcome(msgspec.Struct, frozen=True):
    output: str
    exit_code: int


class Story(msgspec.Struct, frozen=True):
    model: str
    inputs: list[str]
    files: dict[str, str]
    commands: dict[str, StoryOutcome]  # as a shell would report it
    scenario: Scenario[ScriptTurn]


class ToolResult(msgspec.Struct, frozen=True):
    content: str
    is_error: bool = False


class Bash(msgspec.Struct, frozen=True):
    command: str

    def use(self, story: Story) -> ToolResult:
        outcome = story.commands[self.command]
        if outcome.exit_code:
            return ToolResult(f"Exit code {outcome.exit_code}\n{outcome.output}", is_error=True)
        return ToolResult(outcome.output)


class Edit(msgspec.Struct, frozen=True):
    file_path: str
    old_string: str
    new_string: str

    def use(self, story: Story) -> ToolResult:
        text = story.files[self.file_path]
        story.files[self.file_path] = text.replace(self.old_string, self.new_string)
        return ToolResult(f"The file {self.file_path} has been updated.")


class Grep(msgspec.Struct, frozen=True):
    pattern: str

    def use(self, story: Story) -> ToolResult:
        lines = ((name, i, line) for name, text in story.files.items() for i, line in enumerate(text.splitlines(), 1))
        lines_found = [f"{name}:{i}:{line}" for name, i, line in lines if re.search(self.pattern, line)]
        return ToolResult("\n".join(lines_found) or "No matches found")


TOOLS: dict[str, type[Bash | Edit | Grep]] = {"Bash": Bash, "Edit": Edit, "Grep": Grep}


def load() -> Story:
    return msgspec.json.decode(files(__package__).joinpath("story.json").read_bytes(), type=Story)


def use(tool: ScriptToolUse, story: Story) -> ToolResult:
    return msgspec.convert(tool.input, TOOLS[tool.name]).use(story)
