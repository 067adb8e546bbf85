"""`python -m tests.fakeapi --scenario F --port 0 --port-file F`: serve until interrupted."""

import signal
from pathlib import Path

import click

from .server import FakeAPI


@click.command()
@click.option("--scenario", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--port", default=0, help="0 takes a free one.")
@click.option("--port-file", type=click.Path(path_type=Path), help="Gets the port when the server listens.")
@click.option("--var", "variables", multiple=True, metavar="NAME=VALUE")
def main(scenario: Path, port: int, port_file: Path | None, variables: tuple[str, ...]) -> None:
    pairs = (variable.partition("=") for variable in variables)
    wanted = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, wanted)  # in the server's thread too
    with FakeAPI(scenario, {name: value for name, _, value in pairs}, port=port) as api:
        if port_file:
            port_file.write_text(f"{api.port}\n")
        print(api.url, flush=True)
        signal.sigwait(wanted)
    for call in api.calls:
        print(call.transport, call.method, call.path, call.lane, call.turn, call.status, call.complete)


if __name__ == "__main__":
    main()
