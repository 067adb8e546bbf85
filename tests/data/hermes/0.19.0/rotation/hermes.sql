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
INSERT INTO sessions VALUES ('20261119_042051_7e3b93', 'cli', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 'gpt-fake-1', '{"max_iterations": 90, "reasoning_config": null, "max_tokens": null}', '[vendor text removed: 13238 characters]', NULL, 1795062063.033834, 1795062105.3971424, 'compression', 17, 2, 145000, 30010, 200, 0, 0, '/home/user/project', NULL, NULL, 'custom', 'http://127.0.0.1:8000/v1', NULL, 0.0, NULL, 'unknown', 'none', NULL, NULL, 4, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, 0);
INSERT INTO sessions VALUES ('20261119_042145_584b83', 'cli', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 'gpt-fake-1', '{"max_iterations": 90, "reasoning_config": null, "max_tokens": null}', '[vendor text removed: 13238 characters]', '20261119_042051_7e3b93', 1795062105.412936, NULL, NULL, 8, 0, 22100, 24, 100, 0, 0, '/home/user/project', NULL, NULL, 'custom', 'http://127.0.0.1:8000/v1', NULL, 0.0, NULL, 'unknown', 'none', NULL, NULL, 2, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, 0);
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
INSERT INTO messages VALUES (1, '20261119_042051_7e3b93', 'user', 'Begin', NULL, NULL, NULL, NULL, 1795062063.0355842, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (2, '20261119_042051_7e3b93', 'assistant', 'Reading.', NULL, '[{"id": "call_0hOSU7ZMQEE5dlhnax8S0y", "call_id": "call_0hOSU7ZMQEE5dlhnax8S0y", "response_item_id": "fc_0hOSU7ZMQEE5dlhnax8S0y", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\":\"ls\"}"}}]', NULL, NULL, 1795062063.329805, NULL, 'tool_calls', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (3, '20261119_042051_7e3b93', 'tool', '{"output": "README.md\nhello.py", "exit_code": 0, "error": null}', 'call_0hOSU7ZMQEE5dlhnax8S0y', NULL, 'terminal', NULL, 1795062063.3904295, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (4, '20261119_042051_7e3b93', 'assistant', 'One x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z ...[elided 53843 chars sha256:1ac998f1536bf4a3]', NULL, NULL, NULL, NULL, 1795062063.5111532, NULL, 'stop', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (5, '20261119_042051_7e3b93', 'user', 'More', NULL, NULL, NULL, NULL, 1795062075.065937, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (6, '20261119_042051_7e3b93', 'assistant', 'Two x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z ...[elided 53843 chars sha256:9e80b35e2d5e3c46]', NULL, NULL, NULL, NULL, 1795062076.1705592, NULL, 'stop', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (7, '20261119_042051_7e3b93', 'user', 'More again', NULL, NULL, NULL, NULL, 1795062088.2856386, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (8, '20261119_042051_7e3b93', 'assistant', 'Three x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y ...[elided 53845 chars sha256:777a28cf48a70e59]', NULL, NULL, NULL, NULL, 1795062089.6875927, NULL, 'stop', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (9, '20261119_042051_7e3b93', 'user', 'Begin', NULL, NULL, NULL, NULL, 1795062063.0355842, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (10, '20261119_042051_7e3b93', 'assistant', 'Reading.', NULL, '[{"id": "call_0hOSU7ZMQEE5dlhnax8S0y", "call_id": "call_0hOSU7ZMQEE5dlhnax8S0y", "response_item_id": "fc_0hOSU7ZMQEE5dlhnax8S0y", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\":\"ls\"}"}}]', NULL, NULL, 1795062063.329805, NULL, 'tool_calls', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (11, '20261119_042051_7e3b93', 'tool', '{"output": "README.md\nhello.py", "exit_code": 0, "error": null}', 'call_0hOSU7ZMQEE5dlhnax8S0y', NULL, 'terminal', NULL, 1795062063.3904295, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (12, '20261119_042051_7e3b93', 'assistant', 'One x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z ...[elided 53843 chars sha256:1ac998f1536bf4a3]', NULL, NULL, NULL, NULL, 1795062063.5111532, NULL, 'stop', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (13, '20261119_042051_7e3b93', 'user', 'More', NULL, NULL, NULL, NULL, 1795062075.065937, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (14, '20261119_042051_7e3b93', 'assistant', 'Two x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z ...[elided 53843 chars sha256:9e80b35e2d5e3c46]', NULL, NULL, NULL, NULL, 1795062076.1705592, NULL, 'stop', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (15, '20261119_042051_7e3b93', 'user', 'More again', NULL, NULL, NULL, NULL, 1795062088.2856386, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (16, '20261119_042051_7e3b93', 'assistant', 'Three x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y ...[elided 53845 chars sha256:777a28cf48a70e59]', NULL, NULL, NULL, NULL, 1795062089.6875927, NULL, 'stop', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (17, '20261119_042051_7e3b93', 'user', 'And now?', NULL, NULL, NULL, NULL, 1795062105.3927586, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (18, '20261119_042145_584b83', 'user', 'Begin', NULL, NULL, NULL, NULL, 1795062063.0355842, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (19, '20261119_042145_584b83', 'assistant', '[CONTEXT COMPACTION — REFERENCE ONLY] [vendor text removed: 1594 characters]
## Historical Task Snapshot
User asked (deterministic, from compacted turns): ''More''
Historical only; newer protected-tail messages after this summary win.

## Goal
A summary of it.

[vendor text removed: 84 characters]', NULL, NULL, NULL, NULL, 1795062105.4402096, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (20, '20261119_042145_584b83', 'user', 'More again', NULL, NULL, NULL, NULL, 1795062088.2856386, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (21, '20261119_042145_584b83', 'assistant', 'Three x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y ...[elided 53845 chars sha256:777a28cf48a70e59]', NULL, NULL, NULL, NULL, 1795062089.6875927, NULL, 'stop', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (22, '20261119_042145_584b83', 'user', 'And now?', NULL, NULL, NULL, NULL, 1795062105.4402125, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (23, '20261119_042145_584b83', 'assistant', 'Four.', NULL, NULL, NULL, NULL, 1795062105.7250953, NULL, 'stop', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (24, '20261119_042145_584b83', 'user', 'Last', NULL, NULL, NULL, NULL, 1795062118.2866192, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (25, '20261119_042145_584b83', 'assistant', 'Five.', NULL, NULL, NULL, NULL, 1795062119.5594625, NULL, 'stop', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
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
INSERT INTO session_model_usage VALUES ('20261119_042051_7e3b93', 'gpt-fake-1', 'custom', 'http://127.0.0.1:8000/v1', '', '', 4, 145000, 30010, 200, 0, 0, 0.0, 0.0, 'unknown', 'none', 1795062063.3269844, 1795062089.6588247);
INSERT INTO session_model_usage VALUES ('20261119_042051_7e3b93', 'gpt-fake-1', 'auto', 'http://127.0.0.1:8000/v1/', '', 'compression', 1, 900, 90, 5, 0, 0, 0.0, 0.0, NULL, NULL, 1795062105.3008363, 1795062105.3008363);
INSERT INTO session_model_usage VALUES ('20261119_042145_584b83', 'gpt-fake-1', 'custom', 'http://127.0.0.1:8000/v1', '', '', 2, 22100, 24, 100, 0, 0, 0.0, 0.0, 'unknown', 'none', 1795062105.7169735, 1795062119.5467052);
