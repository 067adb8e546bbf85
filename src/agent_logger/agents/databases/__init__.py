"""What agents share that keep their sessions in SQLite databases: opening without a trace, finding, copying."""
