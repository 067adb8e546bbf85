"""One session: the conversation, piece by piece."""

from bisect import bisect_left
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import TypeVar

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from agent_logger.model.session import Turn
from agent_logger.views.html.pieces import html_of
from agent_logger.views.outline import NumberedTurn, Part, TextPart, Thought, Used
from agent_logger.views.pieces import Prose
from agent_logger.web import charts, formatting
from agent_logger.web.charts import Fall, Tick
from agent_logger.web.pages.session_view import Book, ContextFall, PageSegment, agent_id
from agent_logger.web.site import session_url, site_of

T = TypeVar("T")
TURNS_AT_ONCE = 24  # drawn with the page; the others when they come near
DRAWN_AT_ONCE = 1_500  # characters of a tool's input and result; more is drawn when it is opened
TICKS = 240  # of the mini-map
STEPS = 600  # of the line of the context
MOST_MARKED = 12  # falls of it: compactions, then the deepest
MOST_FALLS = 40  # that are listed
LINES_OF_A_TURN = 9  # as a guess
PLACE = Markup('<section class="exchange" id="part-{}" data-lines="{}"></section>\n')
HITS = 100
AROUND = 70
KINDS: Mapping[type[Part], str] = {Thought: "thought", TextPart: "said", Used: "used"}


async def book_of(request: Request, name: str = "session_id") -> Book:
    session_id = request.path_params[name]
    book = await site_of(request).archive.book(session_id)
    if book is None:
        raise no_session(session_id)
    return book


def no_session(session_id: str) -> HTTPException:
    return HTTPException(404, f"There is no session {session_id}.")


def _there(value: T | None, what: str) -> T:
    if value is None:
        raise HTTPException(404, f"There is no such {what}.")
    return value


async def session(request: Request) -> Response:
    """The head goes out at once; to read a long session and to draw its beginning takes longer."""
    site, session_id = site_of(request), request.path_params["session_id"]
    summary = await site.archive.query(lambda catalog: catalog.summary(session_id))
    if summary is None:
        raise no_session(session_id)
    data = f"/api/v1{session_url(summary.id)}"
    before, behind = site.render_around(request, "session.html", it=summary, data=data)

    async def page_parts() -> AsyncIterator[bytes]:
        yield before
        book = await site.archive.book(summary.id)
        if book is None:
            yield b'<p class="nothing">Its files vanished just now.</p>'
        else:
            yield bytes((await _drawn(request, book, "_conversation.html", first=_first(book))).body)
        yield behind

    return StreamingResponse(page_parts(), media_type="text/html; charset=utf-8")


async def head(request: Request) -> Response:
    """What stands above and beside the conversation, for who heard that the session went on."""
    book = await book_of(request)
    return await _drawn(request, book, "_renewed.html", path=session_url(book.summary.id))


async def rest(request: Request) -> Response:
    """From a segment on: for who has the ones before, and heard that the session went on."""
    book = await book_of(request)
    segments = book.from_segment(request.path_params["key"])
    return await _drawn(request, book, "_segments.html", segments=segments)


async def segment(request: Request) -> Response:
    book = await book_of(request)
    part = _there(book.segment(request.path_params["key"]), "part")
    return await _drawn(request, book, "_segment.html", segment=part)


async def agent(request: Request) -> Response:
    book = await book_of(request)
    agent_found = _there(book.agent(request.path_params["turn"]), "agent")
    return await _drawn(request, book, "_agent_turns.html", agent=agent_found)


async def turn(request: Request) -> Response:
    """One turn alone, with everything in it; with `tool`, the insides of one of its tool calls."""
    book = await book_of(request)
    numbered = _there(book.numbered(request.path_params["turn"]), "turn")
    if "tool" in request.path_params:
        used = dict(enumerate(part for part in numbered.parts() if isinstance(part, Used)))
        call = _there(used.get(request.path_params["tool"]), "tool call")
        return await _drawn(request, book, "_tool_inside.html", used=call)
    return await _drawn(request, book, "turn.html", numbered=numbered, whole=True, data=_data(book))


async def way_to(request: Request) -> Response:
    book = await book_of(request)
    return JSONResponse(book.way_to(request.path_params["turn"]))


async def _drawn(request: Request, book: Book, template: str, **values: object) -> Response:
    """In a thread: colouring code and Markdown take their time."""
    site = site_of(request)
    tools: dict[str, object] = {"whole": False, "drawing": Drawing(book), "book": book, "it": book.summary}
    return await site.archive.run(lambda: site.render(request, template, **(tools | values)))


def _first(book: Book) -> int:
    """How many segments are drawn at once."""
    turns = 0
    for number, segment in enumerate(book.segments):
        turns += segment.size
        if turns > TURNS_AT_ONCE:
            return max(1, number)
    return len(book.segments)


def _data(book: Book) -> str:
    return f"/api/v1{session_url(book.summary.id)}"


class Drawing:
    """What the templates of a session ask."""

    html_of = staticmethod(html_of)
    agent_id = staticmethod(agent_id)
    most_falls = MOST_FALLS

    def __init__(self, book: Book) -> None:
        self._book = book
        self.url = session_url(book.summary.id)
        self.cost, self.cost_of = book.cost, book.cost_of

    def parts(self, numbered: NumberedTurn) -> Iterator[tuple[str, Part, int]]:
        """What each is, and which of the turn's tool calls."""
        tools = 0
        for kind, part in self.kinds(numbered):
            yield kind, part, tools
            tools += isinstance(part, Used)

    @staticmethod
    def kinds(numbered: NumberedTurn) -> Iterator[tuple[str, Part]]:
        return ((KINDS[type(part)], part) for part in numbered.parts())

    @staticmethod
    def prose(text: str) -> Markup:
        return html_of(Prose(text))

    def is_open(self, used: Used) -> bool:
        return used.view.is_error or used.call.kind in ("edit", "write") or bool(used.agents)

    def is_drawn(self, used: Used) -> bool:
        size = len(used.call.result or "") + len(str(used.call.input))
        return size <= DRAWN_AT_ONCE or self.is_open(used)

    def speed(self, turn: Turn) -> float | None:
        """Tokens of output a second, where the times tell."""
        seconds = formatting.between(turn.started, turn.ended)
        return turn.usage.output_tokens / seconds if turn.usage and seconds else None

    def context(self) -> Markup:
        values = self._book.context
        step = max(1, len(values) // STEPS)
        points = values[::step]
        numbers = [number for number, _ in points]
        drawn = sorted(self._book.falls, key=lambda fall: (fall.compaction is None, fall.after - fall.before))
        falls = [_fall(fall, bisect_left(numbers, fall.turn)) for fall in drawn[:MOST_MARKED]]
        return charts.area([size for _, size in points], falls, "Context by turn")

    def map(self) -> Markup:
        turns = self._book.turns
        step = max(1, -(-len(turns) // TICKS))
        ticks = [_tick(turns[at : at + step], at) for at in range(0, len(turns), step)]
        return charts.mini_map(ticks)

    def places(self, segments: Iterable[PageSegment]) -> Markup:
        """Where segments will be drawn when they come near, about as long as they will be."""
        return Markup().join(
            PLACE.format(segment.key, segment.size * LINES_OF_A_TURN) for segment in segments
        )


def _fall(fall: ContextFall, at: int) -> Fall:
    return Fall(
        at=at,
        text=f"Turn {fall.turn}: {fall.text}",
        href=f"#turn-{fall.turn}",
        kind="compacted" if fall.compaction else "",
    )


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
    book = await book_of(request)
    words = request.query_params.get("q", "").strip()[:200]
    hits = await site_of(request).archive.run(lambda: _hits(book, words.lower())) if words else []
    return site_of(request).render(
        request, "_found.html", words=words, hits=hits[:HITS], more=len(hits) > HITS
    )


def _hits(book: Book, words: str) -> list[tuple[str, str, str, str]]:
    """Anchor, and the text before, at and behind what was found."""
    rows = []
    for chapter in book.chapters:
        rows += _in_text(chapter.user_input or "", words, f"#exchange-{chapter.exchange.number}")
    for number, turn in enumerate(book.turns):
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
