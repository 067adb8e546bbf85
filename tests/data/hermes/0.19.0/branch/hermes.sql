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
INSERT INTO sessions VALUES ('20261119_042732_7ed44f', 'cli', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 'gpt-fake-1', '{"max_iterations": 90, "reasoning_config": null, "max_tokens": null}', '[vendor text removed: 13238 characters]', NULL, 1795062477.90202, 1795062488.1851075, 'branched', 4, 1, 210, 21, 100, 0, 0, '/home/user/project', NULL, NULL, 'custom', 'http://127.0.0.1:8000/v1', NULL, 0.0, NULL, 'unknown', 'none', NULL, 'A short title', 2, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, 0);
INSERT INTO sessions VALUES ('20261119_042808_7208cb', 'cli', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 'gpt-fake-1', '{"max_iterations": 90, "reasoning_config": null, "_branched_from": "20261119_042732_7ed44f"}', '[vendor text removed: 13238 characters]', '20261119_042732_7ed44f', 1795062488.1945632, 1795062535.0052328, 'cli_close', 8, 1, 250, 25, 100, 0, 0, NULL, NULL, NULL, 'custom', 'http://127.0.0.1:8000/v1', NULL, 0.0, NULL, 'unknown', 'none', NULL, 'A short title #2', 2, NULL, NULL, NULL, NULL, NULL, 0, NULL, 1, 0);
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
INSERT INTO messages VALUES (1, '20261119_042732_7ed44f', 'user', 'First question', NULL, NULL, NULL, NULL, 1795062477.9406092, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (2, '20261119_042732_7ed44f', 'assistant', 'Looking.', NULL, '[{"id": "call_YcnZ8EWmKuq7mSyJWRmH2C", "call_id": "call_YcnZ8EWmKuq7mSyJWRmH2C", "response_item_id": "fc_YcnZ8EWmKuq7mSyJWRmH2C", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\":\"ls -1\"}"}}]', NULL, NULL, 1795062478.5921452, NULL, 'tool_calls', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (3, '20261119_042732_7ed44f', 'tool', '{"output": "README.md\nhello.py", "exit_code": 0, "error": null}', 'call_YcnZ8EWmKuq7mSyJWRmH2C', NULL, 'terminal', NULL, 1795062478.7528646, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (4, '20261119_042732_7ed44f', 'assistant', 'One.', NULL, NULL, NULL, NULL, 1795062479.3328428, NULL, 'stop', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (5, '20261119_042808_7208cb', 'user', 'First question', NULL, NULL, NULL, NULL, 1795062488.1953585, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (6, '20261119_042808_7208cb', 'assistant', 'Looking.', NULL, '[{"id": "call_YcnZ8EWmKuq7mSyJWRmH2C", "call_id": "call_YcnZ8EWmKuq7mSyJWRmH2C", "response_item_id": "fc_YcnZ8EWmKuq7mSyJWRmH2C", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\":\"ls -1\"}"}}]', NULL, NULL, 1795062488.1986992, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (7, '20261119_042808_7208cb', 'tool', '{"output": "README.md\nhello.py", "exit_code": 0, "error": null}', 'call_YcnZ8EWmKuq7mSyJWRmH2C', NULL, 'terminal', NULL, 1795062488.2260268, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (8, '20261119_042808_7208cb', 'assistant', 'One.', NULL, NULL, NULL, NULL, 1795062488.2310407, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (9, '20261119_042808_7208cb', 'user', 'Second question', NULL, NULL, NULL, NULL, 1795062496.882556, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL);
INSERT INTO messages VALUES (10, '20261119_042808_7208cb', 'assistant', 'Two.', NULL, NULL, NULL, NULL, 1795062497.2776783, NULL, 'stop', NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL);
INSERT INTO messages VALUES (11, '20261119_042808_7208cb', 'user', 'Second question/quit', NULL, NULL, NULL, NULL, 1795062524.6381304, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (12, '20261119_042808_7208cb', 'assistant', 'Three.', NULL, NULL, NULL, NULL, 1795062524.8936007, NULL, 'stop', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
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
INSERT INTO session_model_usage VALUES ('20261119_042732_7ed44f', 'gpt-fake-1', 'custom', 'http://127.0.0.1:8000/v1', '', '', 2, 210, 21, 100, 0, 0, 0.0, 0.0, 'unknown', 'none', 1795062478.5766904, 1795062479.329721);
INSERT INTO session_model_usage VALUES ('20261119_042732_7ed44f', 'gpt-fake-1', 'auto', 'http://127.0.0.1:8000/v1/', '', 'title_generation', 1, 50, 5, 10, 0, 0, 0.0, 0.0, NULL, NULL, 1795062479.9170134, 1795062479.9170134);
INSERT INTO session_model_usage VALUES ('20261119_042808_7208cb', 'gpt-fake-1', 'custom', 'http://127.0.0.1:8000/v1', '', '', 2, 250, 25, 100, 0, 0, 0.0, 0.0, 'unknown', 'none', 1795062497.2741833, 1795062524.8829286);
