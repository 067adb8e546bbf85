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
INSERT INTO sessions VALUES ('20261119_041647_07bd45', 'cli', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 'gpt-fake-1', '{"max_iterations": 90, "reasoning_config": null, "max_tokens": null}', '[vendor text removed: 13238 characters]', NULL, 1795061809.0033767, NULL, NULL, 18, 10, 1510, 140, 370, 0, 0, '/home/user/project', NULL, NULL, 'custom', 'http://127.0.0.1:8000/v1', NULL, 0.0, NULL, 'unknown', 'none', NULL, NULL, 6, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, 0);
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
INSERT INTO messages VALUES (1, '20261119_041647_07bd45', 'user', 'List the files', NULL, NULL, NULL, NULL, 1795061809.004845, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (2, '20261119_041647_07bd45', 'assistant', 'I will look.', NULL, '[{"id": "call_hemB01Re9K8J3ItOCGZce5", "call_id": "call_hemB01Re9K8J3ItOCGZce5", "response_item_id": "fc_hemB01Re9K8J3ItOCGZce5", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\":\"ls -1; exit 3\"}"}}, {"id": "call_MsjjDXjNg9VZAvm9ZtSRJk", "call_id": "call_MsjjDXjNg9VZAvm9ZtSRJk", "response_item_id": "fc_MsjjDXjNg9VZAvm9ZtSRJk", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"/home/user/project/hello.py\"}"}}]', NULL, NULL, 1795061809.9459682, NULL, 'tool_calls', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (3, '20261119_041647_07bd45', 'tool', '{"output": "README.md\nhello.py", "exit_code": 3, "error": null}', 'call_hemB01Re9K8J3ItOCGZce5', NULL, 'terminal', NULL, 1795061810.0752604, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (4, '20261119_041647_07bd45', 'tool', '{"content": "1|def greet(name):\n2|    return \"Hello, \" + name\n3|", "total_lines": 2, "file_size": 45, "truncated": false, "is_binary": false, "is_image": false}', 'call_MsjjDXjNg9VZAvm9ZtSRJk', NULL, 'read_file', NULL, 1795061811.163999, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (5, '20261119_041647_07bd45', 'assistant', '', NULL, '[{"id": "call_Ilw6XjdRrOASUBugXJB2yN", "call_id": "call_Ilw6XjdRrOASUBugXJB2yN", "response_item_id": "fc_Ilw6XjdRrOASUBugXJB2yN", "type": "function", "function": {"name": "write_file", "arguments": "{\"path\":\"/home/user/project/new.txt\",\"content\":\"one\u2028two\\n\"}"}}, {"id": "call_R8jfD19PyF9YOU7n81Y1eW", "call_id": "call_R8jfD19PyF9YOU7n81Y1eW", "response_item_id": "fc_R8jfD19PyF9YOU7n81Y1eW", "type": "function", "function": {"name": "patch", "arguments": "{\"path\":\"/home/user/project/hello.py\",\"old_string\":\"nowhere\",\"new_string\":\"x\"}"}}, {"id": "call_ol3dgfAJzs5PSpHCfFL6ut", "call_id": "call_ol3dgfAJzs5PSpHCfFL6ut", "response_item_id": "fc_ol3dgfAJzs5PSpHCfFL6ut", "type": "function", "function": {"name": "search_files", "arguments": "{\"pattern\":\"greet\",\"path\":\".\"}"}}]', NULL, NULL, 1795061811.405965, NULL, 'tool_calls', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (6, '20261119_041647_07bd45', 'tool', '{"bytes_written": 10, "dirs_created": true, "lint": {"status": "skipped", "message": "No linter for .txt files"}, "resolved_path": "/home/user/project/new.txt", "files_modified": ["/home/user/project/new.txt"]}', 'call_Ilw6XjdRrOASUBugXJB2yN', NULL, 'write_file', NULL, 1795061811.615054, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (7, '20261119_041647_07bd45', 'tool', '{"success": false, "error": "Could not find a match for old_string in the file", "_hint": "old_string not found. Use read_file to verify the current content, or search_files to locate the text."}', 'call_R8jfD19PyF9YOU7n81Y1eW', NULL, 'patch', NULL, 1795061811.619103, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (8, '20261119_041647_07bd45', 'tool', '{"total_count": 0}', 'call_ol3dgfAJzs5PSpHCfFL6ut', NULL, 'search_files', NULL, 1795061811.622541, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (9, '20261119_041647_07bd45', 'assistant', '', NULL, '[{"id": "call_ayJ1JFGmt3udAnt0NvBZEI", "call_id": "call_ayJ1JFGmt3udAnt0NvBZEI", "response_item_id": "fc_ayJ1JFGmt3udAnt0NvBZEI", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"/home/user/project/missing.txt\"}"}}, {"id": "call_JLXWen2C1Cw1YG1WobeJJb", "call_id": "call_JLXWen2C1Cw1YG1WobeJJb", "response_item_id": "fc_JLXWen2C1Cw1YG1WobeJJb", "type": "function", "function": {"name": "no_such_tool", "arguments": "{\"x\":1}"}}, {"id": "call_jkpZbZpFczz5Un2ib3pt0x", "call_id": "call_jkpZbZpFczz5Un2ib3pt0x", "response_item_id": "fc_jkpZbZpFczz5Un2ib3pt0x", "type": "function", "function": {"name": "todo", "arguments": "{\"todos\":[{\"id\":\"1\",\"content\":\"a\",\"status\":\"pending\"}]}"}}]', NULL, NULL, 1795061811.9215608, NULL, 'tool_calls', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (10, '20261119_041647_07bd45', 'tool', 'Tool ''no_such_tool'' does not exist. Available tools: browser_back, browser_click, browser_console, browser_get_images, browser_navigate, browser_press, browser_scroll, browser_snapshot, browser_type, browser_vision, clarify, delegate_task, execute_code, memory, patch, process, read_file, search_files, session_search, skill_manage, skill_view, skills_list, terminal, todo, vision_analyze, write_file', 'call_JLXWen2C1Cw1YG1WobeJJb', NULL, NULL, NULL, 1795061811.9249668, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (11, '20261119_041647_07bd45', 'tool', '{"content": "", "total_lines": 0, "file_size": 0, "truncated": false, "is_binary": false, "is_image": false, "error": "File not found: /home/user/project/missing.txt"}', 'call_ayJ1JFGmt3udAnt0NvBZEI', NULL, 'read_file', NULL, 1795061811.9845512, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (12, '20261119_041647_07bd45', 'tool', '{"todos": [{"id": "1", "content": "a", "status": "pending"}], "summary": {"total": 1, "pending": 1, "in_progress": 0, "completed": 0, "cancelled": 0}}', 'call_jkpZbZpFczz5Un2ib3pt0x', NULL, 'todo', NULL, 1795061812.9893196, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (13, '20261119_041647_07bd45', 'assistant', '', NULL, '[{"id": "call_56U0NHW5JnaUfcNN8TN2QZ", "call_id": "call_56U0NHW5JnaUfcNN8TN2QZ", "response_item_id": "fc_56U0NHW5JnaUfcNN8TN2QZ", "type": "function", "function": {"name": "patch", "arguments": "{\"path\":\"/home/user/project/hello.py\",\"old_string\":\"greet\",\"new_string\":\"hail\"}"}}, {"id": "call_Kr5XYxUnojkH7dJMf70ohO", "call_id": "call_Kr5XYxUnojkH7dJMf70ohO", "response_item_id": "fc_Kr5XYxUnojkH7dJMf70ohO", "type": "function", "function": {"name": "execute_code", "arguments": "{\"code\":\"print(1)\"}"}}]', NULL, NULL, 1795061813.2375429, NULL, 'tool_calls', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (14, '20261119_041647_07bd45', 'tool', '{"success": true, "diff": "--- a//home/user/project/hello.py\n+++ b//home/user/project/hello.py\n@@ -1,2 +1,2 @@\n-def greet(name):\n+def hail(name):\n     return \"Hello, \" + name\n", "files_modified": ["/home/user/project/hello.py"], "lint": {"status": "ok", "output": ""}, "resolved_path": "/home/user/project/hello.py"}', 'call_56U0NHW5JnaUfcNN8TN2QZ', NULL, 'patch', NULL, 1795061821.5116305, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (15, '20261119_041647_07bd45', 'tool', '{"status": "success", "output": "1\n", "exit_code": 0, "tool_calls_made": 0, "duration_seconds": 0.09, "stdout_truncated": false, "stdout_bytes_captured": 2, "stdout_bytes_total": 2, "stdout_bytes_omitted": 0}', 'call_Kr5XYxUnojkH7dJMf70ohO', NULL, 'execute_code', NULL, 1795061822.720917, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (16, '20261119_041647_07bd45', 'assistant', 'Done here.', NULL, NULL, NULL, NULL, 1795061822.9985857, NULL, 'verification_required', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (17, '20261119_041647_07bd45', 'assistant', 'hail', NULL, NULL, NULL, NULL, 1795061823.9585383, NULL, 'verification_required', NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
INSERT INTO messages VALUES (18, '20261119_041647_07bd45', 'user', 'And then?', NULL, NULL, NULL, NULL, 1795061840.635867, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, 0, NULL);
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
INSERT INTO session_model_usage VALUES ('20261119_041647_07bd45', 'gpt-fake-1', 'custom', 'http://127.0.0.1:8000/v1', '', '', 6, 1510, 140, 370, 0, 0, 0.0, 0.0, 'unknown', 'none', 1795061809.9410055, 1795061823.9445064);
