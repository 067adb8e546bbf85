"""The page: what the agents did, in a browser on this machine. It has its own process and port, and only reads."""
