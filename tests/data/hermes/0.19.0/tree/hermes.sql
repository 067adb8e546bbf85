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
INSERT INTO sessions VALUES ('20261119_041739_b0b064', 'cli', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 'gpt-fake-1', '{"max_iterations": 90, "reasoning_config": null, "max_tokens": null}', '[vendor text removed: 13238 characters]', NULL, 1795061860.503846, NULL, NULL, 9, 3, 910, 90, 250, 0, 0, '/home/user/project', NULL, NULL, 'custom', 'http://127.0.0.1:8000/v1', NULL, 0.0, NULL, 'unknown', 'none', NULL, NULL, 4, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, 0);
INSERT INTO sessions VALUES ('20261119_041742_ad4c41', 'subagent', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 'gpt-fake-1', '{"max_iterations": 50, "reasoning_config": null, "max_tokens": null, "_delegate_from": "20261119_041739_b0b064"}', '[vendor text removed: 7856 characters]', '20261119_041739_b0b064', 1795061862.5519722, 1795061863.3842034, 'agent_close', 4, 1, 74, 7, 30, 0, 0, NULL, NULL, NULL, 'custom', 'http://127.0.0.1:8000/v1', NULL, 0.0, NULL, 'unknown', 'none', NULL, NULL, 2, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, 0);
INSERT INTO sessions VALUES ('20261119_041741_8ec8ab', 'subagent', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 'gpt-fake-1', '{"max_iterations": 50, "reasoning_config": null, "max_tokens": null, "_delegate_from": "20261119_041739_b0b064"}', '[vendor text removed: 7856 characters]', '20261119_041739_b0b064', 1795061862.560324, 1795061863.3808248, 'agent_close', 4, 1, 72, 7, 30, 0, 0, NULL, NULL, NULL, 'custom', 'http://127.0.0.1:8000/v1', NULL, 0.0, NULL, 'unknown', 'none', NULL, NULL, 2, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, 0);
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
INSERT INTO messages VALUES (1, '20261119_041739_b0b064', 'user', 'How long are the files?', NULL, NULL, NULL, NULL, 1795061860.5100935, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (2, '20261119_041739_b0b064', 'assistant', 'I will ask.', NULL, '[{"id": "call_AdyMupOwFLwZsiwoiNylTa", "call_id": "call_AdyMupOwFLwZsiwoiNylTa", "response_item_id": "fc_AdyMupOwFLwZsiwoiNylTa", "type": "function", "function": {"name": "delegate_task", "arguments": "{\"tasks\":[{\"goal\":\"Count the lines of file 1\"},{\"goal\":\"Count the lines of file 2\"}]}"}}, {"id": "call_pLbfZdjat79rv2EhKKB7Dj", "call_id": "call_pLbfZdjat79rv2EhKKB7Dj", "response_item_id": "fc_pLbfZdjat79rv2EhKKB7Dj", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\":\"sleep 6\"}"}}]', NULL, NULL, 1795061861.3330247, NULL, 'tool_calls', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (3, '20261119_041742_ad4c41', 'user', 'Count the lines of file 2', NULL, NULL, NULL, NULL, 1795061862.561168, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (4, '20261119_041741_8ec8ab', 'user', 'Count the lines of file 1', NULL, NULL, NULL, NULL, 1795061862.5615454, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (5, '20261119_041741_8ec8ab', 'assistant', 'Counting.', NULL, '[{"id": "call_8DDemfh0Za4r7IoCjfwkwG", "call_id": "call_8DDemfh0Za4r7IoCjfwkwG", "response_item_id": "fc_8DDemfh0Za4r7IoCjfwkwG", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\":\"wc -l hello.py\"}"}}]', NULL, NULL, 1795061862.9575417, NULL, 'tool_calls', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (6, '20261119_041742_ad4c41', 'assistant', 'Counting.', NULL, '[{"id": "call_ZGAfDJ1XiTdvmv6oDsgx7a", "call_id": "call_ZGAfDJ1XiTdvmv6oDsgx7a", "response_item_id": "fc_ZGAfDJ1XiTdvmv6oDsgx7a", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\":\"exit 1\"}"}}]', NULL, NULL, 1795061862.9777265, NULL, 'tool_calls', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (7, '20261119_041742_ad4c41', 'tool', '{"output": "", "exit_code": 1, "error": null}', 'call_ZGAfDJ1XiTdvmv6oDsgx7a', NULL, 'terminal', NULL, 1795061863.0184555, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (8, '20261119_041741_8ec8ab', 'tool', '{"output": "2 hello.py", "exit_code": 0, "error": null}', 'call_8DDemfh0Za4r7IoCjfwkwG', NULL, 'terminal', NULL, 1795061863.0299027, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (9, '20261119_041741_8ec8ab', 'assistant', 'Two lines (1).', NULL, NULL, NULL, NULL, 1795061863.3732414, NULL, 'stop', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (10, '20261119_041742_ad4c41', 'assistant', 'Two lines (2).', NULL, NULL, NULL, NULL, 1795061863.3798182, NULL, 'stop', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (11, '20261119_041739_b0b064', 'tool', '{"results": [{"task_index": 0, "status": "completed", "summary": "Two lines (1).", "api_calls": 2, "duration_seconds": 0.83, "model": "gpt-fake-1", "exit_reason": "completed", "tokens": {"input": 102, "output": 7}, "tool_trace": [{"tool": "terminal", "args_bytes": 28, "result_bytes": 55, "status": "ok"}], "live_transcript": "/home/user/.hermes/cache/delegation/live/deleg_7951fb46/task-0.log"}, {"task_index": 1, "status": "completed", "summary": "Two lines (2).", "api_calls": 2, "duration_seconds": 0.84, "model": "gpt-fake-1", "exit_reason": "completed", "tokens": {"input": 104, "output": 7}, "tool_trace": [{"tool": "terminal", "args_bytes": 20, "result_bytes": 45, "status": "ok"}], "live_transcript": "/home/user/.hermes/cache/delegation/live/deleg_7951fb46/task-1.log"}], "total_duration_seconds": 2.04, "live_transcripts": ["/home/user/.hermes/cache/delegation/live/deleg_7951fb46/task-0.log", "/home/user/.hermes/cache/delegation/live/deleg_7951fb46/task-1.log"], "note": "background=true is not available in this session — it cannot receive a detached subagent result after the turn ends (a one-shot runner such as `hermes -z` or a cron job, or a stateless HTTP endpoint). The subagent(s) ran SYNCHRONOUSLY and the result is included above."}', 'call_AdyMupOwFLwZsiwoiNylTa', NULL, 'delegate_task', NULL, 1795061863.3889039, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (12, '20261119_041739_b0b064', 'tool', '{"output": "", "exit_code": 0, "error": null}', 'call_pLbfZdjat79rv2EhKKB7Dj', NULL, 'terminal', NULL, 1795061870.5911462, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (13, '20261119_041739_b0b064', 'assistant', '', NULL, '[{"id": "call_sZJgOEM2qpPF9gEhrk1kOd", "call_id": "call_sZJgOEM2qpPF9gEhrk1kOd", "response_item_id": "fc_sZJgOEM2qpPF9gEhrk1kOd", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\":\"sleep 6; ls\"}"}}]', NULL, NULL, 1795061870.7438004, NULL, 'tool_calls', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (14, '20261119_041739_b0b064', 'tool', '{"output": "README.md\nhello.py", "exit_code": 0, "error": null}', 'call_sZJgOEM2qpPF9gEhrk1kOd', NULL, 'terminal', NULL, 1795061876.92669, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (15, '20261119_041739_b0b064', 'assistant', 'They run.', NULL, NULL, NULL, NULL, 1795061877.1297913, NULL, 'stop', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (16, '20261119_041739_b0b064', 'user', 'Sure?', NULL, NULL, NULL, NULL, 1795061888.9057052, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (17, '20261119_041739_b0b064', 'assistant', 'Both have two.', NULL, NULL, NULL, NULL, 1795061889.5641031, NULL, 'stop', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
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
INSERT INTO session_model_usage VALUES ('20261119_041739_b0b064', 'gpt-fake-1', 'custom', 'http://127.0.0.1:8000/v1', '', '', 4, 910, 90, 250, 0, 0, 0.0, 0.0, 'unknown', 'none', 1795061861.3290448, 1795061889.5548503);
INSERT INTO session_model_usage VALUES ('20261119_041741_8ec8ab', 'gpt-fake-1', 'custom', 'http://127.0.0.1:8000/v1', '', '', 2, 72, 7, 30, 0, 0, 0.0, 0.0, 'unknown', 'none', 1795061862.9448898, 1795061863.3645988);
INSERT INTO session_model_usage VALUES ('20261119_041742_ad4c41', 'gpt-fake-1', 'custom', 'http://127.0.0.1:8000/v1', '', '', 2, 74, 7, 30, 0, 0, 0.0, 0.0, 'unknown', 'none', 1795061862.9755614, 1795061863.3786716);
