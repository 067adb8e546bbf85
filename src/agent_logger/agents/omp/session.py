"""OhMyPi's sessions: pi's lines, and a title before the header or in it."""

from functools import partial

from agent_logger.agents.pi import session as pi

session_of = partial(pi.session_of, agent="omp")
responses_of = partial(pi.responses_of, agent="omp")
billed_of = partial(pi.billed_of, agent="omp")
parent_of = pi.parent_of
