"""Prime Agent's sessions: pi's lines. What `child_usage_attributed` adds to a message was used by a sub-agent, whose
own file has it, too."""

from functools import partial

from agent_logger.agents.pi import session as pi

session_of = partial(pi.session_of, agent="prime-agent")
responses_of = partial(pi.responses_of, agent="prime-agent")
billed_of = partial(pi.billed_of, agent="prime-agent")
parent_of = pi.parent_of
