CREATE TABLE schema_meta (
  meta_key TEXT NOT NULL PRIMARY KEY,
  role TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  agent_id TEXT,
  app_version TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
INSERT INTO schema_meta VALUES ('primary', 'agent', 23, 'main', '2026.9.6', 1795062261187, 1795062261187);
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
INSERT INTO session_nodes VALUES ('agent:main:main', '6a241ada-cd6b-4762-a321-3f9e3990e8bb', '{"sessionId":"6a241ada-cd6b-4762-a321-3f9e3990e8bb","updatedAt":1795062316866,"sessionStartedAt":1795062261497,"delivery":{"kind":"none"},"lastInteractionAt":1795062316865,"activeWriterRunId":"fd62a61c-3707-418c-b142-20294ebe2d12","model":"gpt-fake-1","modelProvider":"fake","abortedLastRun":false,"lastActivityAt":1795062316865,"contextTokens":100000,"contextTokensSource":"resolved","agentHarnessId":"openclaw","contextBudgetStatus":{"schemaVersion":1,"source":"pre-prompt-estimate","updatedAt":1795062314680,"provider":"fake","model":"gpt-fake-1","route":"fits","shouldCompact":false,"estimatedPromptTokens":19293,"contextTokenBudget":100000,"promptBudgetBeforeReserve":80000,"reserveTokens":20000,"effectiveReserveTokens":20000,"remainingPromptBudgetTokens":60707,"overflowTokens":0,"toolResultReducibleChars":0,"messageCount":8,"unwindowedMessageCount":8,"sessionId":"6a241ada-cd6b-4762-a321-3f9e3990e8bb"},"inputTokens":400,"outputTokens":40,"cacheRead":70,"cacheWrite":0,"estimatedCostUsd":0.000487,"totalTokens":470,"totalTokensFresh":true,"totalTokensVersion":1}', NULL, 1, 1795062316866, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795062316865, 1795062316865);
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
INSERT INTO session_windows VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 'agent:main:main', NULL, NULL, 'conversation', 1795062261497, 1795062316866, 1795062316376, 1795062316376, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'fake', 'gpt-fake-1', 'openclaw', NULL, NULL, NULL);
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
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 0, '{"type":"session","version":4,"id":"6a241ada-cd6b-4762-a321-3f9e3990e8bb","timestamp":"2026-11-19T04:24:33.817Z","cwd":"/home/user/.openclaw/workspace"}', 1795062273817, NULL, 152, NULL);
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 1, '{"type":"model_change","provider":"fake","modelId":"gpt-fake-1","id":"6cb986e8-8466-445a-8880-b4a2f34aa2e2","parentId":null,"timestamp":"2026-11-19T04:24:33.845Z"}', 1795062273845, NULL, 163, NULL);
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 2, '{"type":"thinking_level_change","thinkingLevel":"off","id":"6b9a900f-1608-4240-9cd5-79728390d0fd","parentId":"6cb986e8-8466-445a-8880-b4a2f34aa2e2","timestamp":"2026-11-19T04:24:35.110Z"}', 1795062275110, NULL, 187, NULL);
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 3, '{"type":"custom","customType":"model-snapshot","data":{"timestamp":1795062275151,"provider":"fake","modelApi":"openai-completions","modelId":"gpt-fake-1"},"id":"d120ccc2-70ac-4f3f-ad35-4db72c181a0b","parentId":"6b9a900f-1608-4240-9cd5-79728390d0fd","timestamp":"2026-11-19T04:24:35.153Z"}', 1795062275153, NULL, 288, NULL);
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 4, '{"type":"message","id":"28038bee-3db6-4f0a-83fe-bd0e2de1883b","parentId":"d120ccc2-70ac-4f3f-ad35-4db72c181a0b","timestamp":"2026-11-19T04:24:35.366Z","message":{"role":"user","content":"List the files","timestamp":1795062262292,"__openclaw":{"senderIsOwner":true},"idempotencyKey":"3d57ded0-25c7-4f9c-8c38-bb825c38872a:user"}}', 1795062275366, NULL, 329, NULL);
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 5, '{"type":"message","id":"07c87809-78cf-4e7e-b43e-04083168a5da","parentId":"28038bee-3db6-4f0a-83fe-bd0e2de1883b","timestamp":"2026-11-19T04:24:36.427Z","message":{"role":"assistant","content":[{"type":"text","text":"I will look.","textSignature":"{\"v\":1,\"id\":\"commentary-0-7c746460592b468fa3fe0ee1\",\"phase\":\"commentary\"}"},{"type":"toolCall","id":"call_5Wy2vu5vgdtwK7JrKapWmk","name":"exec","arguments":{"command":"ls -1; exit 3"}},{"type":"toolCall","id":"call_3Is0grE3h6zBWqxfgWXXho","name":"read","arguments":{"path":"/home/user/project/hello.py"}}],"api":"openai-completions","provider":"fake","model":"gpt-fake-1","usage":{"input":100,"output":10,"cacheRead":50,"cacheWrite":0,"reasoningTokens":0,"totalTokens":160,"cost":{"input":0.0001,"output":0.00002,"cacheRead":0.000005,"cacheWrite":0,"total":0.000125}},"stopReason":"toolUse","timestamp":1795062275400,"responseId":"chatcmpl-QIKMT7UFsBc5lTFYJoiD7aMuT6csH","__openclaw":{"runId":"6982b462-e730-4f0b-8e6d-a699eea3a43d"}}}', 1795062276427, NULL, 990, NULL);
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 6, '{"type":"message","id":"5775566e-30e2-4cf0-96d9-942e3aad63cc","parentId":"07c87809-78cf-4e7e-b43e-04083168a5da","timestamp":"2026-11-19T04:24:37.839Z","message":{"role":"toolResult","toolCallId":"call_5Wy2vu5vgdtwK7JrKapWmk","toolName":"exec","content":[{"type":"text","text":"AGENTS.md\nBOOTSTRAP.md\nIDENTITY.md\nSOUL.md\nUSER.md\n\n(Command exited with code 3)"}],"details":{"status":"completed","exitCode":3,"exitSignal":null,"exitReason":"exit","durationMs":725,"aggregated":"AGENTS.md\nBOOTSTRAP.md\nIDENTITY.md\nSOUL.md\nUSER.md\n\n(Command exited with code 3)","noOutputTimedOut":false,"cwd":"/home/user/.openclaw/workspace"},"isError":false,"timestamp":1795062277838,"__openclaw":{"runId":"6982b462-e730-4f0b-8e6d-a699eea3a43d"}}}', 1795062277839, NULL, 739, NULL);
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 7, '{"type":"message","id":"3fd98868-aef8-446f-a306-830be14f79ab","parentId":"5775566e-30e2-4cf0-96d9-942e3aad63cc","timestamp":"2026-11-19T04:24:37.883Z","message":{"role":"toolResult","toolCallId":"call_3Is0grE3h6zBWqxfgWXXho","toolName":"read","content":[{"type":"text","text":"def greet(name):\n    return \"Hello, \" + name\n"}],"details":{"kind":"text","content":"def greet(name):\n    return \"Hello, \" + name\n"},"isError":false,"timestamp":1795062277882,"__openclaw":{"runId":"6982b462-e730-4f0b-8e6d-a699eea3a43d"}}}', 1795062277883, NULL, 523, NULL);
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 8, '{"type":"custom","customType":"openclaw.cache-ttl","data":{"prunedToolResults":[],"ambiguousToolResultBaseKeys":[],"frozenToolResults":[{"key":"tool:call_5Wy2vu5vgdtwK7JrKapWmk:1795062277838","sourceHash":"EB1uPIxQti9eAlKxLrcK18nLxoKLSwbNgZW0tVAU-1A"},{"key":"tool:call_3Is0grE3h6zBWqxfgWXXho:1795062277882","sourceHash":"zm4ILnD-Cgd6ECos42W3JUse6NlkT2a19J14ns6az-Y"}]},"id":"35e77667-e568-4e19-bb42-f22f0e55f52f","parentId":"3fd98868-aef8-446f-a306-830be14f79ab","timestamp":"2026-11-19T04:24:37.889Z"}', 1795062277889, NULL, 503, NULL);
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 9, '{"type":"message","id":"c8be022a-da01-4603-85bc-5c0b164e0034","parentId":"35e77667-e568-4e19-bb42-f22f0e55f52f","timestamp":"2026-11-19T04:24:37.993Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"call_mi4cCPdfHJK6civf0sy0WW","name":"write","arguments":{"path":"/home/user/project/new.txt","content":"one two\n"}},{"type":"toolCall","id":"call_iQbD1FufvHRmSt8U7oNvmH","name":"edit","arguments":{"path":"/home/user/project/hello.py","edits":[{"oldText":"nowhere","newText":"x"}]}}],"api":"openai-completions","provider":"fake","model":"gpt-fake-1","usage":{"input":200,"output":20,"cacheRead":60,"cacheWrite":0,"reasoningTokens":0,"totalTokens":280,"cost":{"input":0.0002,"output":0.00004,"cacheRead":0.000006,"cacheWrite":0,"total":0.000246}},"stopReason":"toolUse","timestamp":1795062277893,"responseId":"chatcmpl-Pz91wAu9Fpq2rDb8pw9d32k6u6i9J","__openclaw":{"runId":"6982b462-e730-4f0b-8e6d-a699eea3a43d"}}}', 1795062277993, NULL, 931, NULL);
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 10, '{"type":"message","id":"f3b8a370-e278-40ef-95df-4052ca76dd5c","parentId":"c8be022a-da01-4603-85bc-5c0b164e0034","timestamp":"2026-11-19T04:24:38.158Z","message":{"role":"toolResult","toolCallId":"call_mi4cCPdfHJK6civf0sy0WW","toolName":"write","content":[{"type":"text","text":"Successfully wrote 10 bytes to /home/user/project/new.txt"}],"details":{"changed":true,"created":true,"diff":"+1 one two","patch":"--- /home/user/project/new.txt\n+++ /home/user/project/new.txt\n@@ -0,0 +1,1 @@\n+one two\n","firstChangedLine":1},"isError":false,"timestamp":1795062278158,"__openclaw":{"runId":"6982b462-e730-4f0b-8e6d-a699eea3a43d"}}}', 1795062278158, NULL, 633, NULL);
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 11, '{"type":"message","id":"6f035b32-4aeb-4e83-9273-edc2979e7815","parentId":"f3b8a370-e278-40ef-95df-4052ca76dd5c","timestamp":"2026-11-19T04:24:38.187Z","message":{"role":"toolResult","toolCallId":"call_iQbD1FufvHRmSt8U7oNvmH","toolName":"edit","content":[{"type":"text","text":"{\n  \"status\": \"error\",\n  \"tool\": \"edit\",\n  \"error\": \"Could not find the exact text in /home/user/project/hello.py. The old text must match exactly including all whitespace and newlines.\\nCurrent file contents:\\ndef greet(name):\\n    return \\\"Hello, \\\" + name\\n\"\n}"}],"details":{"status":"error","tool":"edit","error":"Could not find the exact text in /home/user/project/hello.py. The old text must match exactly including all whitespace and newlines.\nCurrent file contents:\ndef greet(name):\n    return \"Hello, \" + name\n"},"isError":true,"timestamp":1795062278186,"__openclaw":{"runId":"6982b462-e730-4f0b-8e6d-a699eea3a43d"}}}', 1795062278187, NULL, 933, NULL);
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 12, '{"type":"message","id":"cf0104ab-f1e2-46fb-8655-78a843b97b22","parentId":"6f035b32-4aeb-4e83-9273-edc2979e7815","timestamp":"2026-11-19T04:24:38.262Z","message":{"role":"toolResult","toolCallId":"call_lFvkBHRItd0cynSU5vasEa","toolName":"no_such_tool","content":[{"type":"text","text":"Tool no_such_tool not found"}],"details":{},"isError":true,"timestamp":1795062278262,"__openclaw":{"runId":"6982b462-e730-4f0b-8e6d-a699eea3a43d"}}}', 1795062278262, NULL, 433, NULL);
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 13, '{"type":"custom","customType":"openclaw.cache-ttl","data":{"prunedToolResults":[],"ambiguousToolResultBaseKeys":[],"frozenToolResults":[{"key":"tool:call_5Wy2vu5vgdtwK7JrKapWmk:1795062277838","sourceHash":"EB1uPIxQti9eAlKxLrcK18nLxoKLSwbNgZW0tVAU-1A"},{"key":"tool:call_3Is0grE3h6zBWqxfgWXXho:1795062277882","sourceHash":"zm4ILnD-Cgd6ECos42W3JUse6NlkT2a19J14ns6az-Y"},{"key":"tool:call_mi4cCPdfHJK6civf0sy0WW:1795062278158","sourceHash":"-o2ThSh1p-KgW8GBmei8sP4vpXDDb7tTLPFnM3k6Tm0"},{"key":"tool:call_iQbD1FufvHRmSt8U7oNvmH:1795062278186","sourceHash":"6WUa1Jijja4dt_K38hBPotx4ETkWp9FBbAFhBB2Zs2w"},{"key":"tool:call_lFvkBHRItd0cynSU5vasEa:1795062278262","sourceHash":"ZqM533EDB8VVSWGwNWuRk0KE56Dh38c-I0Ghf6FBc_c"}]},"id":"37e0325d-8672-41ee-9b62-4f20a45de21d","parentId":"cf0104ab-f1e2-46fb-8655-78a843b97b22","timestamp":"2026-11-19T04:24:38.313Z"}', 1795062278313, NULL, 851, NULL);
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 14, '{"type":"message","id":"3f137cb9-c08a-457b-8a84-a61e0a2fee58","parentId":"37e0325d-8672-41ee-9b62-4f20a45de21d","timestamp":"2026-11-19T04:24:38.425Z","message":{"role":"assistant","content":[{"type":"text","text":"Done here."}],"api":"openai-completions","provider":"fake","model":"gpt-fake-1","usage":{"input":300,"output":30,"cacheRead":70,"cacheWrite":0,"reasoningTokens":0,"totalTokens":400,"cost":{"input":0.0003,"output":0.00006,"cacheRead":0.000007,"cacheWrite":0,"total":0.000367}},"stopReason":"stop","timestamp":1795062278331,"responseId":"chatcmpl-gg0Jg6Fh5Ka2VduudZPXPEIFVTjbx","__openclaw":{"runId":"6982b462-e730-4f0b-8e6d-a699eea3a43d"}}}', 1795062278425, NULL, 656, NULL);
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 15, '{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795062278468,"runId":"6982b462-e730-4f0b-8e6d-a699eea3a43d","sessionId":"6a241ada-cd6b-4762-a321-3f9e3990e8bb"},"id":"ffb43d4b-c29c-4e6e-ad84-095dab57ef41","parentId":"3f137cb9-c08a-457b-8a84-a61e0a2fee58","timestamp":"2026-11-19T04:24:38.468Z"}', 1795062278468, NULL, 330, NULL);
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 16, '{"type":"message","id":"0396a26f-23e9-4733-8c02-52c03769b11d","parentId":"ffb43d4b-c29c-4e6e-ad84-095dab57ef41","timestamp":"2026-11-19T04:25:14.690Z","message":{"role":"user","content":"And then?","timestamp":1795062301238,"__openclaw":{"senderIsOwner":true},"idempotencyKey":"ad085911-ac72-4961-8e34-5657e59ef5b7:user"}}', 1795062314690, NULL, 322, NULL);
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 17, '{"type":"custom","customType":"openclaw.cache-ttl","data":{"prunedToolResults":[],"ambiguousToolResultBaseKeys":[],"frozenToolResults":[{"key":"tool:call5Wy2vu5vgdtwK7JrKapWmk:1795062277838","sourceHash":"EB1uPIxQti9eAlKxLrcK18nLxoKLSwbNgZW0tVAU-1A"},{"key":"tool:call3Is0grE3h6zBWqxfgWXXho:1795062277882","sourceHash":"zm4ILnD-Cgd6ECos42W3JUse6NlkT2a19J14ns6az-Y"},{"key":"tool:callmi4cCPdfHJK6civf0sy0WW:1795062278158","sourceHash":"-o2ThSh1p-KgW8GBmei8sP4vpXDDb7tTLPFnM3k6Tm0"},{"key":"tool:calliQbD1FufvHRmSt8U7oNvmH:1795062278186","sourceHash":"6WUa1Jijja4dt_K38hBPotx4ETkWp9FBbAFhBB2Zs2w"}]},"id":"8524b6c7-d408-4563-9be4-9317f1d7fe16","parentId":"0396a26f-23e9-4733-8c02-52c03769b11d","timestamp":"2026-11-19T04:25:14.808Z"}', 1795062314808, NULL, 731, NULL);
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 18, '{"type":"message","id":"63fd74ce-463d-4f87-bc1e-2380749ce043","parentId":"8524b6c7-d408-4563-9be4-9317f1d7fe16","timestamp":"2026-11-19T04:25:16.085Z","message":{"role":"assistant","content":[{"type":"text","text":"hail"}],"api":"openai-completions","provider":"fake","model":"gpt-fake-1","usage":{"input":400,"output":40,"cacheRead":70,"cacheWrite":0,"reasoningTokens":0,"totalTokens":510,"cost":{"input":0.0004,"output":0.00008,"cacheRead":0.000007,"cacheWrite":0,"total":0.000487}},"stopReason":"stop","timestamp":1795062314887,"responseId":"chatcmpl-pRR9Ngkpo14e6sHFbafx962MXe0Fm","__openclaw":{"runId":"fd62a61c-3707-418c-b142-20294ebe2d12"}}}', 1795062316085, NULL, 648, NULL);
INSERT INTO transcript_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 19, '{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795062316371,"runId":"fd62a61c-3707-418c-b142-20294ebe2d12","sessionId":"6a241ada-cd6b-4762-a321-3f9e3990e8bb"},"id":"32dbd428-2002-4458-b6aa-8988ad83c1fc","parentId":"63fd74ce-463d-4f87-bc1e-2380749ce043","timestamp":"2026-11-19T04:25:16.371Z"}', 1795062316371, NULL, 330, NULL);
CREATE TABLE session_transcript_active_events (
  session_id TEXT NOT NULL,
  active_position INTEGER NOT NULL CHECK (active_position >= 0),
  event_seq INTEGER NOT NULL,
  message_position INTEGER CHECK (message_position IS NULL OR message_position >= 0),
  context_eligible INTEGER,
  PRIMARY KEY (session_id, active_position)
) STRICT;
INSERT INTO session_transcript_active_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 0, 1, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 1, 2, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 2, 3, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 3, 4, 0, 1);
INSERT INTO session_transcript_active_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 4, 5, 1, 1);
INSERT INTO session_transcript_active_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 5, 6, 2, 1);
INSERT INTO session_transcript_active_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 6, 7, 3, 1);
INSERT INTO session_transcript_active_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 7, 8, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 8, 9, 4, 1);
INSERT INTO session_transcript_active_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 9, 10, 5, 1);
INSERT INTO session_transcript_active_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 10, 11, 6, 1);
INSERT INTO session_transcript_active_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 11, 12, 7, 1);
INSERT INTO session_transcript_active_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 12, 13, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 13, 14, 8, 1);
INSERT INTO session_transcript_active_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 14, 15, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 15, 16, 9, 1);
INSERT INTO session_transcript_active_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 16, 17, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 17, 18, 10, 1);
INSERT INTO session_transcript_active_events VALUES ('6a241ada-cd6b-4762-a321-3f9e3990e8bb', 18, 19, NULL, 1);
