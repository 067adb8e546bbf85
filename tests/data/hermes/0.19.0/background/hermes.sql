CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    user_id TEXT,
    session_key TEXT,
    chat_id TEXT,
    chat_type TEXT,
    thread_id TEXT,
    display_name TEXT,
    origin_json TEXT,
    expiry_finalized INTEGER DEFAULT 0,
    model TEXT,
    model_config TEXT,
    system_prompt TEXT,
    parent_session_id TEXT,
    started_at REAL NOT NULL,
    ended_at REAL,
    end_reason TEXT,
    message_count INTEGER DEFAULT 0,
    tool_call_count INTEGER DEFAULT 0,
    input_tokens INTEGER DEFAULT 0,
    output_tokens INTEGER DEFAULT 0,
    cache_read_tokens INTEGER DEFAULT 0,
    cache_write_tokens INTEGER DEFAULT 0,
    reasoning_tokens INTEGER DEFAULT 0,
    cwd TEXT,
    git_branch TEXT,
    git_repo_root TEXT,
    billing_provider TEXT,
    billing_base_url TEXT,
    billing_mode TEXT,
    estimated_cost_usd REAL,
    actual_cost_usd REAL,
    cost_status TEXT,
    cost_source TEXT,
    pricing_version TEXT,
    title TEXT,
    api_call_count INTEGER DEFAULT 0,
    handoff_state TEXT,
    handoff_platform TEXT,
    handoff_error TEXT,
    compression_failure_cooldown_until REAL,
    compression_failure_error TEXT,
    compression_fallback_streak INTEGER NOT NULL DEFAULT 0,
    profile_name TEXT,
    rewind_count INTEGER NOT NULL DEFAULT 0,
    archived INTEGER NOT NULL DEFAULT 0,
    FOREIGN KEY (parent_session_id) REFERENCES sessions(id)
);
INSERT INTO sessions VALUES ('20261119_041447_5d43bc', 'cli', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 'gpt-fake-1', '{"max_iterations": 90, "reasoning_config": null, "max_tokens": null}', '[vendor text removed: 13238 characters]', NULL, 1795061703.134229, NULL, NULL, 7, 2, 720, 70, 180, 0, 0, '/home/user/project', NULL, NULL, 'custom', 'http://127.0.0.1:8000/v1', NULL, 0.0, NULL, 'unknown', 'none', NULL, NULL, 3, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, 0);
INSERT INTO sessions VALUES ('20261119_041505_9880ad', 'subagent', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 'gpt-fake-1', '{"max_iterations": 50, "reasoning_config": null, "max_tokens": null, "_delegate_from": "20261119_041447_5d43bc"}', '[vendor text removed: 7856 characters]', '20261119_041447_5d43bc', 1795061706.325391, 1795061707.226197, 'agent_close', 2, 0, 300, 30, 70, 0, 0, NULL, NULL, NULL, 'custom', 'http://127.0.0.1:8000/v1', NULL, 0.0, NULL, 'unknown', 'none', NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, 0);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions(id),
    role TEXT NOT NULL,
    content TEXT,
    tool_call_id TEXT,
    tool_calls TEXT,
    tool_name TEXT,
    effect_disposition TEXT,
    timestamp REAL NOT NULL,
    token_count INTEGER,
    finish_reason TEXT,
    reasoning TEXT,
    reasoning_content TEXT,
    reasoning_details TEXT,
    codex_reasoning_items TEXT,
    codex_message_items TEXT,
    platform_message_id TEXT,
    observed INTEGER DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 1,
    compacted INTEGER NOT NULL DEFAULT 0,
    api_content TEXT
);
INSERT INTO messages VALUES (1, '20261119_041447_5d43bc', 'user', 'List the files', NULL, NULL, NULL, NULL, 1795061703.1538172, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (2, '20261119_041447_5d43bc', 'assistant', 'I will look.', NULL, '[{"id": "call_ljhQH4Ou267SvtWZAMxYQo", "call_id": "call_ljhQH4Ou267SvtWZAMxYQo", "response_item_id": "fc_ljhQH4Ou267SvtWZAMxYQo", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\":\"ls -1; exit 3\"}"}}, {"id": "call_8j47LEvtgpGddz3K4cV1Hy", "call_id": "call_8j47LEvtgpGddz3K4cV1Hy", "response_item_id": "fc_8j47LEvtgpGddz3K4cV1Hy", "type": "function", "function": {"name": "delegate_task", "arguments": "{\"goal\":\"Count the lines of hello.py\",\"context\":\"none\"}"}}]', NULL, NULL, 1795061704.058311, NULL, 'tool_calls', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (3, '20261119_041447_5d43bc', 'tool', '{"output": "README.md\nhello.py", "exit_code": 3, "error": null}', 'call_ljhQH4Ou267SvtWZAMxYQo', NULL, 'terminal', NULL, 1795061704.2057831, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (4, '20261119_041447_5d43bc', 'tool', '{"status": "dispatched", "mode": "background", "count": 1, "delegation_id": "deleg_a53330c2", "goals": ["Count the lines of hello.py"], "note": "Subagent is running in the background. You and the user can keep working; its full result re-enters the conversation as a new message when it finishes. Do not wait or poll — just continue.", "live_transcripts": ["/home/user/.hermes/cache/delegation/live/deleg_a53330c2/task-0.log"], "live_transcripts_hint": "Each subagent streams a human-readable transcript of its operations to the file listed above (append-only, one per task). Read or `tail -f` these paths at any time to watch a child work while it runs."}', 'call_8j47LEvtgpGddz3K4cV1Hy', NULL, 'delegate_task', NULL, 1795061706.2584538, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (5, '20261119_041505_9880ad', 'user', 'Count the lines of hello.py', NULL, NULL, NULL, NULL, 1795061706.3264422, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (6, '20261119_041447_5d43bc', 'assistant', 'Sub or main one', NULL, NULL, NULL, NULL, 1795061707.1630523, NULL, 'stop', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (7, '20261119_041505_9880ad', 'assistant', 'two', NULL, NULL, NULL, NULL, 1795061707.1979434, NULL, 'stop', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (8, '20261119_041447_5d43bc', 'user', 'And then?', NULL, NULL, NULL, NULL, 1795061727.6040819, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (9, '20261119_041447_5d43bc', 'assistant', 'three', NULL, NULL, NULL, NULL, 1795061729.4397202, NULL, 'stop', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
CREATE TABLE session_model_usage (
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    model TEXT NOT NULL,
    billing_provider TEXT NOT NULL DEFAULT '',
    billing_base_url TEXT NOT NULL DEFAULT '',
    billing_mode TEXT NOT NULL DEFAULT '',
    task TEXT NOT NULL DEFAULT '',
    api_call_count INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens INTEGER NOT NULL DEFAULT 0,
    estimated_cost_usd REAL NOT NULL DEFAULT 0,
    actual_cost_usd REAL NOT NULL DEFAULT 0,
    cost_status TEXT,
    cost_source TEXT,
    first_seen REAL,
    last_seen REAL,
    PRIMARY KEY (session_id, model, billing_provider, billing_base_url, billing_mode, task)
);
INSERT INTO session_model_usage VALUES ('20261119_041447_5d43bc', 'gpt-fake-1', 'custom', 'http://127.0.0.1:8000/v1', '', '', 3, 720, 70, 180, 0, 0, 0.0, 0.0, 'unknown', 'none', 1795061704.0489573, 1795061729.435723);
INSERT INTO session_model_usage VALUES ('20261119_041505_9880ad', 'gpt-fake-1', 'custom', 'http://127.0.0.1:8000/v1', '', '', 1, 300, 30, 70, 0, 0, 0.0, 0.0, 'unknown', 'none', 1795061707.1913197, 1795061707.1913197);
