"""`agent-logger hub`: serve a hub, to which the machines of a team push."""

from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options
from agent_logger.model.plurals import pluralize

if TYPE_CHECKING:
    from agent_logger.hub.access import Network
    from agent_logger.hub.people import Device, Person
    from agent_logger.hub.work import HubParts

STOP_SECONDS = 10.0
STORE = f"{__name__}.store"


def _note_store(context: click.Context, _option: object, store: str | None) -> None:
    context.meta[STORE] = store


# Every command has it, and only what opens the hub reads it.
store_option = click.option(
    "--store",
    metavar="STORE",
    expose_value=False,
    callback=_note_store,
    help="Where the objects are: s3://BUCKET/PREFIX, gs://, az:// or a folder.",
)


def _networks(_context: object, _option: object, given: tuple[str, ...]) -> "tuple[Network, ...]":
    import ipaddress

    try:
        return tuple(ipaddress.ip_network(text) for text in given)
    except ValueError as error:
        raise click.BadParameter(f"{error}; a network is written as 10.0.0.0/8") from error


@click.group()
def command() -> None:
    """Serve a hub, to which the machines of a team push.

    The hub is kept in hub/ in the home: what was pushed in hub/store, or where --store says, people and tokens in
    hub/hub.db. The rest is made from these. Keys of a bucket are taken from the variables AWS_ACCESS_KEY_ID and so on.

    \b
    Examples:
      agent-logger hub invite ann --url http://127.0.0.1:8090
      agent-logger hub token ann
      agent-logger hub serve
    """


@command.command()
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Address to listen on. [default: 127.0.0.1]")
@click.option("--port", default=8090, type=click.IntRange(0, 65535), help="Port; 0 takes a free one. [default: 8090]")
@click.option("--tls-cert", metavar="FILE", type=click.Path(), help="Certificate, with those above it, as PEM.")
@click.option("--tls-key", metavar="FILE", type=click.Path(), help="Key of the certificate, as PEM.")
@click.option("--behind-proxy", is_flag=True, help="Serve plain HTTP beyond this machine: a proxy does TLS.")
@click.option("--trust-header", metavar="NAME", help="Header in which a proxy names the person who is signed in.")
@click.option(
    "--from", "networks", metavar="CIDR", multiple=True, callback=_networks, help="Network of that proxy. Repeatable."
)
@store_option
@settings_options()
def serve(
    settings: config.Configuration,
    host: str,
    port: int,
    tls_cert: str | None,
    tls_key: str | None,
    behind_proxy: bool,
    trust_header: str | None,
    networks: "tuple[Network, ...]",
) -> None:
    """Serve the hub: its page, and what the machines of the team push.

    The log, a line of JSON for each request, goes to stderr. GET /health answers without a token.
    """
    from agent_logger.hub.server import HubAddress
    from agent_logger.hub.server import serve as serve_hub
    from agent_logger.proxy.attended import attended

    address = HubAddress(host, port, tls_cert, tls_key, behind_proxy, trust_header, networks)
    address.check()
    parts = _parts(settings)
    environment = config.child_environment(AGENT_LOGGER_HOME=str(settings.home))
    store = _store()
    worker = attended("hub", "work", *(("--store", store) if store else ()), environment=environment)
    try:
        serve_hub(parts, address, lambda url: _output.note(f"The hub is at {url}. Ctrl-C stops it."))
    finally:
        assert worker.stdin
        worker.stdin.close()
        worker.wait(STOP_SECONDS)
        parts.close()


@command.command()
@click.option("--once", is_flag=True, help="Stop when everything is up to date.")
@store_option
@settings_options()
def work(settings: config.Configuration, once: bool) -> int:
    """Make homes and the catalog from what was pushed. 'hub serve' runs this, too."""
    from agent_logger.hub.server import log_as_json
    from agent_logger.hub.work import work_always, work_once, working

    parts = _parts(settings)
    with working(parts.folder):
        if not once:
            log_as_json()
            work_always(parts)
        report = work_once(parts)
    parts.close()
    for problem in report.problems:
        _output.note(_output.hidden(problem))
    return 1 if report.problems else 0


@command.command()
@click.argument("name")
@click.option("--url", required=True, help="Address under which people reach the hub.")
@click.option(
    "--role", type=click.Choice(["member", "lead", "admin"]), help="Role. [default: member; the first: admin]"
)
@store_option
@settings_options()
def invite(settings: config.Configuration, name: str, url: str, role: str | None) -> None:
    """Invite a person. The invite is printed: it works once, for a day.

    \b
    Examples:
      agent-logger hub invite ann --url https://hub.example.com
      agent-logger hub invite ben --url https://hub.example.com --role lead
    """
    from agent_logger.hub.people import Role

    parts = _parts(settings)
    parts.people.set_url(url)
    text = parts.people.invite(name, Role(role) if role else None)
    parts.close()
    _output.note(f"{name} runs: agent-logger join {url}")
    _output.echo(text)


@command.command()
@click.argument("name")
@store_option
@settings_options()
def token(settings: config.Configuration, name: str) -> None:
    """Print a token with which programs read what a person may see, and a link that signs the person in to the page.

    The token is valid until 'hub revoke'. It works for a person who was invited and has not joined. The link works
    once, for a day.

    \b
    Examples:
      agent-logger hub token ann
      curl -H "Authorization: Bearer $(agent-logger hub token ann)" http://127.0.0.1:8090/api/v1/usage?by=person
    """
    parts = _parts(settings)
    try:
        reader, link, url = parts.people.reader_token(name), parts.people.link_token(name), parts.people.url
    finally:
        parts.close()
    _output.note(f"{name} signs in at: {(url or 'http://127.0.0.1:8090').rstrip('/')}/open?token={link}")
    _output.echo(reader)


@command.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_option
@settings_options()
def people(settings: config.Configuration, as_json: bool) -> None:
    """List people with their roles, machines and tokens.

    \b
    Examples:
      agent-logger hub people
      agent-logger hub people --json
    """
    parts = _parts(settings)
    everybody, devices, counts = parts.people.people(), parts.people.devices(), parts.people.token_counts()
    parts.close()
    if as_json:
        _output.json([_person(person, devices, counts) for person in everybody])
        return
    rows: list[list[str | int]] = []
    for person in everybody:
        machines = [device.machine for device in devices if device.person.id == person.id and not device.revoked]
        status = "revoked" if person.revoked else "invited" if counts.get((person.id, "invite")) else ""
        tokens = counts.get((person.id, "reader"), 0)
        rows.append([person.name, person.role.value, ", ".join(machines) or "-", tokens, status])
    if not rows:
        _output.note("Nobody was invited yet. 'agent-logger hub invite NAME --url URL' invites somebody.")
        return
    _output.table(["person", "role", "machines", "reader tokens", "status"], rows)


def _person(person: "Person", devices: "list[Device]", counts: dict[tuple[str, str], int]) -> dict[str, object]:
    from agent_logger.clock import timestamp

    machines = [
        {"name": device.machine, "last_used": timestamp(device.used), "revoked": device.revoked is not None}
        for device in devices
        if device.person.id == person.id
    ]
    return {
        "name": person.name,
        "role": person.role,
        "since": timestamp(person.created),
        "revoked": person.revoked is not None,
        "machines": machines,
        "reader_tokens": counts.get((person.id, "reader"), 0),
    }


@command.command()
@click.argument("name")
@click.option("--machine", metavar="NAME", help="Revoke this machine alone.")
@click.option("--tokens", is_flag=True, help="Revoke tokens, links and sign-ins alone; machines continue to push.")
@store_option
@settings_options()
def revoke(settings: config.Configuration, name: str, machine: str | None, tokens: bool) -> None:
    """Revoke a person, with all tokens and machines. What was pushed stays.

    \b
    Examples:
      agent-logger hub revoke ben
      agent-logger hub revoke ben --machine old-laptop
      agent-logger hub revoke ben --tokens
    """
    if machine and tokens:
        raise click.UsageError("give either --machine or --tokens")
    parts = _parts(settings)
    try:
        person = parts.people.person(name)
        if machine:
            _revoke_machines(parts, person.name, machine)
        elif tokens:
            parts.people.revoke_tokens(name)
        else:
            parts.people.revoke_person(name)
    finally:
        parts.close()
    revoked = f"{machine} of {person.name}" if machine else f"tokens of {person.name}" if tokens else person.name
    _output.note(f"Revoked: {revoked}")


def _revoke_machines(parts: "HubParts", person: str, machine: str) -> None:
    devices = [device for device in parts.people.devices() if device.person.name == person and not device.revoked]
    named = [device for device in devices if device.machine == machine]
    if not named:
        names = ", ".join(device.machine for device in devices) or "none"
        raise click.ClickException(f"{person} has no machine {machine!r}; there are: {names}")
    for device in named:
        parts.people.revoke_device(device)


@command.command()
@store_option
@settings_options()
def rebuild(settings: config.Configuration) -> int:
    """Make the index, homes and catalog from the store. Stop 'hub serve' before."""
    from agent_logger import __version__
    from agent_logger.hub.work import serving, work_once, working

    parts = _parts(settings)
    with serving(parts), working(parts.folder):
        parts.use_store()
        damaged = parts.intake(__version__).rebuild()
        parts.assembly.clear()
        report = work_once(parts)
    parts.close()
    _output.note(f"{pluralize(report.written, 'file')} made from the store")
    if damaged:
        _output.note(
            f"{pluralize(damaged, 'object')} in the store cannot be read; 'agent-logger hub verify' names them"
        )
    return 1 if damaged or report.problems else 0


@command.command()
@store_option
@settings_options()
def verify(settings: config.Configuration) -> int:
    """Read everything in the store, and report what is damaged or missing."""
    from agent_logger.hub.storage.checks import contested_sessions, damaged_objects, missing_objects

    parts = _parts(settings)
    count = 0
    for name in damaged_objects(parts.store):
        count += 1
        _output.echo(name)
    missing = missing_objects(parts.index, parts.store)
    for name in missing:
        _output.echo(name)
    names = parts.names
    for session, (first, *later) in contested_sessions(parts.index):
        others = ", ".join(names.get(person, person) for person in later)
        _output.note(_output.hidden(f"session {session} is {names.get(first, first)}'s; {others} has pushed it later"))
    parts.close()
    if missing:
        _output.note(f"{pluralize(len(missing), 'object')} missing from the store; the hub has acknowledged them")
    _output.note("Everything can be read." if not count else f"{pluralize(count, 'object')} cannot be read")
    return 1 if count or missing else 0


@command.command()
@click.argument("session", metavar="[SESSION]", required=False)
@click.option("--person", metavar="NAME", help="Of this person; without SESSION everything that the person has pushed.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@store_option
@settings_options()
def delete(settings: config.Configuration, session: str | None, person: str | None, yes: bool) -> int:
    """Delete a session, or everything of a person, for good: it cannot be pushed again.

    SESSION is the whole id. The hub may run.

    \b
    Examples:
      agent-logger hub delete 9e3842d3-6a51-4f0c-9d2e-0c7f6f3a1b55
      agent-logger hub delete --person ben
    """
    from agent_logger import __version__
    from agent_logger.hub.work import changing

    if not session and not person:
        raise click.UsageError("give a SESSION, --person NAME or both")
    parts = _parts(settings)
    try:
        owner = parts.people.person(person) if person else None
        what = " ".join([f"session {session}" if session else "all sessions", *([f"of {owner.name}"] if owner else [])])
        if not _output.confirm(f"Delete {what} from this hub for good?", yes=yes):
            return 1
        with changing(parts.folder):
            withdrawn = parts.intake(__version__).delete(session, owner.id if owner else None)
        names = parts.names
        for owner_id, each in withdrawn:
            parts.people.note_deletion(names.get(owner_id, owner_id), each.session)
    finally:
        parts.close()
    objects = sum(each.objects for _, each in withdrawn)
    _output.note(
        f"deleted {pluralize(objects, 'object')} of {pluralize(len({e.session for _, e in withdrawn}), 'session')}"
    )
    return 0 if withdrawn else 1


@command.command()
@click.argument("days", type=click.IntRange(min=1))
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@store_option
@settings_options()
def retain(settings: config.Configuration, days: int, yes: bool) -> int:
    """Delete sessions of which nothing has changed for DAYS days.

    What counts is the time of a session's newest file, as its machines say. A session that continues is pushed again.
    The hub may run.

    \b
    Examples:
      agent-logger hub retain 365 --yes
    """
    from agent_logger import __version__
    from agent_logger.clock import CLOCK
    from agent_logger.hub.work import changing

    if not _output.confirm(f"Delete sessions that have not changed for {pluralize(days, 'day')}?", yes=yes):
        return 1
    parts = _parts(settings)
    try:
        with changing(parts.folder):
            sessions = parts.intake(__version__).delete_older(CLOCK.wall() - days * 86_400)
    finally:
        parts.close()
    _output.note(f"deleted {pluralize(len(sessions), 'session')}")
    return 0


def _store() -> str | None:
    store: str | None = click.get_current_context().meta[STORE]
    return store


def _parts(settings: config.Configuration) -> "HubParts":
    from agent_logger.hub.folder import hub_folder
    from agent_logger.hub.work import HubParts

    return HubParts(hub_folder(settings.home), _store())
