CREATE TABLE schema_meta (
  meta_key TEXT NOT NULL PRIMARY KEY,
  role TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  agent_id TEXT,
  app_version TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
INSERT INTO schema_meta VALUES ('primary', 'agent', 23, 'main', '2026.9.6', 1795062514862, 1795062514862);
CREATE TABLE session_nodes (
  session_key TEXT NOT NULL PRIMARY KEY,
  current_session_id TEXT NOT NULL,
  entry_json TEXT NOT NULL,
  legacy_acp_migration_json TEXT,
  entry_valid INTEGER NOT NULL DEFAULT 0 CHECK (entry_valid IN (-1, 0, 1)),
  updated_at INTEGER NOT NULL,
  status TEXT CHECK (status IS NULL OR status IN ('running', 'done', 'failed', 'killed', 'timeout')),
  created_at INTEGER,
  created_via TEXT CHECK (created_via IS NULL OR created_via IN ('operator', 'spawn', 'channel', 'cron', 'talk', 'run', 'plugin', 'internal')),
  created_actor_type TEXT CHECK (created_actor_type IS NULL OR created_actor_type IN ('human', 'agent', 'system')),
  created_actor_id TEXT,
  owner_actor_type TEXT,
  owner_actor_id TEXT,
  owner_assigned_by_type TEXT,
  owner_assigned_by_id TEXT,
  owner_assigned_at INTEGER,
  project_id TEXT,
  parent_session_key TEXT,
  spawned_by TEXT,
  fork_source_session_key TEXT,
  fork_source_session_id TEXT,
  fork_source_entry_id TEXT,
  label TEXT,
  display_name TEXT,
  category TEXT,
  icon TEXT,
  pinned_at INTEGER,
  archived_at INTEGER,
  last_read_at INTEGER,
  last_interaction_at INTEGER,
  last_activity_at INTEGER
) STRICT;
INSERT INTO session_nodes VALUES ('agent:main:main', '5ca39319-f54e-425c-a533-53495f72fea6', '{"sessionId":"5ca39319-f54e-425c-a533-53495f72fea6","updatedAt":1795062526170,"sessionStartedAt":1795062515321,"delivery":{"kind":"none"},"lastInteractionAt":1795062526169,"activeWriterRunId":"07514c6e-b42e-40f1-9507-0b3098022226","model":"claude-fake-1","modelProvider":"fake","abortedLastRun":false,"lastActivityAt":1795062526169,"contextTokens":100000,"contextTokensSource":"resolved","agentHarnessId":"openclaw","contextBudgetStatus":{"schemaVersion":1,"source":"pre-prompt-estimate","updatedAt":1795062524238,"provider":"fake","model":"claude-fake-1","route":"fits","shouldCompact":false,"estimatedPromptTokens":18714,"contextTokenBudget":100000,"promptBudgetBeforeReserve":80000,"reserveTokens":20000,"effectiveReserveTokens":20000,"remainingPromptBudgetTokens":61286,"overflowTokens":0,"toolResultReducibleChars":0,"messageCount":0,"unwindowedMessageCount":0,"sessionId":"5ca39319-f54e-425c-a533-53495f72fea6"},"inputTokens":400,"outputTokens":40,"cacheRead":120,"cacheWrite":35,"estimatedCostUsd":0.000492,"totalTokens":375,"totalTokensFresh":true,"totalTokensVersion":1}', NULL, 1, 1795062526170, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795062526169, 1795062526169);
INSERT INTO session_nodes VALUES ('agent:main:explicit:11111111-2222-4333-8444-555555555555', '11111111-2222-4333-8444-555555555555', '{"sessionId":"11111111-2222-4333-8444-555555555555","updatedAt":1795062555689,"sessionStartedAt":1795062540617,"delivery":{"kind":"none"},"lastInteractionAt":1795062555688,"activeWriterRunId":"066500ba-2d93-403d-b32c-0115164ab4c6","model":"claude-fake-1","modelProvider":"fake","abortedLastRun":false,"lastActivityAt":1795062555688,"contextTokens":100000,"contextTokensSource":"resolved","agentHarnessId":"openclaw","contextBudgetStatus":{"schemaVersion":1,"source":"pre-prompt-estimate","updatedAt":1795062554796,"provider":"fake","model":"claude-fake-1","route":"fits","shouldCompact":false,"estimatedPromptTokens":18304,"contextTokenBudget":100000,"promptBudgetBeforeReserve":80000,"reserveTokens":20000,"effectiveReserveTokens":20000,"remainingPromptBudgetTokens":61696,"overflowTokens":0,"toolResultReducibleChars":0,"messageCount":0,"unwindowedMessageCount":0,"sessionId":"11111111-2222-4333-8444-555555555555"},"inputTokens":310,"outputTokens":30,"cacheRead":70,"cacheWrite":5,"estimatedCostUsd":0.000377,"totalTokens":385,"totalTokensFresh":true,"totalTokensVersion":1}', NULL, 1, 1795062555689, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795062555688, 1795062555688);
CREATE TABLE session_windows (
  session_id TEXT NOT NULL PRIMARY KEY,
  session_key TEXT NOT NULL,
  previous_session_id TEXT,
  reason TEXT CHECK (reason IS NULL OR reason IN ('initial', 'reset', 'rollover', 'fork', 'rewind', 'switch', 'recovery', 'compaction')),
  session_scope TEXT NOT NULL DEFAULT 'conversation' CHECK (session_scope IN ('conversation', 'shared-main', 'group', 'channel')),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  transcript_updated_at INTEGER DEFAULT NULL,
  transcript_observed_at INTEGER DEFAULT NULL,
  session_entry_provenance INTEGER NOT NULL DEFAULT 0 CHECK (session_entry_provenance IN (0, 1)),
  acp_owned INTEGER NOT NULL DEFAULT 0 CHECK (acp_owned IN (0, 1)),
  plugin_owner_id TEXT,
  hook_external_content_source TEXT CHECK (hook_external_content_source IS NULL OR hook_external_content_source IN ('gmail', 'webhook')),
  started_at INTEGER,
  ended_at INTEGER,
  status TEXT CHECK (status IS NULL OR status IN ('running', 'done', 'failed', 'killed', 'timeout')),
  chat_type TEXT CHECK (chat_type IS NULL OR chat_type IN ('direct', 'group', 'channel')),
  channel TEXT,
  account_id TEXT,
  primary_conversation_id TEXT,
  model_provider TEXT,
  model TEXT,
  agent_harness_id TEXT,
  parent_session_key TEXT,
  spawned_by TEXT,
  display_name TEXT
) STRICT;
INSERT INTO session_windows VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 'agent:main:main', NULL, NULL, 'conversation', 1795062515321, 1795062526170, 1795062526143, 1795062526143, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'fake', 'claude-fake-1', 'openclaw', NULL, NULL, NULL);
INSERT INTO session_windows VALUES ('11111111-2222-4333-8444-555555555555', 'agent:main:explicit:11111111-2222-4333-8444-555555555555', NULL, NULL, 'conversation', 1795062540617, 1795062555689, 1795062555617, 1795062555617, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'fake', 'claude-fake-1', 'openclaw', NULL, NULL, NULL);
CREATE TABLE transcript_events (
  session_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  event_json TEXT,
  created_at INTEGER NOT NULL,
  event_zstd BLOB,
  event_utf8_bytes INTEGER CHECK (event_utf8_bytes IS NULL OR event_utf8_bytes >= 0),
  navigation_json TEXT,
  PRIMARY KEY (session_id, seq),
  CHECK (
    (event_json IS NOT NULL AND event_zstd IS NULL)
    OR (
      event_json IS NULL AND event_zstd IS NOT NULL
      AND event_utf8_bytes IS NOT NULL
      AND event_utf8_bytes BETWEEN 1 AND 4194304
      AND length(event_zstd) BETWEEN 1 AND 4194304
      AND navigation_json IS NOT NULL
    )
  )
) STRICT;
INSERT INTO transcript_events VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 0, '{"type":"session","version":4,"id":"5ca39319-f54e-425c-a533-53495f72fea6","timestamp":"2026-11-19T04:28:43.401Z","cwd":"/home/user/.openclaw/workspace"}', 1795062523401, NULL, 152, NULL);
INSERT INTO transcript_events VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 1, '{"type":"model_change","provider":"fake","modelId":"claude-fake-1","id":"e660f78a-c6ce-4fb9-9b3d-f7ebcf0c39a3","parentId":null,"timestamp":"2026-11-19T04:28:43.430Z"}', 1795062523430, NULL, 166, NULL);
INSERT INTO transcript_events VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 2, '{"type":"thinking_level_change","thinkingLevel":"off","id":"321a9111-3999-4880-9c4e-a9d935d1351a","parentId":"e660f78a-c6ce-4fb9-9b3d-f7ebcf0c39a3","timestamp":"2026-11-19T04:28:44.116Z"}', 1795062524116, NULL, 187, NULL);
INSERT INTO transcript_events VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 3, '{"type":"custom","customType":"model-snapshot","data":{"timestamp":1795062524154,"provider":"fake","modelApi":"anthropic-messages","modelId":"claude-fake-1"},"id":"29bd15af-171d-41b1-a9de-97fbedd18b88","parentId":"321a9111-3999-4880-9c4e-a9d935d1351a","timestamp":"2026-11-19T04:28:44.155Z"}', 1795062524155, NULL, 291, NULL);
INSERT INTO transcript_events VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 4, '{"type":"message","id":"a31d7bcd-5bb9-437f-8cb3-763f7aa65fe9","parentId":"29bd15af-171d-41b1-a9de-97fbedd18b88","timestamp":"2026-11-19T04:28:44.257Z","message":{"role":"user","content":"List","timestamp":1795062515740,"__openclaw":{"senderIsOwner":true},"idempotencyKey":"a79b7999-8d8e-4d01-a147-acd8808f2573:user"}}', 1795062524257, NULL, 317, NULL);
INSERT INTO transcript_events VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 5, '{"type":"message","id":"e87d9669-1ab7-474f-889a-11beb0c11f20","parentId":"a31d7bcd-5bb9-437f-8cb3-763f7aa65fe9","timestamp":"2026-11-19T04:28:44.646Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"Let me see.","thinkingSignature":"c2ln"},{"type":"text","text":"I will look.","textSignature":"{\"v\":1,\"id\":\"commentary-0-61d485618d1f45d180b28394\",\"phase\":\"commentary\"}"},{"type":"toolCall","id":"toolu_01zs3BMWHVqwhhWcIIsijLcD","name":"exec","arguments":{"command":"ls -1 /home/user/project"}}],"api":"anthropic-messages","provider":"fake","model":"claude-fake-1","usage":{"input":100,"output":10,"cacheRead":50,"cacheWrite":30,"totalTokens":190,"cost":{"input":0.0001,"output":0.00002,"cacheRead":0.000005,"cacheWrite":0,"total":0.000125},"cacheWrite1h":0,"contextUsage":{"state":"available","promptTokens":180,"totalTokens":190}},"stopReason":"toolUse","timestamp":1795062524304,"responseId":"msg_01FEC5OR0UZgKEG2uT04VrZP","responseModel":"claude-fake-1","__openclaw":{"runId":"07514c6e-b42e-40f1-9507-0b3098022226"}}}', 1795062524646, NULL, 1053, NULL);
INSERT INTO transcript_events VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 6, '{"type":"message","id":"8bae7550-08f9-4f84-91df-4dbd0bbfe161","parentId":"e87d9669-1ab7-474f-889a-11beb0c11f20","timestamp":"2026-11-19T04:28:45.888Z","message":{"role":"toolResult","toolCallId":"toolu_01zs3BMWHVqwhhWcIIsijLcD","toolName":"exec","content":[{"type":"text","text":"README.md\nhello.py"}],"details":{"status":"completed","exitCode":0,"exitSignal":null,"exitReason":"exit","durationMs":432,"aggregated":"README.md\nhello.py","noOutputTimedOut":false,"cwd":"/home/user/.openclaw/workspace"},"isError":false,"timestamp":1795062525886,"__openclaw":{"runId":"07514c6e-b42e-40f1-9507-0b3098022226"}}}', 1795062525888, NULL, 608, NULL);
INSERT INTO transcript_events VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 7, '{"type":"custom","customType":"openclaw.cache-ttl","data":{"prunedToolResults":[],"ambiguousToolResultBaseKeys":[],"frozenToolResults":[{"key":"tool:toolu_01zs3BMWHVqwhhWcIIsijLcD:1795062525886","sourceHash":"1qFbZV2Qw3elkin61uYBXteErXqgEJFCvbHGmBfmPD8"}]},"id":"5be73e8d-8b46-4f24-8557-9c9c3b486a5e","parentId":"8bae7550-08f9-4f84-91df-4dbd0bbfe161","timestamp":"2026-11-19T04:28:45.927Z"}', 1795062525927, NULL, 390, NULL);
INSERT INTO transcript_events VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 8, '{"type":"message","id":"89840ed6-2483-4493-bce9-57c47644984f","parentId":"5be73e8d-8b46-4f24-8557-9c9c3b486a5e","timestamp":"2026-11-19T04:28:46.079Z","message":{"role":"assistant","content":[{"type":"text","text":"Done."}],"api":"anthropic-messages","provider":"fake","model":"claude-fake-1","usage":{"input":300,"output":30,"cacheRead":70,"cacheWrite":5,"totalTokens":405,"cost":{"input":0.0003,"output":0.00006,"cacheRead":0.000007,"cacheWrite":0,"total":0.000367},"cacheWrite1h":0,"contextUsage":{"state":"available","promptTokens":375,"totalTokens":405}},"stopReason":"stop","timestamp":1795062525935,"responseId":"msg_01oqXXDtAbMWwjS1HZDYtR9E","responseModel":"claude-fake-1","__openclaw":{"runId":"07514c6e-b42e-40f1-9507-0b3098022226"}}}', 1795062526079, NULL, 745, NULL);
INSERT INTO transcript_events VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 9, '{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795062526131,"runId":"07514c6e-b42e-40f1-9507-0b3098022226","sessionId":"5ca39319-f54e-425c-a533-53495f72fea6"},"id":"d7463a08-4c3e-4bd7-99b2-88a37e45678e","parentId":"89840ed6-2483-4493-bce9-57c47644984f","timestamp":"2026-11-19T04:28:46.131Z"}', 1795062526131, NULL, 330, NULL);
INSERT INTO transcript_events VALUES ('11111111-2222-4333-8444-555555555555', 0, '{"type":"session","version":4,"id":"11111111-2222-4333-8444-555555555555","timestamp":"2026-11-19T04:29:13.097Z","cwd":"/home/user/.openclaw/workspace"}', 1795062553097, NULL, 152, NULL);
INSERT INTO transcript_events VALUES ('11111111-2222-4333-8444-555555555555', 1, '{"type":"model_change","provider":"fake","modelId":"claude-fake-1","id":"d28980ee-2052-4dce-8f37-de1cacf136dc","parentId":null,"timestamp":"2026-11-19T04:29:13.153Z"}', 1795062553153, NULL, 166, NULL);
INSERT INTO transcript_events VALUES ('11111111-2222-4333-8444-555555555555', 2, '{"type":"thinking_level_change","thinkingLevel":"off","id":"ed1eb1d5-90b0-472d-966f-33aad0ba91e3","parentId":"d28980ee-2052-4dce-8f37-de1cacf136dc","timestamp":"2026-11-19T04:29:14.331Z"}', 1795062554331, NULL, 187, NULL);
INSERT INTO transcript_events VALUES ('11111111-2222-4333-8444-555555555555', 3, '{"type":"custom","customType":"model-snapshot","data":{"timestamp":1795062554518,"provider":"fake","modelApi":"anthropic-messages","modelId":"claude-fake-1"},"id":"4a4e2151-68dc-4e4f-abe0-e27d93068da7","parentId":"ed1eb1d5-90b0-472d-966f-33aad0ba91e3","timestamp":"2026-11-19T04:29:14.520Z"}', 1795062554520, NULL, 291, NULL);
INSERT INTO transcript_events VALUES ('11111111-2222-4333-8444-555555555555', 4, '{"type":"message","id":"bee18079-e093-4435-ba62-f9524a856476","parentId":"4a4e2151-68dc-4e4f-abe0-e27d93068da7","timestamp":"2026-11-19T04:29:14.876Z","message":{"role":"user","content":"Other session","timestamp":1795062541298,"__openclaw":{"senderIsOwner":true},"idempotencyKey":"2a4152b7-e666-451f-a1d2-3984c144f932:user"}}', 1795062554876, NULL, 326, NULL);
INSERT INTO transcript_events VALUES ('11111111-2222-4333-8444-555555555555', 5, '{"type":"message","id":"594524a3-0de1-4856-9441-b8620cc8f41a","parentId":"bee18079-e093-4435-ba62-f9524a856476","timestamp":"2026-11-19T04:29:15.557Z","message":{"role":"assistant","content":[{"type":"text","text":"Other."}],"api":"anthropic-messages","provider":"fake","model":"claude-fake-1","usage":{"input":310,"output":30,"cacheRead":70,"cacheWrite":5,"totalTokens":415,"cost":{"input":0.00031,"output":0.00006,"cacheRead":0.000007,"cacheWrite":0,"total":0.000377},"cacheWrite1h":0,"contextUsage":{"state":"available","promptTokens":385,"totalTokens":415}},"stopReason":"stop","timestamp":1795062555035,"responseId":"msg_01zWdRKQtMCFI7JvNXF8a5JO","responseModel":"claude-fake-1","__openclaw":{"runId":"066500ba-2d93-403d-b32c-0115164ab4c6"}}}', 1795062555557, NULL, 747, NULL);
INSERT INTO transcript_events VALUES ('11111111-2222-4333-8444-555555555555', 6, '{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795062555604,"runId":"066500ba-2d93-403d-b32c-0115164ab4c6","sessionId":"11111111-2222-4333-8444-555555555555"},"id":"2e62ca03-ab62-4bff-95d4-6cc14291cd48","parentId":"594524a3-0de1-4856-9441-b8620cc8f41a","timestamp":"2026-11-19T04:29:15.604Z"}', 1795062555604, NULL, 330, NULL);
CREATE TABLE session_transcript_active_events (
  session_id TEXT NOT NULL,
  active_position INTEGER NOT NULL CHECK (active_position >= 0),
  event_seq INTEGER NOT NULL,
  message_position INTEGER CHECK (message_position IS NULL OR message_position >= 0),
  context_eligible INTEGER,
  PRIMARY KEY (session_id, active_position)
) STRICT;
INSERT INTO session_transcript_active_events VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 0, 1, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 1, 2, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 2, 3, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 3, 4, 0, 1);
INSERT INTO session_transcript_active_events VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 4, 5, 1, 1);
INSERT INTO session_transcript_active_events VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 5, 6, 2, 1);
INSERT INTO session_transcript_active_events VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 6, 7, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 7, 8, 3, 1);
INSERT INTO session_transcript_active_events VALUES ('5ca39319-f54e-425c-a533-53495f72fea6', 8, 9, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('11111111-2222-4333-8444-555555555555', 0, 1, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('11111111-2222-4333-8444-555555555555', 1, 2, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('11111111-2222-4333-8444-555555555555', 2, 3, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('11111111-2222-4333-8444-555555555555', 3, 4, 0, 1);
INSERT INTO session_transcript_active_events VALUES ('11111111-2222-4333-8444-555555555555', 4, 5, 1, 1);
INSERT INTO session_transcript_active_events VALUES ('11111111-2222-4333-8444-555555555555', 5, 6, NULL, 1);
