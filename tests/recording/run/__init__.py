"""Runs of scripted agents. They make no requests, so no proxy is started for them."""

from functools import partial

import agent_logger

run = partial(agent_logger.run, record_requests=False)
run_async = partial(agent_logger.run_async, record_requests=False)
stream = partial(agent_logger.stream, record_requests=False)
