"""The page of a session: the conversation, piece by piece."""

from bisect import bisect_left
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import TypeVar

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from agent_logger.model.session import Turn
from agent_logger.views.html.pieces import html_of
from agent_logger.views.outline import NumberedTurn, Part, TextPart, Thought, ToolUse
from agent_logger.views.pieces import Prose
from agent_logger.web import charts
from agent_logger.web.addresses import session_url
from agent_logger.web.charts import Fall, Tick
from agent_logger.web.pages.session_view import PageSegment, SessionView, agent_id
from agent_logger.web.site import site_of

T = TypeVar("T")
INITIAL_TURNS = 24  # drawn with the page; the others when they come near
FRAMED_TURNS = 600  # drawn where no script can ask for more
INLINE_CHARACTERS = 1_500  # characters of a tool's input and result; more is drawn when it is opened
TICKS = 240  # of the mini-map
STEPS = 600  # of the line of the context
MOST_MARKS = 12  # falls of it: compactions, then the deepest
MOST_FALLS = 40  # that are listed
LINES_PER_TURN = 9  # as a guess
PLACEHOLDER = Markup('<section class="exchange" id="part-{}" data-lines="{}"></section>\n')
HITS = 100
AROUND = 70
KINDS: Mapping[type[Part], str] = {Thought: "thought", TextPart: "text", ToolUse: "tool_use"}


async def session_view_of(request: Request, name: str = "session_id") -> SessionView:
    session_id = request.path_params[name]
    view = await site_of(request).pool.session_view(session_id)
    if view is None:
        raise session_not_found(session_id)
    return view


def session_not_found(session_id: str) -> HTTPException:
    return HTTPException(404, f"Session {session_id} does not exist.")


def _require(value: T | None, what: str) -> T:
    if value is None:
        raise HTTPException(404, f"This {what} does not exist.")
    return value


async def session(request: Request) -> Response:
    """Send the head at once; reading a long session and drawing its beginning takes longer."""
    site, session_id = site_of(request), request.path_params["session_id"]
    summary = await site.pool.summary(session_id)
    if summary is None:
        raise session_not_found(session_id)
    data_url = f"/api/v1{session_url(summary.id)}"
    before, behind = site.render_around(request, "session.html", session=summary, data_url=data_url)

    async def page_parts() -> AsyncIterator[bytes]:
        yield before
        view = await site.pool.session_view(summary.id)
        if view is None:
            yield b'<p class="nothing">The files of this session were removed.</p>'
        else:
            segments = _initial_segments(view, FRAMED_TURNS if site.is_framed else INITIAL_TURNS)
            yield bytes((await render_view(request, view, "_conversation.html", initial_segments=segments)).body)
        yield behind

    return StreamingResponse(page_parts(), media_type="text/html; charset=utf-8")


async def head(request: Request) -> Response:
    """Draw what is above and beside the conversation, for a browser that received a change event."""
    view = await session_view_of(request)
    tab = request.query_params.get("tab", "")
    path = session_url(view.summary.id, f"/{tab}" if tab.isalpha() else "")
    return await render_view(request, view, "_session_update.html", path=path)


async def rest(request: Request) -> Response:
    """Draw the segments from a given one on, for a browser that has the earlier ones and received a change event."""
    view = await session_view_of(request)
    segments = view.from_segment(request.path_params["key"])
    return await render_view(request, view, "_segments.html", segments=segments)


async def segment(request: Request) -> Response:
    view = await session_view_of(request)
    part = _require(view.segment(request.path_params["key"]), "part")
    return await render_view(request, view, "_segment.html", segment=part)


async def agent(request: Request) -> Response:
    view = await session_view_of(request)
    agent_work = _require(view.agent(request.path_params["turn"]), "agent")
    return await render_view(request, view, "_agent_turns.html", agent=agent_work)


async def turn(request: Request) -> Response:
    """Draw one turn alone, with everything in it; with `tool`, the inside of one of its tool calls."""
    view = await session_view_of(request)
    numbered_turn = _require(view.numbered_turn(request.path_params["turn"]), "turn")
    if "tool" in request.path_params:
        tool_uses = dict(enumerate(part for part in numbered_turn.parts() if isinstance(part, ToolUse)))
        call = _require(tool_uses.get(request.path_params["tool"]), "tool call")
        return await render_view(request, view, "_tool_call.html", tool_use=call)
    return await render_view(request, view, "turn.html", numbered_turn=numbered_turn, is_expanded=True)


async def path_to_turn(request: Request) -> Response:
    view = await session_view_of(request)
    return JSONResponse(view.path_to_turn(request.path_params["turn"]))


async def render_view(request: Request, view: SessionView, template: str, **values: object) -> Response:
    """Render a page or a part of a page about a session; in a thread, because colouring code and Markdown takes
    time."""
    site = site_of(request)
    common: dict[str, object] = {
        "is_expanded": False,
        "renderer": SessionRenderer(view, site.session_url(view.summary.id), draws_all=site.is_framed),
        "is_framed": site.is_framed,
        "view": view,
        "session": view.summary,
        "data_url": f"/api/v1{session_url(view.summary.id)}",
    }
    return await site.pool.run(lambda: site.render(request, template, **(common | values)))


def _initial_segments(view: SessionView, most_turns: int) -> int:
    """How many segments are drawn at once."""
    turns = 0
    for number, segment in enumerate(view.segments):
        turns += segment.size
        if turns > most_turns:
            return max(1, number)
    return len(view.segments)


class SessionRenderer:
    """The functions that the templates of a session call."""

    html_of = staticmethod(html_of)
    agent_id = staticmethod(agent_id)
    most_falls = MOST_FALLS

    def __init__(self, view: SessionView, url: str, *, draws_all: bool = False) -> None:
        self._view, self.url, self._draws_all = view, url, draws_all
        self.cost, self.cost_of = view.cost, view.cost_of

    def parts(self, numbered_turn: NumberedTurn) -> Iterator[tuple[str, Part, int]]:
        """The parts of a turn: the kind, the part, and its index among the turn's tool calls."""
        tools = 0
        for kind, part in self.kinds(numbered_turn):
            yield kind, part, tools
            tools += isinstance(part, ToolUse)

    @staticmethod
    def kinds(numbered_turn: NumberedTurn) -> Iterator[tuple[str, Part]]:
        return ((KINDS[type(part)], part) for part in numbered_turn.parts())

    @staticmethod
    def prose(text: str) -> Markup:
        return html_of(Prose(text))

    def is_open(self, tool_use: ToolUse) -> bool:
        return tool_use.view.is_error or tool_use.call.kind in ("edit", "write") or bool(tool_use.agents)

    def is_inline(self, tool_use: ToolUse) -> bool:
        size = len(tool_use.call.result or "") + len(str(tool_use.call.input))
        return self._draws_all or size <= INLINE_CHARACTERS or self.is_open(tool_use)

    def context(self) -> Markup:
        values = self._view.context
        step = max(1, len(values) // STEPS)
        points = values[::step]
        numbers = [number for number, _ in points]
        drawn = sorted(self._view.falls, key=lambda fall: (fall.compaction is None, fall.after - fall.before))
        falls = [
            Fall(
                at=bisect_left(numbers, fall.turn),
                text=f"Turn {fall.turn}: {fall.text}",
                href=f"#turn-{fall.turn}",
                kind="compacted" if fall.compaction else "",
            )
            for fall in drawn[:MOST_MARKS]
        ]
        return charts.area([size for _, size in points], falls, "Context by turn")

    def mini_map(self) -> Markup:
        turns = self._view.turns
        step = max(1, -(-len(turns) // TICKS))
        ticks = [_tick(turns[at : at + step], at) for at in range(0, len(turns), step)]
        return charts.mini_map(ticks)

    def placeholders(self, segments: Iterable[PageSegment]) -> Markup:
        """Placeholders for segments that are drawn when they come near, about as long as the segments will be."""
        return Markup().join(PLACEHOLDER.format(segment.key, segment.size * LINES_PER_TURN) for segment in segments)


def _tick(turns: list[Turn], first: int) -> Tick:
    blocks = [block for turn in turns for block in turn.blocks]
    if any(block.is_error for block in blocks):
        kind = "failed"
    elif all(turn.thread != "main" for turn in turns):
        kind = "agent"
    elif any(block.kind == "tool_use" for block in blocks):
        kind = "tool"
    else:
        kind = "text"
    size = sum(len(block.text) for block in blocks) + 200 * len(blocks)
    return Tick(kind=kind, size=size, href=f"#turn-{first}", text=f"turn {first}")


# ---------------------------------------------------------------- finding in a session


async def find(request: Request) -> Response:
    view = await session_view_of(request)
    words = request.query_params.get("q", "").strip()[:200]
    hits = await site_of(request).pool.run(lambda: _hits(view, words.lower())) if words else []
    return site_of(request).render(
        request, "_session_hits.html", search_text=words, hits=hits[:HITS], has_more=len(hits) > HITS
    )


def _hits(view: SessionView, words: str) -> list[tuple[str, str, str, str]]:
    """The matches: the anchor, and the text before, at and after each match."""
    rows = []
    for chapter in view.chapters:
        rows += _in_text(chapter.user_input or "", words, f"#exchange-{chapter.exchange.number}")
    for number, turn in enumerate(view.turns):
        for block in turn.blocks:
            text = block.text if block.kind != "tool_use" else str(block.input)
            rows += _in_text(text, words, f"#turn-{number}")
        if len(rows) > HITS:
            break
    return rows


def _in_text(text: str, words: str, anchor: str) -> list[tuple[str, str, str, str]]:
    at = text.lower().find(words)
    if at < 0:
        return []
    end = at + len(words)
    return [(anchor, text[max(0, at - AROUND) : at], text[at:end], text[end : end + AROUND])]
