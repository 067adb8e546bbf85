CREATE TABLE schema_meta (
  meta_key TEXT NOT NULL PRIMARY KEY,
  role TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  agent_id TEXT,
  app_version TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
INSERT INTO schema_meta VALUES ('primary', 'agent', 23, 'main', '2026.9.6', 1795063323699, 1795063323699);
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
INSERT INTO session_nodes VALUES ('agent:main:main', 'ce1b016a-e0a0-4a45-bd32-310533b5311d', '{"sessionId":"ce1b016a-e0a0-4a45-bd32-310533b5311d","updatedAt":1795063432338,"sessionStartedAt":1795063324178,"delivery":{"kind":"none"},"lastInteractionAt":1795063432322,"activeWriterRunId":"9279827f-ef94-4c66-948c-ff336cbf80c4","model":"gpt-fake-1","modelProvider":"fake","abortedLastRun":false,"lastActivityAt":1795063432322,"contextTokens":64000,"contextTokensSource":"resolved","agentHarnessId":"openclaw","totalTokens":2150,"totalTokensFresh":true,"totalTokensVersion":1,"memoryFlush":{"kind":"succeeded","compactionCount":0},"compactionCount":1,"contextBudgetStatus":{"schemaVersion":1,"source":"pre-prompt-estimate","updatedAt":1795063429717,"provider":"fake","model":"gpt-fake-1","route":"compact_only","shouldCompact":true,"estimatedPromptTokens":51246,"contextTokenBudget":64000,"promptBudgetBeforeReserve":48000,"reserveTokens":16000,"effectiveReserveTokens":16000,"remainingPromptBudgetTokens":0,"overflowTokens":3246,"toolResultReducibleChars":0,"messageCount":4,"unwindowedMessageCount":4,"sessionId":"ce1b016a-e0a0-4a45-bd32-310533b5311d"},"inputTokens":2100,"outputTokens":12,"cacheRead":50,"cacheWrite":0,"estimatedCostUsd":0.002129}', NULL, 1, 1795063432338, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795063432322, 1795063432322);
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
INSERT INTO session_windows VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 'agent:main:main', NULL, NULL, 'conversation', 1795063324178, 1795063432338, 1795063432048, 1795063432048, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'fake', 'gpt-fake-1', 'openclaw', NULL, NULL, NULL);
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
INSERT INTO transcript_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 0, '{"type":"session","version":4,"id":"ce1b016a-e0a0-4a45-bd32-310533b5311d","timestamp":"2026-11-19T04:42:13.973Z","cwd":"/home/user/.openclaw/workspace"}', 1795063333973, NULL, 152, NULL);
INSERT INTO transcript_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 1, '{"type":"model_change","provider":"fake","modelId":"gpt-fake-1","id":"be485ad4-d412-456f-a32f-83550581094c","parentId":null,"timestamp":"2026-11-19T04:42:14.074Z"}', 1795063334074, NULL, 163, NULL);
INSERT INTO transcript_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 2, '{"type":"thinking_level_change","thinkingLevel":"off","id":"c7dceb0c-9162-4904-a2d3-724c4e073ee9","parentId":"be485ad4-d412-456f-a32f-83550581094c","timestamp":"2026-11-19T04:42:15.146Z"}', 1795063335146, NULL, 187, NULL);
INSERT INTO transcript_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 3, '{"type":"custom","customType":"model-snapshot","data":{"timestamp":1795063335206,"provider":"fake","modelApi":"openai-completions","modelId":"gpt-fake-1"},"id":"4abef2ba-b4a5-4c2d-8051-3af62c6fa867","parentId":"c7dceb0c-9162-4904-a2d3-724c4e073ee9","timestamp":"2026-11-19T04:42:15.207Z"}', 1795063335207, NULL, 288, NULL);
INSERT INTO transcript_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 4, '{"type":"message","id":"65a07207-69dd-4d5c-9ead-3350751fb624","parentId":"4abef2ba-b4a5-4c2d-8051-3af62c6fa867","timestamp":"2026-11-19T04:42:15.268Z","message":{"role":"user","content":"Begin","timestamp":1795063324814,"__openclaw":{"senderIsOwner":true},"idempotencyKey":"41324dbc-6a08-4071-a931-e573932d32c9:user"}}', 1795063335268, NULL, 318, NULL);
INSERT INTO transcript_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 5, NULL, 1795063336180, X'28b52ffd605302850e00f6df5f22204ff40cf60fd9d1fe3f4445dab5319243db86094058a07dd7e6cf85a3c000c008115200560053006ba9c79c756c2992197f547327edd8739eb5405f5a53547ea3e6429da2b4790a3a832e972790ed4f52eaa4657b5ea3d0918e99ca69ac510b3aa7262399728bf326d3bc63d3da49ff83c4f8a38efd5245ee8bf6a5dbb1ab243b697874833308d77a1ca5937e8333be85c90646f0241b13718e69d642e8d30a3d83a2281648054281bc35e848f1992176b69fed9d9d74b632e38ab1ecd80fdda92f62d20bce2ce5adc85c749ed02c15be3c57cf5cf1e68a677cdd1d24f3cdd87ec44d78b0d55e2c7feac4637fae93c2129bca677c63cab9b2e376e2eede626787646b5f444727bd94cad243c7869ede28423e1d7b7a5a25ee84edadf92129ba5355198fc7a325745ef3f01df3a99807366ab5e75493d0d5d3d6b0c5b8754c7d117b4242d3c1a1939e0dc1e00110404ccec2406331020a28e31d0752c44485087814244533cbc67c6caf8417c396d6daf3a5812b3643ba1977f2782cee011d0042881fda8a524a0e8619ebaf0819600433bcd3a80db610c01b33614392362071431c5a8931937437ef00848211648e99d32e369b24d37eb348d74349a151e9d5b31c86af49233115460dd419', 120650, '{"version":1,"report":{"kind":"canonical","hasParentId":true,"entry":{"id":"038c6b54-2a8c-4471-923b-c84ab7d36f3a","parentId":"65a07207-69dd-4d5c-9ead-3350751fb624","timestamp":"2026-11-19T04:42:16.180Z","type":"message","assistantRunId":"081293de-07a3-4631-97f8-c024e7e96b7a","assistantResponseId":"chatcmpl-fGjiwkpQueRdNGR1hKZbrjLF6OS3c"}},"navigation":{"type":"message","id":"038c6b54-2a8c-4471-923b-c84ab7d36f3a","parentId":"65a07207-69dd-4d5c-9ead-3350751fb624","timestamp":"2026-11-19T04:42:16.180Z","message":{"role":"assistant","__openclaw":{"runId":"081293de-07a3-4631-97f8-c024e7e96b7a"}}},"reset":{"type":"message","id":"038c6b54-2a8c-4471-923b-c84ab7d36f3a","parentId":"65a07207-69dd-4d5c-9ead-3350751fb624","timestamp":"2026-11-19T04:42:16.180Z","message":{"role":"assistant"}},"model":{"type":"message","id":"038c6b54-2a8c-4471-923b-c84ab7d36f3a","parentId":"65a07207-69dd-4d5c-9ead-3350751fb624","timestamp":"2026-11-19T04:42:16.180Z","message":{"role":"assistant","provider":"fake","model":"gpt-fake-1","stopReason":"stop","timestamp":1795063335281,"content":[],"command":"","output":"","providerReplay":{"type":null},"details":{"openclawSyntheticMissingToolResult":false}}},"modelBytes":120650,"modelWithoutCheckpointBytes":120650,"withoutCustomDataBytes":120650}');
INSERT INTO transcript_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 6, '{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795063336374,"runId":"081293de-07a3-4631-97f8-c024e7e96b7a","sessionId":"ce1b016a-e0a0-4a45-bd32-310533b5311d"},"id":"956dabcc-f126-469f-81d1-1612c4efb8f7","parentId":"038c6b54-2a8c-4471-923b-c84ab7d36f3a","timestamp":"2026-11-19T04:42:16.374Z"}', 1795063336374, NULL, 330, NULL);
INSERT INTO transcript_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 7, '{"type":"message","id":"aaf7dff0-3379-4ddd-acfe-90cafad1d0a1","parentId":"956dabcc-f126-469f-81d1-1612c4efb8f7","timestamp":"2026-11-19T04:42:45.384Z","message":{"role":"user","content":"More","timestamp":1795063354211,"__openclaw":{"senderIsOwner":true},"idempotencyKey":"008ea9e5-c4a7-4dce-8b2f-1b3f21432847:user"}}', 1795063365384, NULL, 317, NULL);
INSERT INTO transcript_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 8, NULL, 1795063365732, X'28b52ffd605f02ad0e0036e06023304ff49c3c026c53be0dfe601fb225d03b0b2b72df74408cb525a5ecef50f4a4a050305100580054008bb1c5b46e2c9992fcda97a0cb0a336fcaa83f3edb59ff4c5f94d2b79cc6b9d5cf439bc75de04e5f39c50a3ba6998dcde81a8e2f7f8fab61ee2dc7e2b39afd3ff09f255388157e08b7f62596fc54c5e58b904f4f55960c51ce8a43841d7c32d71ec7350dd8cf8b5132b0b9c326b672c74cde8b0e63097d0a45dfb02c8b45529150247582c192e26f83e43bfd9dea6485efe4d742d63a4bfea8567c21156668ae59e093edc9d70c87051d19a6d7b75e3abe5efadada11467eebb5d33f2a036282a66afd2b565af25fa85a8092a9ffc13ba6cf66175259e9eef8245f0835417c2121ac305beb52102c397a5aa5873f2cb97a0a49d4ca4e15ba1f51529d2b914884616b0ea34df337e77acf386b36d85bae235badd120f3df4c908a2f244f78341f1e5861008247e33820b080d1900ce243e055080a114dc0439a7003092ba2a479dd31df4e95b25f3dc838c734741a26f980aad7b21289b0861d1e0042881fdd8a124b2ec2c19a31422e186992773bae2aea01172d8063266d9004a076431c5a8931937437ef0044c13532ed9a5381364127537cb348834349a151e9d5b31c86af49233115460dd419', 120662, '{"version":1,"report":{"kind":"canonical","hasParentId":true,"entry":{"id":"ee5fee10-f813-4317-8aea-a9b38c12c763","parentId":"aaf7dff0-3379-4ddd-acfe-90cafad1d0a1","timestamp":"2026-11-19T04:42:45.732Z","type":"message","assistantRunId":"7ee652b2-1803-41bc-96e4-cc4a27d19225","assistantResponseId":"chatcmpl-UM3wmkG7jVSr4Ik8QmbTP5uh97kNC"}},"navigation":{"type":"message","id":"ee5fee10-f813-4317-8aea-a9b38c12c763","parentId":"aaf7dff0-3379-4ddd-acfe-90cafad1d0a1","timestamp":"2026-11-19T04:42:45.732Z","message":{"role":"assistant","__openclaw":{"runId":"7ee652b2-1803-41bc-96e4-cc4a27d19225"}}},"reset":{"type":"message","id":"ee5fee10-f813-4317-8aea-a9b38c12c763","parentId":"aaf7dff0-3379-4ddd-acfe-90cafad1d0a1","timestamp":"2026-11-19T04:42:45.732Z","message":{"role":"assistant"}},"model":{"type":"message","id":"ee5fee10-f813-4317-8aea-a9b38c12c763","parentId":"aaf7dff0-3379-4ddd-acfe-90cafad1d0a1","timestamp":"2026-11-19T04:42:45.732Z","message":{"role":"assistant","provider":"fake","model":"gpt-fake-1","stopReason":"stop","timestamp":1795063365402,"content":[],"command":"","output":"","providerReplay":{"type":null},"details":{"openclawSyntheticMissingToolResult":false}}},"modelBytes":120662,"modelWithoutCheckpointBytes":120662,"withoutCustomDataBytes":120662}');
INSERT INTO transcript_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 9, '{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795063365822,"runId":"7ee652b2-1803-41bc-96e4-cc4a27d19225","sessionId":"ce1b016a-e0a0-4a45-bd32-310533b5311d"},"id":"c592459e-7209-48c0-9f2f-c9d1b41f0f3b","parentId":"ee5fee10-f813-4317-8aea-a9b38c12c763","timestamp":"2026-11-19T04:42:45.822Z"}', 1795063365822, NULL, 330, NULL);
INSERT INTO transcript_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 10, '{"type":"compaction","id":"81ea336b-baa2-465e-a25a-e01a97d7e383","parentId":"c592459e-7209-48c0-9f2f-c9d1b41f0f3b","timestamp":"2026-11-19T04:43:15.043Z","summary":"## Latest user request context\n\"More\"\n\n## Decisions\nNo prior history.\n\n## Open TODOs\nNone.\n\n## Constraints/Rules\nNone.\n\n## Pending user asks\nNone.\n\n## Exact identifiers\nNone captured.\n\n**Turn Context (split turn):**\n\n### Goal\nA summary of it.\n\n## Recent turns preserved verbatim\n- User: Begin\n- Assistant: One x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z x ...","firstKeptEntryId":"ee5fee10-f813-4317-8aea-a9b38c12c763","tokensBefore":58050,"tokensAfter":30229,"details":{"readFiles":[],"modifiedFiles":[]},"fromHook":true,"__openclaw":{"itemId":"b762947c-fe1c-46d7-b5c8-5f6b2ea80635"}}', 1795063395043, NULL, 1327, NULL);
INSERT INTO transcript_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 11, '{"type":"message","id":"d0d2b849-832e-43a6-9a3d-b652af40792c","parentId":"81ea336b-baa2-465e-a25a-e01a97d7e383","timestamp":"2026-11-19T04:43:16.877Z","message":{"role":"user","content":"More again","timestamp":1795063395262,"__openclaw":{"senderIsOwner":true},"idempotencyKey":"3b46dfc7-082a-41c4-a314-f1d2844d61ce:user"}}', 1795063396877, NULL, 323, NULL);
INSERT INTO transcript_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 12, '{"type":"message","id":"c8b65e2b-40fd-4c6f-9783-dcd7c8419ab3","parentId":"d0d2b849-832e-43a6-9a3d-b652af40792c","timestamp":"2026-11-19T04:43:17.033Z","message":{"role":"assistant","content":[{"type":"text","text":"Four."}],"api":"openai-completions","provider":"fake","model":"gpt-fake-1","usage":{"input":20000,"output":12,"cacheRead":50,"cacheWrite":0,"reasoningTokens":0,"totalTokens":20062,"cost":{"input":0.02,"output":0.000024,"cacheRead":0.000005,"cacheWrite":0,"total":0.020029}},"stopReason":"stop","timestamp":1795063396920,"responseId":"chatcmpl-PoLiGqfgZNJq2nGjLLqaPRm4oWfCI","__openclaw":{"runId":"3493332e-46e6-45d2-b893-872d65b6226f"}}}', 1795063397033, NULL, 652, NULL);
INSERT INTO transcript_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 13, '{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795063397041,"runId":"3493332e-46e6-45d2-b893-872d65b6226f","sessionId":"ce1b016a-e0a0-4a45-bd32-310533b5311d"},"id":"96fe1bdf-de5a-42bb-a789-91e589b66c2c","parentId":"c8b65e2b-40fd-4c6f-9783-dcd7c8419ab3","timestamp":"2026-11-19T04:43:17.041Z"}', 1795063397041, NULL, 330, NULL);
INSERT INTO transcript_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 14, '{"type":"message","id":"096fb6e5-2942-4e63-ba38-c141ccd63e0c","parentId":"96fe1bdf-de5a-42bb-a789-91e589b66c2c","timestamp":"2026-11-19T04:43:49.829Z","message":{"role":"user","content":"Last","timestamp":1795063416107,"__openclaw":{"senderIsOwner":true},"idempotencyKey":"57edd8a4-93ab-4aaf-8ddb-38df61ecc898:user"}}', 1795063429829, NULL, 317, NULL);
INSERT INTO transcript_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 15, '{"type":"message","id":"5241fcec-383f-4fc9-82cc-ace0422f11ec","parentId":"096fb6e5-2942-4e63-ba38-c141ccd63e0c","timestamp":"2026-11-19T04:43:52.038Z","message":{"role":"assistant","content":[{"type":"text","text":"Five."}],"api":"openai-completions","provider":"fake","model":"gpt-fake-1","usage":{"input":2100,"output":12,"cacheRead":50,"cacheWrite":0,"reasoningTokens":0,"totalTokens":2162,"cost":{"input":0.0021,"output":0.000024,"cacheRead":0.000005,"cacheWrite":0,"total":0.002129}},"stopReason":"stop","timestamp":1795063430046,"responseId":"chatcmpl-qNtmH1n4lZtGyp5CiTHPzBXvSmx5V","__openclaw":{"runId":"9279827f-ef94-4c66-948c-ff336cbf80c4"}}}', 1795063432038, NULL, 652, NULL);
CREATE TABLE session_transcript_active_events (
  session_id TEXT NOT NULL,
  active_position INTEGER NOT NULL CHECK (active_position >= 0),
  event_seq INTEGER NOT NULL,
  message_position INTEGER CHECK (message_position IS NULL OR message_position >= 0),
  context_eligible INTEGER,
  PRIMARY KEY (session_id, active_position)
) STRICT;
INSERT INTO session_transcript_active_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 0, 1, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 1, 2, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 2, 3, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 3, 4, 0, 1);
INSERT INTO session_transcript_active_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 4, 5, 1, 1);
INSERT INTO session_transcript_active_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 5, 6, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 6, 7, 2, 1);
INSERT INTO session_transcript_active_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 7, 8, 3, 1);
INSERT INTO session_transcript_active_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 8, 9, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 9, 10, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 10, 11, 4, 1);
INSERT INTO session_transcript_active_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 11, 12, 5, 1);
INSERT INTO session_transcript_active_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 12, 13, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 13, 14, 6, 1);
INSERT INTO session_transcript_active_events VALUES ('ce1b016a-e0a0-4a45-bd32-310533b5311d', 14, 15, 7, 1);
