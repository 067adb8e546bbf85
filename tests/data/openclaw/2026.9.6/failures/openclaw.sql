CREATE TABLE schema_meta (
  meta_key TEXT NOT NULL PRIMARY KEY,
  role TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  agent_id TEXT,
  app_version TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
INSERT INTO schema_meta VALUES ('primary', 'agent', 23, 'main', '2026.9.6', 1795062328219, 1795062328219);
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
INSERT INTO session_nodes VALUES ('agent:main:main', '3f6d5a0d-3792-4266-bab4-5529cb398684', '{"sessionId":"3f6d5a0d-3792-4266-bab4-5529cb398684","updatedAt":1795062435878,"sessionStartedAt":1795062328772,"delivery":{"kind":"none"},"lastInteractionAt":1795062427143,"activeWriterRunId":"cbce82f8-c557-4c35-86e1-b88ced64314a","model":"gpt-fake-1","modelProvider":"fake","abortedLastRun":false,"lastActivityAt":1795062383789,"contextTokens":100000,"contextTokensSource":"resolved","agentHarnessId":"openclaw","contextBudgetStatus":{"schemaVersion":1,"source":"pre-prompt-estimate","updatedAt":1795062383475,"provider":"fake","model":"gpt-fake-1","route":"fits","shouldCompact":false,"estimatedPromptTokens":18864,"contextTokenBudget":100000,"promptBudgetBeforeReserve":80000,"reserveTokens":20000,"effectiveReserveTokens":20000,"remainingPromptBudgetTokens":61136,"overflowTokens":0,"toolResultReducibleChars":0,"messageCount":2,"unwindowedMessageCount":2,"sessionId":"3f6d5a0d-3792-4266-bab4-5529cb398684"},"inputTokens":120,"outputTokens":12,"cacheRead":50,"cacheWrite":0,"estimatedCostUsd":0.00014900000000000002,"totalTokens":170,"totalTokensFresh":true,"totalTokensVersion":1}', NULL, 1, 1795062435878, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795062427143, 1795062383789);
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
INSERT INTO session_windows VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 'agent:main:main', NULL, NULL, 'conversation', 1795062328772, 1795062435878, 1795062435877, 1795062435877, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'fake', 'gpt-fake-1', 'openclaw', NULL, NULL, NULL);
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
INSERT INTO transcript_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 0, '{"type":"session","version":4,"id":"3f6d5a0d-3792-4266-bab4-5529cb398684","timestamp":"2026-11-19T04:25:41.098Z","cwd":"/home/user/.openclaw/workspace"}', 1795062341098, NULL, 152, NULL);
INSERT INTO transcript_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 1, '{"type":"model_change","provider":"fake","modelId":"gpt-fake-1","id":"54d57313-5c1f-4894-85e1-d9c2dcb11bb6","parentId":null,"timestamp":"2026-11-19T04:25:41.156Z"}', 1795062341156, NULL, 163, NULL);
INSERT INTO transcript_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 2, '{"type":"thinking_level_change","thinkingLevel":"off","id":"fd045151-d3b8-42da-b0df-ab5c0a7d03f3","parentId":"54d57313-5c1f-4894-85e1-d9c2dcb11bb6","timestamp":"2026-11-19T04:25:42.058Z"}', 1795062342058, NULL, 187, NULL);
INSERT INTO transcript_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 3, '{"type":"custom","customType":"model-snapshot","data":{"timestamp":1795062342142,"provider":"fake","modelApi":"openai-completions","modelId":"gpt-fake-1"},"id":"afa80f17-77b5-4d5d-906f-bd775f8f1e76","parentId":"fd045151-d3b8-42da-b0df-ab5c0a7d03f3","timestamp":"2026-11-19T04:25:42.143Z"}', 1795062342143, NULL, 288, NULL);
INSERT INTO transcript_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 4, '{"type":"message","id":"72ed2d83-234b-4f8f-a9d5-6c74c03ad625","parentId":"afa80f17-77b5-4d5d-906f-bd775f8f1e76","timestamp":"2026-11-19T04:25:42.390Z","message":{"role":"user","content":"One","timestamp":1795062329697,"__openclaw":{"senderIsOwner":true},"idempotencyKey":"75f07ea6-bfb1-4003-b1d8-85be057d089c:user"}}', 1795062342390, NULL, 316, NULL);
INSERT INTO transcript_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 5, '{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795062342869,"runId":"aa8877b6-1c6f-4300-a728-748878fb7b05","sessionId":"3f6d5a0d-3792-4266-bab4-5529cb398684"},"id":"c908988e-8cb4-4b36-ad48-ebcba1d5b5ad","parentId":"72ed2d83-234b-4f8f-a9d5-6c74c03ad625","timestamp":"2026-11-19T04:25:42.869Z"}', 1795062342869, NULL, 330, NULL);
INSERT INTO transcript_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 6, '{"type":"message","id":"e35a4e7a-f34c-4f2d-aaa7-cb2e017e4026","parentId":"c908988e-8cb4-4b36-ad48-ebcba1d5b5ad","timestamp":"2026-11-19T04:25:44.449Z","message":{"role":"assistant","content":[{"type":"text","text":"After a retry."}],"api":"openai-completions","provider":"fake","model":"gpt-fake-1","usage":{"input":100,"output":10,"cacheRead":50,"cacheWrite":0,"reasoningTokens":0,"totalTokens":160,"cost":{"input":0.0001,"output":0.00002,"cacheRead":0.000005,"cacheWrite":0,"total":0.000125}},"stopReason":"stop","timestamp":1795062344425,"responseId":"chatcmpl-tig9w9qmm3Egn7UvOKQxt3V5T8Uck","__openclaw":{"runId":"aa8877b6-1c6f-4300-a728-748878fb7b05"}}}', 1795062344449, NULL, 658, NULL);
INSERT INTO transcript_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 7, '{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795062344456,"runId":"aa8877b6-1c6f-4300-a728-748878fb7b05","sessionId":"3f6d5a0d-3792-4266-bab4-5529cb398684"},"id":"208780bb-391c-4976-bf06-957b597e6a85","parentId":"e35a4e7a-f34c-4f2d-aaa7-cb2e017e4026","timestamp":"2026-11-19T04:25:44.456Z"}', 1795062344456, NULL, 330, NULL);
INSERT INTO transcript_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 8, '{"type":"message","id":"b2e7ddca-ae4f-47da-94b4-dc04bd536afc","parentId":"208780bb-391c-4976-bf06-957b597e6a85","timestamp":"2026-11-19T04:26:21.883Z","message":{"role":"user","content":"Two","timestamp":1795062369027,"__openclaw":{"senderIsOwner":true},"idempotencyKey":"3ee11f9f-3b9c-43c6-a8ea-6ac2371e256f:user"}}', 1795062381883, NULL, 316, NULL);
INSERT INTO transcript_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 9, '{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795062382282,"runId":"f16d0747-3655-4f5b-a190-56cf60ccb0b8","sessionId":"3f6d5a0d-3792-4266-bab4-5529cb398684"},"id":"0c343485-1cc8-463d-bfdc-f54b6152e18e","parentId":"b2e7ddca-ae4f-47da-94b4-dc04bd536afc","timestamp":"2026-11-19T04:26:22.282Z"}', 1795062382282, NULL, 330, NULL);
INSERT INTO transcript_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 10, '{"type":"message","id":"8c1a2416-1dff-475e-8503-a1971d61a4de","parentId":"0c343485-1cc8-463d-bfdc-f54b6152e18e","timestamp":"2026-11-19T04:26:23.602Z","message":{"role":"assistant","content":[{"type":"text","text":"Whole again."}],"api":"openai-completions","provider":"fake","model":"gpt-fake-1","usage":{"input":120,"output":12,"cacheRead":50,"cacheWrite":0,"reasoningTokens":0,"totalTokens":182,"cost":{"input":0.00012,"output":0.000024,"cacheRead":0.000005,"cacheWrite":0,"total":0.00014900000000000002}},"stopReason":"stop","timestamp":1795062383495,"responseId":"chatcmpl-Xumxv8UASBogFiEaWPBg6gz8PcQTi","__openclaw":{"runId":"f16d0747-3655-4f5b-a190-56cf60ccb0b8"}}}', 1795062383602, NULL, 672, NULL);
INSERT INTO transcript_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 11, '{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795062383626,"runId":"f16d0747-3655-4f5b-a190-56cf60ccb0b8","sessionId":"3f6d5a0d-3792-4266-bab4-5529cb398684"},"id":"ccc2df84-dd79-4e16-b434-ac7993237231","parentId":"8c1a2416-1dff-475e-8503-a1971d61a4de","timestamp":"2026-11-19T04:26:23.626Z"}', 1795062383626, NULL, 330, NULL);
INSERT INTO transcript_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 12, '{"type":"message","id":"0c42fc07-44ae-43c0-9d8b-3e8d5c3188ad","parentId":"ccc2df84-dd79-4e16-b434-ac7993237231","timestamp":"2026-11-19T04:26:52.360Z","message":{"role":"user","content":"Three","timestamp":1795062401815,"__openclaw":{"senderIsOwner":true},"idempotencyKey":"c7766e60-3d5e-4955-9490-bef8410c542a:user"}}', 1795062412360, NULL, 318, NULL);
INSERT INTO transcript_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 13, '{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795062412451,"runId":"f24b9fbb-3280-4993-a770-7cdb54852d29","sessionId":"3f6d5a0d-3792-4266-bab4-5529cb398684"},"id":"773a9410-813f-4577-ac83-96bcf11a3a76","parentId":"0c42fc07-44ae-43c0-9d8b-3e8d5c3188ad","timestamp":"2026-11-19T04:26:52.452Z"}', 1795062412452, NULL, 330, NULL);
INSERT INTO transcript_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 14, '{"type":"message","id":"bb4931f8-cbfe-45a8-914d-998a57d9e683","parentId":"773a9410-813f-4577-ac83-96bcf11a3a76","timestamp":"2026-11-19T04:26:52.490Z","message":{"role":"assistant","content":[],"api":"openai-completions","provider":"fake","model":"gpt-fake-1","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"error","timestamp":1795062412375,"errorMessage":"400 Bad","errorCode":"400","errorType":"invalid_request_error","errorBody":"{\"code\":null,\"message\":\"Bad\",\"param\":null,\"type\":\"invalid_request_error\"}","idempotencyKey":"f24b9fbb-3280-4993-a770-7cdb54852d29:terminal-error","__openclaw":{"runId":"f24b9fbb-3280-4993-a770-7cdb54852d29"}}}', 1795062412490, NULL, 765, NULL);
INSERT INTO transcript_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 15, '{"type":"message","id":"392f1860-9e9a-4569-8fb8-1a632bb83a9e","parentId":"bb4931f8-cbfe-45a8-914d-998a57d9e683","timestamp":"2026-11-19T04:27:14.765Z","message":{"role":"user","content":"Four","timestamp":1795062427267,"__openclaw":{"senderIsOwner":true},"idempotencyKey":"959f851c-6692-4c55-8412-2c6737281ef9:user"}}', 1795062434765, NULL, 317, NULL);
INSERT INTO transcript_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 16, '{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795062435493,"runId":"cbce82f8-c557-4c35-86e1-b88ced64314a","sessionId":"3f6d5a0d-3792-4266-bab4-5529cb398684"},"id":"51078b5d-ed4f-4a8a-9442-4b4609e5fa58","parentId":"392f1860-9e9a-4569-8fb8-1a632bb83a9e","timestamp":"2026-11-19T04:27:15.493Z"}', 1795062435493, NULL, 330, NULL);
INSERT INTO transcript_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 17, '{"type":"message","id":"cbfc221c-1e34-424e-a556-36b79793cb9a","parentId":"51078b5d-ed4f-4a8a-9442-4b4609e5fa58","timestamp":"2026-11-19T04:27:15.843Z","message":{"role":"assistant","content":[],"api":"openai-completions","provider":"fake","model":"gpt-fake-1","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"error","timestamp":1795062434882,"errorMessage":"400 Bad","errorCode":"400","errorType":"invalid_request_error","errorBody":"{\"code\":null,\"message\":\"Bad\",\"param\":null,\"type\":\"invalid_request_error\"}","idempotencyKey":"cbce82f8-c557-4c35-86e1-b88ced64314a:terminal-error","__openclaw":{"runId":"cbce82f8-c557-4c35-86e1-b88ced64314a"}}}', 1795062435843, NULL, 765, NULL);
CREATE TABLE session_transcript_active_events (
  session_id TEXT NOT NULL,
  active_position INTEGER NOT NULL CHECK (active_position >= 0),
  event_seq INTEGER NOT NULL,
  message_position INTEGER CHECK (message_position IS NULL OR message_position >= 0),
  context_eligible INTEGER,
  PRIMARY KEY (session_id, active_position)
) STRICT;
INSERT INTO session_transcript_active_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 0, 1, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 1, 2, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 2, 3, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 3, 4, 0, 1);
INSERT INTO session_transcript_active_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 4, 5, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 5, 6, 1, 1);
INSERT INTO session_transcript_active_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 6, 7, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 7, 8, 2, 1);
INSERT INTO session_transcript_active_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 8, 9, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 9, 10, 3, 1);
INSERT INTO session_transcript_active_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 10, 11, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 11, 12, 4, 1);
INSERT INTO session_transcript_active_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 12, 13, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 13, 14, 5, 1);
INSERT INTO session_transcript_active_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 14, 15, 6, 1);
INSERT INTO session_transcript_active_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 15, 16, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('3f6d5a0d-3792-4266-bab4-5529cb398684', 16, 17, 7, 1);
