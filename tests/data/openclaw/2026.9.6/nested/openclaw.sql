CREATE TABLE schema_meta (
  meta_key TEXT NOT NULL PRIMARY KEY,
  role TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  agent_id TEXT,
  app_version TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
INSERT INTO schema_meta VALUES ('primary', 'agent', 23, 'main', '2026.9.6', 1795063254421, 1795063254421);
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
INSERT INTO session_nodes VALUES ('agent:main:main', '26550596-8323-45b7-bd92-db60316481b0', '{"sessionId":"26550596-8323-45b7-bd92-db60316481b0","updatedAt":1795063314437,"sessionStartedAt":1795063254727,"delivery":{"kind":"none"},"lastInteractionAt":1795063314436,"activeWriterRunId":"d1fef49f-170e-4cb7-8e0f-3955134afcdd","model":"gpt-fake-1","modelProvider":"fake","abortedLastRun":false,"lastActivityAt":1795063314436,"contextTokens":100000,"contextTokensSource":"resolved","agentHarnessId":"openclaw","contextBudgetStatus":{"schemaVersion":1,"source":"pre-prompt-estimate","updatedAt":1795063314062,"provider":"fake","model":"gpt-fake-1","route":"fits","shouldCompact":false,"estimatedPromptTokens":19425,"contextTokenBudget":100000,"promptBudgetBeforeReserve":80000,"reserveTokens":20000,"effectiveReserveTokens":20000,"remainingPromptBudgetTokens":60575,"overflowTokens":0,"toolResultReducibleChars":0,"messageCount":6,"unwindowedMessageCount":6,"sessionId":"26550596-8323-45b7-bd92-db60316481b0"},"inputTokens":310,"outputTokens":30,"cacheRead":70,"cacheWrite":0,"estimatedCostUsd":0.000377,"totalTokens":380,"totalTokensFresh":true,"totalTokensVersion":1}', NULL, 1, 1795063314437, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795063314436, 1795063314436);
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
INSERT INTO session_windows VALUES ('26550596-8323-45b7-bd92-db60316481b0', 'agent:main:main', NULL, NULL, 'conversation', 1795063254727, 1795063314437, 1795063314403, 1795063314403, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'fake', 'gpt-fake-1', 'openclaw', NULL, NULL, NULL);
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
INSERT INTO transcript_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 0, '{"type":"session","version":4,"id":"26550596-8323-45b7-bd92-db60316481b0","timestamp":"2026-11-19T04:41:05.333Z","cwd":"/home/user/.openclaw/workspace"}', 1795063265333, NULL, 152, NULL);
INSERT INTO transcript_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 1, '{"type":"model_change","provider":"fake","modelId":"gpt-fake-1","id":"21cae21e-04df-45fb-b7ae-b5710bd7babb","parentId":null,"timestamp":"2026-11-19T04:41:05.454Z"}', 1795063265454, NULL, 163, NULL);
INSERT INTO transcript_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 2, '{"type":"thinking_level_change","thinkingLevel":"off","id":"011ab61c-24cf-4a67-9f66-b01a19e88413","parentId":"21cae21e-04df-45fb-b7ae-b5710bd7babb","timestamp":"2026-11-19T04:41:06.787Z"}', 1795063266787, NULL, 187, NULL);
INSERT INTO transcript_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 3, '{"type":"custom","customType":"model-snapshot","data":{"timestamp":1795063266915,"provider":"fake","modelApi":"openai-completions","modelId":"gpt-fake-1"},"id":"9d43b0c9-e159-4c43-a126-e5876e0d77a3","parentId":"011ab61c-24cf-4a67-9f66-b01a19e88413","timestamp":"2026-11-19T04:41:06.932Z"}', 1795063266932, NULL, 288, NULL);
INSERT INTO transcript_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 4, '{"type":"message","id":"85447304-558d-430d-aa9b-ded16fd8cbef","parentId":"9d43b0c9-e159-4c43-a126-e5876e0d77a3","timestamp":"2026-11-19T04:41:07.286Z","message":{"role":"user","content":"How long are the files?","timestamp":1795063255387,"__openclaw":{"senderIsOwner":true},"idempotencyKey":"207c223b-0f17-43b9-9749-94e2f0f6cf45:user"}}', 1795063267286, NULL, 336, NULL);
INSERT INTO transcript_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 5, '{"type":"message","id":"763f9525-8f8f-4325-8000-a7509b9ea652","parentId":"85447304-558d-430d-aa9b-ded16fd8cbef","timestamp":"2026-11-19T04:41:08.884Z","message":{"role":"assistant","content":[{"type":"text","text":"I will ask.","textSignature":"{\"v\":1,\"id\":\"commentary-0-b76260f363e74b62b1da2169\",\"phase\":\"commentary\"}"},{"type":"toolCall","id":"call_2l1BwnjuI5CU4PCthXCeTa","name":"tool_call","arguments":{"id":"sessions_spawn","args":{"task":"Count the lines of file 1","label":"counter"}}}],"api":"openai-completions","provider":"fake","model":"gpt-fake-1","usage":{"input":100,"output":10,"cacheRead":50,"cacheWrite":0,"reasoningTokens":0,"totalTokens":160,"cost":{"input":0.0001,"output":0.00002,"cacheRead":0.000005,"cacheWrite":0,"total":0.000125}},"stopReason":"toolUse","timestamp":1795063267409,"responseId":"chatcmpl-6ARVmoQMJ8V24MNbsTMRaDJQeG6Uu","__openclaw":{"runId":"481f6b33-53f5-451d-9522-f37489d3ffeb"}}}', 1795063268884, NULL, 932, NULL);
INSERT INTO transcript_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 6, '{"type":"message","id":"92d04a73-7429-412e-9395-0a93ce987525","parentId":"763f9525-8f8f-4325-8000-a7509b9ea652","timestamp":"2026-11-19T04:41:14.400Z","message":{"role":"custom","customType":"openclaw.nested-tool.v1","display":true,"excludeFromContext":true,"content":"","details":{"runId":"481f6b33-53f5-451d-9522-f37489d3ffeb","scopeId":"5d1dcfa1-5f07-47ae-ad61-00cbc9adf0d0","afterEntryId":"763f9525-8f8f-4325-8000-a7509b9ea652","startOrder":0,"parentToolCallId":"call_2l1BwnjuI5CU4PCthXCeTa","toolCallId":"tool_search_code:call_2l1BwnjuI5CU4PCthXCeTa:sessions_spawn:1","toolName":"sessions_spawn","input":{"task":"Count the lines of file 1","label":"counter"},"result":{"content":[{"type":"text","text":"{\n  \"status\": \"error\",\n  \"error\": \"published reply runtime missing for main\",\n  \"childSessionKey\": \"agent:main:subagent:a3b37214-a443-4796-b588-0a45db606840\",\n  \"runId\": \"8e150ad3-7774-4fbd-a84f-1dba2745ff92\"\n}"}],"details":{"status":"error","error":"published reply runtime missing for main","childSessionKey":"agent:main:subagent:a3b37214-a443-4796-b588-0a45db606840","runId":"8e150ad3-7774-4fbd-a84f-1dba2745ff92"}},"isError":true,"startedAt":1795063269246,"timestamp":1795063274381},"timestamp":1795063269246,"idempotencyKey":"5d1dcfa1-5f07-47ae-ad61-00cbc9adf0d0:tool_search_code:call_2l1BwnjuI5CU4PCthXCeTa:sessions_spawn:1"}}', 1795063274400, NULL, 1361, NULL);
INSERT INTO transcript_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 7, NULL, 1795063274491, X'28b52ffd643311e54400fa8bec1730c08c88b801f6281ccad06da553daf6e75273e9874dde013bbc482c3bd0ea846a6d6180eaeb15f3b1aaa2288aa228ce058c015b0167010febf8fe7ab2393bb630670f832c2d640b6bb63096b12dace261150f5b245458a5a18a3eaa0edf3e3b0649a8a8aa561a821804410dc8343d9c86c64a8ec14c8ec3324e9a1cc6696868601c6e170f063b38889e72e138302c1824f77076c138383c248601d2e0300ec759c661341a1c9263a5e94fbfb59e6fa696c2093c70f055addf5a2ae3a4543ff767295bef7b4aa5c08ba53aaefc41695e0b832048462999411004f9fc7d671004553c05ff45798da00f8324832aaa0d31a8c9199daded85413dd9cb25bce373677f58c6f64c16b6e62b32c83d06a9eac32048b5a10af6b0a7600afe080ffbe6efd8d8c220dc26612d8385c00f0e54ffd0c0897878404c087a420003362420dc06e13e2cece1747600637cf6308651b28a67610f30204ee3301e86f3380b081006c360300c8d45833decb2f69dadf76c618fc6a3c101c2cd01d905f38038200c37180e0369380d8ca3619d856b40d8c31cc437cbbdd8c2169373380c0f4683c1c0cc62d1803090457318769089697093e4160e0ef630f7d8c2985a77b6d8c3f8a23cab084f811d1f68e3b8e7c43254aa9f7c57ca5f166bafcaa80bcebf2c9bb2b5ad136e5d05552bbecfa6abfdb42dbc34ba669454a40d4369258daba6ee2ca9282f5d246d25ef2995ead77ac6eed50722427fc6eadf443d225762f75c212254e289f6539fc4ea813614f8cdaef962d74f32bffff3f8ea8eb95546fd957bb13bcf092c55b2cfe66aa214d851d923b45186d2cae9f48978ca57d054d48cb27a757d192f96ec7027fda7cfae326ac4507afe2622fd67458d487c5fbf59cad994ab57aadfcb785dd35522e3442143b8722f75bdbaf83bbf2e137e132c75a1fab9d874a99a5c7696ba2c6040e1b6e4efb71abf006d58be39816504ff2457fd34a28892ebf5889d7b955ecc9208f819b2d3e89abd0c5ba411f57feaec9e943c1135829185f707259cd915541dcb49bda963d3557fa6e4be460e22d2c6f58c9292b495f463e50c77d488410ad8452bd2266210831444fa70eec44e23aa3dd9eb010bee51365d1cc2d507c255d088f20fbec61b87317ea44e6129b2746e1350fdde1f847027953cc1ad4bc7f78d2f7ffb2cd5594ef87692fbaecdd5ebe25cb5dfcb9fd3e5411b876f9a11b6a83280fbc207ee57b5b596013c2e0e626110c3374579351ddfcfc614ac518541705b840c7a5c3f4945a4ecf39bad05b4711d1b7b244000fa48eec902dc0feabb7c5354051c44e8cf4b99720c27b1256d1572f7564d9708ca88489ddd84ad9f36570d68134dec807d09b096418228d27d13ca2cff1fa5ab3fa352d6d2c842e4262d925c7dd4aa2d4f3c9fb051b05220dcf9d352d008ca887f077047d8549a08fc3b401d53db6be93a8848bf3104515eea58f2fba358eaea3786ec1aa1fac1c74d29edc1783130c657c9106e8b38eea9fe94ea47edbb7eb3d5b1f5a7a40bcbd5a8fa6df03da3d5f802492f941238fe7f568c244450e0df6c556dff37d248f414fc1d1fbea21e8c22aa9fa45fe49665f5912e0b8effe2d656a3c3557f0a1a05954a85493c4d0e0771701a1c13d3683c208c633c1ce631391e8cc321314c0c07a7e29190604bc3c1711a1a0e86c503d2c0e029df007f6ca930c7f0edb4542aec610b630f5bd8b3b087553c8c2d15d693d8929eec613faf7e6c61cdbf9d48f8dbc96aa46abf92ae7ae42022d15a5cb5073faf9f3152c9979cdfa67cd788cbc7d5ab5260c4314bfab17b9bbade6d6f7a1f3bb6ba665797f1419b0596d19a7893fe8cd2ea22173eebb9c2953cc1aea03f23d33b5172e1822577e20afa8d218c2d529e90ecec409b6639e1893b52e4f67332767ccff0b2625307e0afc78de5244218278d5c0b254f44a6636b74ba48fe6981361145c6f757497882c8fd411bb72c9521d5cf135c5312df9ca0918136bb409b55caf4de2704fab1d539ba5566f932eac2d6fb087549e0a0812ed046fda9e3b7b657be4a7ee739e15db1298324324e110639fe85d11f83143c85fe6b0f5e14ac8f461224be1022440af7fdeba70ec0937275e2fd32d086db5e0ea1da2c7c33b5204268fc62028116a8419172c81019119211194993a40321040dc5a1904be901124060da226795191911515094f2a32049637e85fed59f475bb436695f8ab25892d5882535105bbf53eb0c7712b1969a675aec9b4b152d9553c04cd6447e0c31b3459099da9999154977f4cab7ad88cdd267fadf931608388bc1cf5dc0c5887aa5ff1f4838a5b98d909089eddc03e35e05114120a017fcdf44f510c92b884661c625404169d041d27c35e8157b9444e0a0caa4c2aa4d2c18792a40c03d3d3a98b7fd0708083bdf59f8167081007119f0ee09c26c81c88beaf622b8dd2e727355589440b677ddc6e3f9ea988082d06122df248076441562da259fec804112042103fb9ac9c367ca632951dceac1eba2434f9ae1c8a01e466a78cbe62ea4ec256a5279e2a590cba3a7afddf0fdaa024e53a58db4a2a0b67c8e2c2c9c9c248bc9ff2382c84c533b81eaed36f81a9d3167efebebab238e4197e959fabd8236b5b2c653609ae6e1cce9e0d51c21956ec3359147f9be7349bcae21f98a38b51d09eda8712e62c988b8934d9e38dcdaa8139b0ffc7e724da4582bb52d29439b8f74871b2c819c345d29ae150f61cfa2abe00d36f8606366c9f86067238c0a13738b82a2b8fdba2f3869f3f07f61a686d6686ad207afe9d78b4d7d8cd8e8bfa1320ab0243906fdd11924eed2763121792b01033296821f12f131f907c15e43e1917f8d3aa29fa9ff5497033f009553445339771d5ca9531d83afd1e2b910c78bb1a77dd041c9be8596f1d9b8b011eca44ebad0711d289ec6422d32cb13c357a6e5c3f2a3163f92def3d90c768670e0dc0e17433c398ae531140369502cfd0a44d11b08a7f8b20333adec7fd3e8025b30c04b453e401efc4e887311c394a2d30fde075aa966918268c60040fd60e4504bc1955804a41fac30b0ce60d3ce4ebfdb40ee2f926652057cb7aab3', 4659, '{"version":1,"report":{"kind":"canonical","hasParentId":true,"entry":{"id":"380dbfd7-f9de-4c09-9200-e61215643df0","parentId":"92d04a73-7429-412e-9395-0a93ce987525","timestamp":"2026-11-19T04:41:14.491Z","type":"message"}},"navigation":{"type":"message","id":"380dbfd7-f9de-4c09-9200-e61215643df0","parentId":"92d04a73-7429-412e-9395-0a93ce987525","timestamp":"2026-11-19T04:41:14.491Z","message":{"role":"toolResult","__openclaw":{"runId":"481f6b33-53f5-451d-9522-f37489d3ffeb"}}},"reset":{"type":"message","id":"380dbfd7-f9de-4c09-9200-e61215643df0","parentId":"92d04a73-7429-412e-9395-0a93ce987525","timestamp":"2026-11-19T04:41:14.491Z","message":{"role":"toolResult"}},"model":{"type":"message","id":"380dbfd7-f9de-4c09-9200-e61215643df0","parentId":"92d04a73-7429-412e-9395-0a93ce987525","timestamp":"2026-11-19T04:41:14.491Z","message":{"role":"toolResult","toolCallId":"call_2l1BwnjuI5CU4PCthXCeTa","toolName":"tool_call","isError":true,"timestamp":1795063274482,"content":[],"command":"","output":"","providerReplay":{"type":null},"details":{"openclawSyntheticMissingToolResult":false}}},"modelBytes":1186,"modelWithoutCheckpointBytes":1186,"withoutCustomDataBytes":4659}');
INSERT INTO transcript_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 8, '{"type":"custom","customType":"openclaw.cache-ttl","data":{"prunedToolResults":[],"ambiguousToolResultBaseKeys":[],"frozenToolResults":[{"key":"tool:call_2l1BwnjuI5CU4PCthXCeTa:1795063274482","sourceHash":"ahthJ4_7BTIndlFmQyUW1gVxN-KGa1x-4iLc4416UKE"}]},"id":"51ccbaef-217b-48d6-9ef4-3a2f74269d41","parentId":"380dbfd7-f9de-4c09-9200-e61215643df0","timestamp":"2026-11-19T04:41:14.540Z"}', 1795063274540, NULL, 387, NULL);
INSERT INTO transcript_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 9, '{"type":"message","id":"9cf3322d-e5e1-4a17-9525-54d63c8a5ada","parentId":"51ccbaef-217b-48d6-9ef4-3a2f74269d41","timestamp":"2026-11-19T04:41:14.645Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"call_F2MNdV9XsDySdXGLsllQxB","name":"exec","arguments":{"command":"sleep 12"}}],"api":"openai-completions","provider":"fake","model":"gpt-fake-1","usage":{"input":200,"output":20,"cacheRead":60,"cacheWrite":0,"reasoningTokens":0,"totalTokens":280,"cost":{"input":0.0002,"output":0.00004,"cacheRead":0.000006,"cacheWrite":0,"total":0.000246}},"stopReason":"toolUse","timestamp":1795063274562,"responseId":"chatcmpl-L8BuLA0dInLvyhOyxhptAsEGYk95l","__openclaw":{"runId":"481f6b33-53f5-451d-9522-f37489d3ffeb"}}}', 1795063274645, NULL, 725, NULL);
INSERT INTO transcript_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 10, '{"type":"message","id":"cced2362-ff0a-4ac6-bb59-89d3d16bf90b","parentId":"9cf3322d-e5e1-4a17-9525-54d63c8a5ada","timestamp":"2026-11-19T04:41:25.394Z","message":{"role":"toolResult","toolCallId":"call_F2MNdV9XsDySdXGLsllQxB","toolName":"exec","content":[{"type":"text","text":"Command still running (session mellow-shore, pid 16565). Use process (list/poll/log/write/send-keys/submit/paste/kill/clear/remove) for follow-up."}],"details":{"status":"running","sessionId":"mellow-shore","pid":16565,"startedAt":1795063274937,"cwd":"/home/user/.openclaw/workspace","tail":"","followUp":"Use process (list/poll/log/write/send-keys/submit/paste/kill/clear/remove) for follow-up."},"isError":false,"timestamp":1795063285393,"__openclaw":{"runId":"481f6b33-53f5-451d-9522-f37489d3ffeb"}}}', 1795063285394, NULL, 780, NULL);
INSERT INTO transcript_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 11, '{"type":"custom","customType":"openclaw.cache-ttl","data":{"prunedToolResults":[],"ambiguousToolResultBaseKeys":[],"frozenToolResults":[{"key":"tool:call_2l1BwnjuI5CU4PCthXCeTa:1795063274482","sourceHash":"ahthJ4_7BTIndlFmQyUW1gVxN-KGa1x-4iLc4416UKE"},{"key":"tool:call_F2MNdV9XsDySdXGLsllQxB:1795063285393","sourceHash":"3WsB-NUpOlkYr7h6KBT2cGoPtgjICMRJkGYBTSARVvY"}]},"id":"5ba66b42-9d6a-4e71-a7ed-382fa36ffef2","parentId":"cced2362-ff0a-4ac6-bb59-89d3d16bf90b","timestamp":"2026-11-19T04:41:25.403Z"}', 1795063285403, NULL, 503, NULL);
INSERT INTO transcript_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 12, '{"type":"message","id":"b5edf5b8-7455-4022-9413-f58fa8682d09","parentId":"5ba66b42-9d6a-4e71-a7ed-382fa36ffef2","timestamp":"2026-11-19T04:41:25.428Z","message":{"role":"assistant","content":[{"type":"text","text":"It runs."}],"api":"openai-completions","provider":"fake","model":"gpt-fake-1","usage":{"input":300,"output":30,"cacheRead":70,"cacheWrite":0,"reasoningTokens":0,"totalTokens":400,"cost":{"input":0.0003,"output":0.00006,"cacheRead":0.000007,"cacheWrite":0,"total":0.000367}},"stopReason":"stop","timestamp":1795063285408,"responseId":"chatcmpl-ijGsZPjexiRp45x0OJPDMD8tGM55d","__openclaw":{"runId":"481f6b33-53f5-451d-9522-f37489d3ffeb"}}}', 1795063285428, NULL, 652, NULL);
INSERT INTO transcript_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 13, '{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795063285442,"runId":"481f6b33-53f5-451d-9522-f37489d3ffeb","sessionId":"26550596-8323-45b7-bd92-db60316481b0"},"id":"bd5fadb8-48fa-4ffa-a466-5d2dcac0fc16","parentId":"b5edf5b8-7455-4022-9413-f58fa8682d09","timestamp":"2026-11-19T04:41:25.442Z"}', 1795063285442, NULL, 330, NULL);
INSERT INTO transcript_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 14, '{"type":"message","id":"a6cf321b-12bc-4c65-b80b-2aadb589ec06","parentId":"bd5fadb8-48fa-4ffa-a466-5d2dcac0fc16","timestamp":"2026-11-19T04:41:54.084Z","message":{"role":"user","content":"Sure?","timestamp":1795063304745,"__openclaw":{"senderIsOwner":true},"idempotencyKey":"7fb05c49-5ca3-4f48-b200-3940f8bb7832:user"}}', 1795063314084, NULL, 318, NULL);
INSERT INTO transcript_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 15, '{"type":"custom","customType":"openclaw.cache-ttl","data":{"prunedToolResults":[],"ambiguousToolResultBaseKeys":[],"frozenToolResults":[{"key":"tool:call2l1BwnjuI5CU4PCthXCeTa:1795063274482","sourceHash":"ahthJ4_7BTIndlFmQyUW1gVxN-KGa1x-4iLc4416UKE"},{"key":"tool:callF2MNdV9XsDySdXGLsllQxB:1795063285393","sourceHash":"3WsB-NUpOlkYr7h6KBT2cGoPtgjICMRJkGYBTSARVvY"}]},"id":"9caf8c39-4400-4ff4-9a36-1558e085e627","parentId":"a6cf321b-12bc-4c65-b80b-2aadb589ec06","timestamp":"2026-11-19T04:41:54.158Z"}', 1795063314158, NULL, 501, NULL);
INSERT INTO transcript_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 16, '{"type":"message","id":"41feb6e1-fd3e-4784-8990-095788818d6b","parentId":"9caf8c39-4400-4ff4-9a36-1558e085e627","timestamp":"2026-11-19T04:41:54.382Z","message":{"role":"assistant","content":[{"type":"text","text":"Two."}],"api":"openai-completions","provider":"fake","model":"gpt-fake-1","usage":{"input":310,"output":30,"cacheRead":70,"cacheWrite":0,"reasoningTokens":0,"totalTokens":410,"cost":{"input":0.00031,"output":0.00006,"cacheRead":0.000007,"cacheWrite":0,"total":0.000377}},"stopReason":"stop","timestamp":1795063314195,"responseId":"chatcmpl-QSLhePmxEGp8KhcUIm5ke1O9SaXnE","__openclaw":{"runId":"d1fef49f-170e-4cb7-8e0f-3955134afcdd"}}}', 1795063314382, NULL, 649, NULL);
INSERT INTO transcript_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 17, '{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795063314401,"runId":"d1fef49f-170e-4cb7-8e0f-3955134afcdd","sessionId":"26550596-8323-45b7-bd92-db60316481b0"},"id":"09ccc6ac-7de9-457c-a133-6cfe1ae7eb97","parentId":"41feb6e1-fd3e-4784-8990-095788818d6b","timestamp":"2026-11-19T04:41:54.401Z"}', 1795063314401, NULL, 330, NULL);
CREATE TABLE session_transcript_active_events (
  session_id TEXT NOT NULL,
  active_position INTEGER NOT NULL CHECK (active_position >= 0),
  event_seq INTEGER NOT NULL,
  message_position INTEGER CHECK (message_position IS NULL OR message_position >= 0),
  context_eligible INTEGER,
  PRIMARY KEY (session_id, active_position)
) STRICT;
INSERT INTO session_transcript_active_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 0, 1, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 1, 2, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 2, 3, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 3, 4, 0, 1);
INSERT INTO session_transcript_active_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 4, 5, 1, 1);
INSERT INTO session_transcript_active_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 5, 6, 2, 0);
INSERT INTO session_transcript_active_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 6, 7, 3, 1);
INSERT INTO session_transcript_active_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 7, 8, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 8, 9, 4, 1);
INSERT INTO session_transcript_active_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 9, 10, 5, 1);
INSERT INTO session_transcript_active_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 10, 11, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 11, 12, 6, 1);
INSERT INTO session_transcript_active_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 12, 13, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 13, 14, 7, 1);
INSERT INTO session_transcript_active_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 14, 15, NULL, 1);
INSERT INTO session_transcript_active_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 15, 16, 8, 1);
INSERT INTO session_transcript_active_events VALUES ('26550596-8323-45b7-bd92-db60316481b0', 16, 17, NULL, 1);
