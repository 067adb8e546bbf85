"""The page: what the agents did, in a browser on this machine. Its own process and port; it only reads."""
