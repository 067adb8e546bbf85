"""`agent-logger completion`: the script that makes a shell complete our commands."""

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script for bash, zsh or fish.

    Put one line into your shell's file:

    \b
      bash  ~/.bashrc   eval "$(agent-logger completion bash)"
      zsh   ~/.zshrc    eval "$(agent-logger completion zsh)"
      fish  ~/.config/fish/config.fish
                        agent-logger completion fish | source

    bash needs version 4.4 or newer; zsh needs compinit before the line.
    """
    from click.shell_completion import get_completion_class

    root = context.find_root()
    maker = get_completion_class(shell)
    assert maker is not None
    script = maker(root.command, {}, "agent-logger", "_AGENT_LOGGER_COMPLETE")
    # Not `source()`: for bash it starts a bash to ask its version, at every start of a shell.
    click.echo(script.source_template % script.source_vars())
