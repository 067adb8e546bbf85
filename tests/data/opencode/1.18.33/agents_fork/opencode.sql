CREATE TABLE `project` (
          `id` text PRIMARY KEY,
          `worktree` text NOT NULL,
          `vcs` text,
          `name` text,
          `icon_url` text,
          `icon_url_override` text,
          `icon_color` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_initialized` integer,
          `sandboxes` text NOT NULL,
          `commands` text
        );
CREATE TABLE `session` (
          `id` text PRIMARY KEY,
          `project_id` text NOT NULL,
          `workspace_id` text,
          `parent_id` text,
          `slug` text NOT NULL,
          `directory` text NOT NULL,
          `path` text,
          `title` text NOT NULL,
          `version` text NOT NULL,
          `share_url` text,
          `summary_additions` integer,
          `summary_deletions` integer,
          `summary_files` integer,
          `summary_diffs` text,
          `metadata` text,
          `cost` real DEFAULT 0 NOT NULL,
          `tokens_input` integer DEFAULT 0 NOT NULL,
          `tokens_output` integer DEFAULT 0 NOT NULL,
          `tokens_reasoning` integer DEFAULT 0 NOT NULL,
          `tokens_cache_read` integer DEFAULT 0 NOT NULL,
          `tokens_cache_write` integer DEFAULT 0 NOT NULL,
          `revert` text,
          `permission` text,
          `agent` text,
          `model` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_compacting` integer,
          `time_archived` integer,
          CONSTRAINT `fk_session_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
        );
CREATE TABLE `message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
        );
INSERT INTO "project" VALUES('global','/',NULL,NULL,NULL,NULL,NULL,1794749976941,1794750009872,NULL,'[]',NULL);
INSERT INTO "session" VALUES('ses_e2090ac44ffeRxh9TZzNatan0E','global',NULL,NULL,'kind-sailor','/home/user/project','home/user/project','Fake session title','1.18.33',NULL,0,0,0,NULL,NULL,0.0,117,167,0,11700,1170,NULL,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','build','{"id":"fake-model","providerID":"anthropic","variant":"default"}',1794749977531,1794750016051,NULL,NULL);
INSERT INTO "session" VALUES('ses_e2090a3a1ffetWAEKGMxCYMYhA','global',NULL,'ses_e2090ac44ffeRxh9TZzNatan0E','hidden-tiger','/home/user/project','home/user/project','count files (@general subagent)','1.18.33',NULL,0,0,0,NULL,NULL,0.0,7,23,0,150,11,NULL,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"},{"permission":"task","pattern":"*","action":"deny"}]','general','{"id":"fake-model","providerID":"anthropic","variant":"default"}',1794749979742,1794749981065,NULL,NULL);
INSERT INTO "session" VALUES('ses_e209093e4ffebVAVMYwIIYHZLz','global',NULL,NULL,'lucky-sailor','/home/user/project','home/user/project','Fake session title (fork #1)','1.18.33',NULL,0,0,0,NULL,NULL,0.0,90,130,0,9000,900,NULL,NULL,'build','{"id":"fake-model","providerID":"anthropic","variant":"default"}',1794749983771,1794749986274,NULL,NULL);
INSERT INTO "message" VALUES('msg_1df6f558a001CFs7VYhyBBCfAk','ses_e2090ac44ffeRxh9TZzNatan0E',1794749977995,1794749981153,'{"role":"user","time":{"created":1794749977995},"agent":"build","model":{"providerID":"anthropic","modelID":"fake-model"},"summary":{"diffs":[]}}');
INSERT INTO "message" VALUES('msg_1df6f5ae1001KodjnViqxBKUeW','ses_e2090ac44ffeRxh9TZzNatan0E',1794749979362,1794749981044,'{"parentID":"msg_1df6f558a001CFs7VYhyBBCfAk","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/user/project","root":"/"},"cost":0,"tokens":{"total":2362,"input":21,"output":31,"reasoning":0,"cache":{"write":210,"read":2100}},"modelID":"fake-model","providerID":"anthropic","time":{"created":1794749979362,"completed":1794749981044},"finish":"tool-calls"}');
INSERT INTO "message" VALUES('msg_1df6f5c6c001v5JcjuXE1CQhaO','ses_e2090a3a1ffetWAEKGMxCYMYhA',1794749979757,1794749981074,'{"role":"user","time":{"created":1794749979757},"agent":"general","model":{"providerID":"anthropic","modelID":"fake-model"},"summary":{"diffs":[]}}');
INSERT INTO "message" VALUES('msg_1df6f5c90001zluN8UFWZWt6wg','ses_e2090a3a1ffetWAEKGMxCYMYhA',1794749979792,1794749980889,'{"parentID":"msg_1df6f5c6c001v5JcjuXE1CQhaO","role":"assistant","mode":"general","agent":"general","path":{"cwd":"/home/user/project","root":"/"},"cost":0,"tokens":{"total":89,"input":3,"output":11,"reasoning":0,"cache":{"write":5,"read":70}},"modelID":"fake-model","providerID":"anthropic","time":{"created":1794749979792,"completed":1794749980888},"finish":"tool-calls"}');
INSERT INTO "message" VALUES('msg_1df6f60dd001JJy1TTE7vhJvHV','ses_e2090a3a1ffetWAEKGMxCYMYhA',1794749980893,1794749981018,'{"parentID":"msg_1df6f5c6c001v5JcjuXE1CQhaO","role":"assistant","mode":"general","agent":"general","path":{"cwd":"/home/user/project","root":"/"},"cost":0,"tokens":{"total":102,"input":4,"output":12,"reasoning":0,"cache":{"write":6,"read":80}},"modelID":"fake-model","providerID":"anthropic","time":{"created":1794749980893,"completed":1794749981016},"finish":"stop"}');
INSERT INTO "message" VALUES('msg_1df6f6178001p4f9z5xQCIk2Su','ses_e2090ac44ffeRxh9TZzNatan0E',1794749981048,1794749981140,'{"parentID":"msg_1df6f558a001CFs7VYhyBBCfAk","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/user/project","root":"/"},"cost":0,"tokens":{"total":2474,"input":22,"output":32,"reasoning":0,"cache":{"write":220,"read":2200}},"modelID":"fake-model","providerID":"anthropic","time":{"created":1794749981048,"completed":1794749981139},"finish":"tool-calls"}');
INSERT INTO "message" VALUES('msg_1df6f61d6001Mibit5gDaAx98X','ses_e2090ac44ffeRxh9TZzNatan0E',1794749981142,1794749981217,'{"parentID":"msg_1df6f558a001CFs7VYhyBBCfAk","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/user/project","root":"/"},"cost":0,"tokens":{"total":2586,"input":23,"output":33,"reasoning":0,"cache":{"write":230,"read":2300}},"modelID":"fake-model","providerID":"anthropic","time":{"created":1794749981142,"completed":1794749981216},"finish":"stop"}');
INSERT INTO "message" VALUES('msg_1df6f6c2d0016bgBaRFwZE2e2J','ses_e209093e4ffebVAVMYwIIYHZLz',1794749977995,1794749983791,'{"role":"user","time":{"created":1794749977995},"agent":"build","model":{"providerID":"anthropic","modelID":"fake-model"},"summary":{"diffs":[]}}');
INSERT INTO "message" VALUES('msg_1df6f6c35001FvyrZS4uXLwhcx','ses_e209093e4ffebVAVMYwIIYHZLz',1794749979362,1794749983799,'{"parentID":"msg_1df6f6c2d0016bgBaRFwZE2e2J","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/user/project","root":"/"},"cost":0,"tokens":{"total":2362,"input":21,"output":31,"reasoning":0,"cache":{"write":210,"read":2100}},"modelID":"fake-model","providerID":"anthropic","time":{"created":1794749979362,"completed":1794749981044},"finish":"tool-calls"}');
INSERT INTO "message" VALUES('msg_1df6f6c84001035ua1zya8i4I1','ses_e209093e4ffebVAVMYwIIYHZLz',1794749981048,1794749983878,'{"parentID":"msg_1df6f6c2d0016bgBaRFwZE2e2J","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/user/project","root":"/"},"cost":0,"tokens":{"total":2474,"input":22,"output":32,"reasoning":0,"cache":{"write":220,"read":2200}},"modelID":"fake-model","providerID":"anthropic","time":{"created":1794749981048,"completed":1794749981139},"finish":"tool-calls"}');
INSERT INTO "message" VALUES('msg_1df6f6c9a001wrjb4oKLhNKoDb','ses_e209093e4ffebVAVMYwIIYHZLz',1794749981142,1794749983899,'{"parentID":"msg_1df6f6c2d0016bgBaRFwZE2e2J","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/user/project","root":"/"},"cost":0,"tokens":{"total":2586,"input":23,"output":33,"reasoning":0,"cache":{"write":230,"read":2300}},"modelID":"fake-model","providerID":"anthropic","time":{"created":1794749981142,"completed":1794749981216},"finish":"stop"}');
INSERT INTO "message" VALUES('msg_1df6f6cf2001AtEF5YoPmc2XQT','ses_e209093e4ffebVAVMYwIIYHZLz',1794749983986,1794749985115,'{"role":"user","time":{"created":1794749983986},"agent":"build","model":{"providerID":"anthropic","modelID":"fake-model"},"summary":{"diffs":[]}}');
INSERT INTO "message" VALUES('msg_1df6f7127001xINSLvJIahCzV8','ses_e209093e4ffebVAVMYwIIYHZLz',1794749985063,1794749986233,'{"parentID":"msg_1df6f6cf2001AtEF5YoPmc2XQT","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/user/project","root":"/"},"cost":0,"tokens":{"total":2698,"input":24,"output":34,"reasoning":0,"cache":{"write":240,"read":2400}},"modelID":"fake-model","providerID":"anthropic","time":{"created":1794749985063,"completed":1794749986231},"finish":"stop"}');
INSERT INTO "message" VALUES('msg_1df6f7faf001PhX5X9Nk2eK6v6','ses_e2090ac44ffeRxh9TZzNatan0E',1794749988783,1794749990276,'{"role":"user","time":{"created":1794749988783},"agent":"build","model":{"providerID":"anthropic","modelID":"fake-model"},"summary":{"diffs":[]}}');
INSERT INTO "message" VALUES('msg_1df6f8546001uCgnWoCgy3LwYY','ses_e2090ac44ffeRxh9TZzNatan0E',1794749990214,1794749991390,'{"parentID":"msg_1df6f7faf001PhX5X9Nk2eK6v6","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/user/project","root":"/"},"cost":0,"tokens":{"total":2810,"input":25,"output":35,"reasoning":0,"cache":{"write":250,"read":2500}},"modelID":"fake-model","providerID":"anthropic","time":{"created":1794749990214,"completed":1794749991389},"finish":"stop"}');
INSERT INTO "message" VALUES('msg_1df6f9822001pTTQcii6LoggW1','ses_e2090ac44ffeRxh9TZzNatan0E',1794749995042,1794749997404,'{"role":"user","time":{"created":1794749995042},"agent":"build","model":{"providerID":"anthropic","modelID":"fake-model"},"summary":{"diffs":[]}}');
INSERT INTO "message" VALUES('msg_1df6fa0ae001STHx61nk1RYhy6','ses_e2090ac44ffeRxh9TZzNatan0E',1794749997231,1794749999747,'{"parentID":"msg_1df6f9822001pTTQcii6LoggW1","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/user/project","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"modelID":"fake-model","providerID":"anthropic","time":{"created":1794749997231,"completed":1794749999698},"error":{"name":"APIError","data":{"message":"no such thing","statusCode":400,"isRetryable":false,"responseHeaders":{"content-length":"127","content-type":"application/json","request-id":"req_01uTjpFsZZMiPHv059lw5F4t"},"responseBody":"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"no such thing\"},\"request_id\":\"req_01gFcrjq2Y2yq445GMgYcPMd\"}","metadata":{"url":"http://127.0.0.1:8000/v1/messages"}}}}');
INSERT INTO "message" VALUES('msg_1df6fd7c5001aAr9riMu05l1dB','ses_e2090ac44ffeRxh9TZzNatan0E',1794750011333,1794750014525,'{"role":"user","time":{"created":1794750011333},"agent":"build","model":{"providerID":"anthropic","modelID":"fake-model"},"summary":{"diffs":[]}}');
INSERT INTO "message" VALUES('msg_1df6fe3a9001SEZS6EKRVN7GVI','ses_e2090ac44ffeRxh9TZzNatan0E',1794750014377,1794750015999,'{"parentID":"msg_1df6fd7c5001aAr9riMu05l1dB","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/user/project","root":"/"},"cost":0,"tokens":{"total":2922,"input":26,"output":36,"reasoning":0,"cache":{"write":260,"read":2600}},"modelID":"fake-model","providerID":"anthropic","time":{"created":1794750014377,"completed":1794750015996},"finish":"stop"}');
INSERT INTO "part" VALUES('prt_1df6f5598001JzSX7sY3ydp0BI','msg_1df6f558a001CFs7VYhyBBCfAk','ses_e2090ac44ffeRxh9TZzNatan0E',1794749978017,1794749978020,'{"type":"text","text":"\"How many files?\""}');
INSERT INTO "part" VALUES('prt_1df6f5c3b001wNXqVWtmuUxE6E','msg_1df6f5ae1001KodjnViqxBKUeW','ses_e2090ac44ffeRxh9TZzNatan0E',1794749979707,1794749979709,'{"type":"step-start"}');
INSERT INTO "part" VALUES('prt_1df6f5c3f00162a4MKOguXrQPG','msg_1df6f5ae1001KodjnViqxBKUeW','ses_e2090ac44ffeRxh9TZzNatan0E',1794749979711,1794749979717,'{"type":"reasoning","text":"A helper should count.","time":{"start":1794749979711,"end":1794749979715},"metadata":{"anthropic":{"signature":"RmFrZQ=="}}}');
INSERT INTO "part" VALUES('prt_1df6f5c46001gCl3SDRNxTdkJl','msg_1df6f5ae1001KodjnViqxBKUeW','ses_e2090ac44ffeRxh9TZzNatan0E',1794749979718,1794749979725,'{"type":"text","text":"I ask a helper.","time":{"start":1794749979718,"end":1794749979724}}');
INSERT INTO "part" VALUES('prt_1df6f5c4f001dp0GAz7F96nS4n','msg_1df6f5ae1001KodjnViqxBKUeW','ses_e2090ac44ffeRxh9TZzNatan0E',1794749979728,1794749981035,'{"type":"tool","tool":"task","callID":"toolu_01nuoOkj1Hupo5QIl0hv2CGA","state":{"status":"completed","input":{"description":"count files","prompt":"Count the files","subagent_type":"general"},"output":"<task id=\"ses_e2090a3a1ffetWAEKGMxCYMYhA\" state=\"completed\">\n<task_result>\nThere is 1 file.\n</task_result>\n</task>","metadata":{"parentSessionId":"ses_e2090ac44ffeRxh9TZzNatan0E","sessionId":"ses_e2090a3a1ffetWAEKGMxCYMYhA","model":{"modelID":"fake-model","providerID":"anthropic"},"truncated":false},"title":"count files","time":{"start":1794749979749,"end":1794749981034}}}');
INSERT INTO "part" VALUES('prt_1df6f5c71001GRkSICsb4cUWbz','msg_1df6f5c6c001v5JcjuXE1CQhaO','ses_e2090a3a1ffetWAEKGMxCYMYhA',1794749979763,1794749979765,'{"type":"text","text":"Count the files"}');
INSERT INTO "part" VALUES('prt_1df6f5f96001XAKLQmasiYG3IK','msg_1df6f5c90001zluN8UFWZWt6wg','ses_e2090a3a1ffetWAEKGMxCYMYhA',1794749980567,1794749980601,'{"type":"step-start"}');
INSERT INTO "part" VALUES('prt_1df6f5fbb0017vdRZCN7NCJrTP','msg_1df6f5c90001zluN8UFWZWt6wg','ses_e2090a3a1ffetWAEKGMxCYMYhA',1794749980604,1794749980618,'{"type":"text","text":"I look.","time":{"start":1794749980603,"end":1794749980615}}');
INSERT INTO "part" VALUES('prt_1df6f5fcd001vN6jLExVgO0N3y','msg_1df6f5c90001zluN8UFWZWt6wg','ses_e2090a3a1ffetWAEKGMxCYMYhA',1794749980621,1794749980876,'{"type":"tool","tool":"bash","callID":"toolu_01J6fTBasEq6tPtS7Sn3PYsb","state":{"status":"completed","input":{"command":"ls | wc -l","description":"count files"},"output":"1\n","metadata":{"output":"1\n","exit":0,"truncated":false},"title":"ls | wc -l","time":{"start":1794749980637,"end":1794749980875}}}');
INSERT INTO "part" VALUES('prt_1df6f60d0001pOjQRtdxR9Ki2w','msg_1df6f5c90001zluN8UFWZWt6wg','ses_e2090a3a1ffetWAEKGMxCYMYhA',1794749980880,1794749980882,'{"reason":"tool-calls","type":"step-finish","tokens":{"total":89,"input":3,"output":11,"reasoning":0,"cache":{"write":5,"read":70}},"cost":0}');
INSERT INTO "part" VALUES('prt_1df6f613f001Gtf668JJFEeLqc','msg_1df6f60dd001JJy1TTE7vhJvHV','ses_e2090a3a1ffetWAEKGMxCYMYhA',1794749980991,1794749980993,'{"type":"step-start"}');
INSERT INTO "part" VALUES('prt_1df6f6143001SJUYKjiEiG753v','msg_1df6f60dd001JJy1TTE7vhJvHV','ses_e2090a3a1ffetWAEKGMxCYMYhA',1794749980995,1794749981004,'{"type":"text","text":"There is 1 file.","time":{"start":1794749980995,"end":1794749981001}}');
INSERT INTO "part" VALUES('prt_1df6f614f0017msfYyoZ0sFMMa','msg_1df6f60dd001JJy1TTE7vhJvHV','ses_e2090a3a1ffetWAEKGMxCYMYhA',1794749981007,1794749981009,'{"reason":"stop","type":"step-finish","tokens":{"total":102,"input":4,"output":12,"reasoning":0,"cache":{"write":6,"read":80}},"cost":0}');
INSERT INTO "part" VALUES('prt_1df6f616f0012KTqUoWxGN1n6S','msg_1df6f5ae1001KodjnViqxBKUeW','ses_e2090ac44ffeRxh9TZzNatan0E',1794749981039,1794749981040,'{"reason":"tool-calls","type":"step-finish","tokens":{"total":2362,"input":21,"output":31,"reasoning":0,"cache":{"write":210,"read":2100}},"cost":0}');
INSERT INTO "part" VALUES('prt_1df6f61b6001csuhoHZqg2bCJ3','msg_1df6f6178001p4f9z5xQCIk2Su','ses_e2090ac44ffeRxh9TZzNatan0E',1794749981110,1794749981111,'{"type":"step-start"}');
INSERT INTO "part" VALUES('prt_1df6f61b8001W1leHEW5a8XICv','msg_1df6f6178001p4f9z5xQCIk2Su','ses_e2090ac44ffeRxh9TZzNatan0E',1794749981112,1794749981118,'{"type":"text","text":"And I read one that is not there.","time":{"start":1794749981112,"end":1794749981118}}');
INSERT INTO "part" VALUES('prt_1df6f61bf001bEmOpRfhDeRFtm','msg_1df6f6178001p4f9z5xQCIk2Su','ses_e2090ac44ffeRxh9TZzNatan0E',1794749981120,1794749981133,'{"type":"tool","tool":"read","callID":"toolu_01vUoHrEPzM6o8y1KCoYY2Lr","state":{"status":"error","input":{"filePath":"/home/user/project/gone.txt"},"error":"File not found: /home/user/project/gone.txt","time":{"start":1794749981127,"end":1794749981132}}}');
INSERT INTO "part" VALUES('prt_1df6f61cf001BY9Dia88o8Vfby','msg_1df6f6178001p4f9z5xQCIk2Su','ses_e2090ac44ffeRxh9TZzNatan0E',1794749981135,1794749981136,'{"reason":"tool-calls","type":"step-finish","tokens":{"total":2474,"input":22,"output":32,"reasoning":0,"cache":{"write":220,"read":2200}},"cost":0}');
INSERT INTO "part" VALUES('prt_1df6f620800165ztYC6Ff8WOQ9','msg_1df6f61d6001Mibit5gDaAx98X','ses_e2090ac44ffeRxh9TZzNatan0E',1794749981192,1794749981193,'{"type":"step-start"}');
INSERT INTO "part" VALUES('prt_1df6f620a001Alg2As3MmGd8Ht','msg_1df6f61d6001Mibit5gDaAx98X','ses_e2090ac44ffeRxh9TZzNatan0E',1794749981195,1794749981200,'{"type":"text","text":"One file.","time":{"start":1794749981194,"end":1794749981199}}');
INSERT INTO "part" VALUES('prt_1df6f6217001WgZj3jI1kietM2','msg_1df6f61d6001Mibit5gDaAx98X','ses_e2090ac44ffeRxh9TZzNatan0E',1794749981208,1794749981210,'{"reason":"stop","type":"step-finish","tokens":{"total":2586,"input":23,"output":33,"reasoning":0,"cache":{"write":230,"read":2300}},"cost":0}');
INSERT INTO "part" VALUES('prt_1df6f6c30001oqD87hO4Bd2gei','msg_1df6f6c2d0016bgBaRFwZE2e2J','ses_e209093e4ffebVAVMYwIIYHZLz',1794749983793,1794749983795,'{"type":"text","text":"\"How many files?\""}');
INSERT INTO "part" VALUES('prt_1df6f6c38001Cy7akRiCnh3m3U','msg_1df6f6c35001FvyrZS4uXLwhcx','ses_e209093e4ffebVAVMYwIIYHZLz',1794749983801,1794749983802,'{"type":"step-start"}');
INSERT INTO "part" VALUES('prt_1df6f6c3b001O6UVnfpKiLYtSh','msg_1df6f6c35001FvyrZS4uXLwhcx','ses_e209093e4ffebVAVMYwIIYHZLz',1794749983804,1794749983806,'{"type":"reasoning","text":"A helper should count.","time":{"start":1794749979711,"end":1794749979715},"metadata":{"anthropic":{"signature":"RmFrZQ=="}}}');
INSERT INTO "part" VALUES('prt_1df6f6c3f0018NQJw5yRmVFX9V','msg_1df6f6c35001FvyrZS4uXLwhcx','ses_e209093e4ffebVAVMYwIIYHZLz',1794749983807,1794749983809,'{"type":"text","text":"I ask a helper.","time":{"start":1794749979718,"end":1794749979724}}');
INSERT INTO "part" VALUES('prt_1df6f6c7a001VgwjdqfEiL6M0t','msg_1df6f6c35001FvyrZS4uXLwhcx','ses_e209093e4ffebVAVMYwIIYHZLz',1794749983866,1794749983868,'{"type":"tool","tool":"task","callID":"toolu_01nuoOkj1Hupo5QIl0hv2CGA","state":{"status":"completed","input":{"description":"count files","prompt":"Count the files","subagent_type":"general"},"output":"<task id=\"ses_e2090a3a1ffetWAEKGMxCYMYhA\" state=\"completed\">\n<task_result>\nThere is 1 file.\n</task_result>\n</task>","metadata":{"parentSessionId":"ses_e2090ac44ffeRxh9TZzNatan0E","sessionId":"ses_e2090a3a1ffetWAEKGMxCYMYhA","model":{"modelID":"fake-model","providerID":"anthropic"},"truncated":false},"title":"count files","time":{"start":1794749979749,"end":1794749981034}}}');
INSERT INTO "part" VALUES('prt_1df6f6c7d001cCwluM4BHvFAP8','msg_1df6f6c35001FvyrZS4uXLwhcx','ses_e209093e4ffebVAVMYwIIYHZLz',1794749983869,1794749983871,'{"reason":"tool-calls","type":"step-finish","tokens":{"total":2362,"input":21,"output":31,"reasoning":0,"cache":{"write":210,"read":2100}},"cost":0}');
INSERT INTO "part" VALUES('prt_1df6f6c87001FMHMu1Q0wiwt1s','msg_1df6f6c84001035ua1zya8i4I1','ses_e209093e4ffebVAVMYwIIYHZLz',1794749983879,1794749983880,'{"type":"step-start"}');
INSERT INTO "part" VALUES('prt_1df6f6c89001aROtKZsS6Z75l4','msg_1df6f6c84001035ua1zya8i4I1','ses_e209093e4ffebVAVMYwIIYHZLz',1794749983881,1794749983882,'{"type":"text","text":"And I read one that is not there.","time":{"start":1794749981112,"end":1794749981118}}');
INSERT INTO "part" VALUES('prt_1df6f6c8b001PUhbPColsdlr0L','msg_1df6f6c84001035ua1zya8i4I1','ses_e209093e4ffebVAVMYwIIYHZLz',1794749983883,1794749983885,'{"type":"tool","tool":"read","callID":"toolu_01vUoHrEPzM6o8y1KCoYY2Lr","state":{"status":"error","input":{"filePath":"/home/user/project/gone.txt"},"error":"File not found: /home/user/project/gone.txt","time":{"start":1794749981127,"end":1794749981132}}}');
INSERT INTO "part" VALUES('prt_1df6f6c8e001zdPd78bOa24tfP','msg_1df6f6c84001035ua1zya8i4I1','ses_e209093e4ffebVAVMYwIIYHZLz',1794749983886,1794749983887,'{"reason":"tool-calls","type":"step-finish","tokens":{"total":2474,"input":22,"output":32,"reasoning":0,"cache":{"write":220,"read":2200}},"cost":0}');
INSERT INTO "part" VALUES('prt_1df6f6c9d0015AgTP9kEqg80w7','msg_1df6f6c9a001wrjb4oKLhNKoDb','ses_e209093e4ffebVAVMYwIIYHZLz',1794749983901,1794749983902,'{"type":"step-start"}');
INSERT INTO "part" VALUES('prt_1df6f6c9f001UnnAbj9Mg0Hy6u','msg_1df6f6c9a001wrjb4oKLhNKoDb','ses_e209093e4ffebVAVMYwIIYHZLz',1794749983903,1794749983905,'{"type":"text","text":"One file.","time":{"start":1794749981194,"end":1794749981199}}');
INSERT INTO "part" VALUES('prt_1df6f6ca2001mCMHdgRjiTWs65','msg_1df6f6c9a001wrjb4oKLhNKoDb','ses_e209093e4ffebVAVMYwIIYHZLz',1794749983906,1794749983907,'{"reason":"stop","type":"step-finish","tokens":{"total":2586,"input":23,"output":33,"reasoning":0,"cache":{"write":230,"read":2300}},"cost":0}');
INSERT INTO "part" VALUES('prt_1df6f6cf9001uyURGBRuY5aVwe','msg_1df6f6cf2001AtEF5YoPmc2XQT','ses_e209093e4ffebVAVMYwIIYHZLz',1794749983997,1794749983999,'{"type":"text","text":"\"In a fork?\""}');
INSERT INTO "part" VALUES('prt_1df6f758f001rlS0TbKhJWwyTm','msg_1df6f7127001xINSLvJIahCzV8','ses_e209093e4ffebVAVMYwIIYHZLz',1794749986192,1794749986195,'{"type":"step-start"}');
INSERT INTO "part" VALUES('prt_1df6f7596001uWnneCg1Jspzjt','msg_1df6f7127001xINSLvJIahCzV8','ses_e209093e4ffebVAVMYwIIYHZLz',1794749986199,1794749986210,'{"type":"text","text":"Forked answer.","time":{"start":1794749986198,"end":1794749986208}}');
INSERT INTO "part" VALUES('prt_1df6f75aa001GGmw4YXRY6EZtd','msg_1df6f7127001xINSLvJIahCzV8','ses_e209093e4ffebVAVMYwIIYHZLz',1794749986218,1794749986220,'{"reason":"stop","type":"step-finish","tokens":{"total":2698,"input":24,"output":34,"reasoning":0,"cache":{"write":240,"read":2400}},"cost":0}');
INSERT INTO "part" VALUES('prt_1df6f7fb2001eL7jAHzvld3ABj','msg_1df6f7faf001PhX5X9Nk2eK6v6','ses_e2090ac44ffeRxh9TZzNatan0E',1794749988796,1794749988798,'{"type":"text","text":"\"And then?\""}');
INSERT INTO "part" VALUES('prt_1df6f89be001skY2k3f0FxnfNU','msg_1df6f8546001uCgnWoCgy3LwYY','ses_e2090ac44ffeRxh9TZzNatan0E',1794749991358,1794749991361,'{"type":"step-start"}');
INSERT INTO "part" VALUES('prt_1df6f89c4001fvDe7fcdpt35Ea','msg_1df6f8546001uCgnWoCgy3LwYY','ses_e2090ac44ffeRxh9TZzNatan0E',1794749991364,1794749991373,'{"type":"text","text":"Original goes on.","time":{"start":1794749991364,"end":1794749991371}}');
INSERT INTO "part" VALUES('prt_1df6f89d3001dET4CXcoRVNVtY','msg_1df6f8546001uCgnWoCgy3LwYY','ses_e2090ac44ffeRxh9TZzNatan0E',1794749991380,1794749991381,'{"reason":"stop","type":"step-finish","tokens":{"total":2810,"input":25,"output":35,"reasoning":0,"cache":{"write":250,"read":2500}},"cost":0}');
INSERT INTO "part" VALUES('prt_1df6f982d001xFhQYvD016gGF1','msg_1df6f9822001pTTQcii6LoggW1','ses_e2090ac44ffeRxh9TZzNatan0E',1794749995086,1794749995088,'{"type":"text","text":"\"Fail please\""}');
INSERT INTO "part" VALUES('prt_1df6fd7d00019a1SqXVsjPj534','msg_1df6fd7c5001aAr9riMu05l1dB','ses_e2090ac44ffeRxh9TZzNatan0E',1794750011371,1794750011382,'{"type":"text","text":"After?"}');
INSERT INTO "part" VALUES('prt_1df6fe9d0001txXte5U71e3Xzr','msg_1df6fe3a9001SEZS6EKRVN7GVI','ses_e2090ac44ffeRxh9TZzNatan0E',1794750015952,1794750015955,'{"type":"step-start"}');
INSERT INTO "part" VALUES('prt_1df6fe9d9001RiBZFEav2Zm7sh','msg_1df6fe3a9001SEZS6EKRVN7GVI','ses_e2090ac44ffeRxh9TZzNatan0E',1794750015961,1794750015976,'{"type":"text","text":"Summary of the work.","time":{"start":1794750015961,"end":1794750015974}}');
INSERT INTO "part" VALUES('prt_1df6fe9ef001oOG059k950j6fv','msg_1df6fe3a9001SEZS6EKRVN7GVI','ses_e2090ac44ffeRxh9TZzNatan0E',1794750015983,1794750015985,'{"reason":"stop","type":"step-finish","tokens":{"total":2922,"input":26,"output":36,"reasoning":0,"cache":{"write":260,"read":2600}},"cost":0}');
