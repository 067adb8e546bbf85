"""Messages of all dialects as blocks: what models answer, and what clients send back to them."""
