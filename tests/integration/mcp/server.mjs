// An MCP server on standard input and output that does what its arguments say, good and bad. No dependencies.
//
//   node server.mjs [--era legacy|modern|both] [--log FILE] [--fault NAME] [--tools N] [--mark TEXT] [--ttl MS] [--until FILE]
//
// --until: a task works, and `form {ask: [hang]}` does, until that file is there.
// --ttl: its list stays fresh for so long, and --log notes when it is asked for.
// --mark is not looked at: a test finds the process by it.
//
// Tools: form {ask}, form_once: ask a person for the forms that are named (roots: for the roots; say:TEXT: a model), and answer with what they got; steps {n}: as
// many notifications of progress; rich, picture: blocks of all kinds; echo {text}; add {a, b}; count {by}: appends a line to --log, so that a test can count effects; slow {ms};
// fail; structured; work {by}: as a task only (2025-11-25); and what --fault adds.
import { appendFileSync, existsSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { dirname } from 'node:path';
import { until } from '../../kit/until.mjs';

const args = process.argv.slice(2);
const option = (name, otherwise) => {
    const at = args.indexOf('--' + name);
    return at < 0 ? otherwise : args[at + 1];
};
const era = option('era', 'legacy');
const log = option('log', '');
const fault = option('fault', '');
const nTools = Number(option('tools', 0));
const modern = '2026-07-28';
let cancelled = new Set();
let changed = false;

const put = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
const answer = (id, result) => put({ id, result: era === 'legacy' ? result : { resultType: 'complete', ...result } });
const text = (id, words, more = {}) => answer(id, { content: [{ type: 'text', text: words }], ...more });
const object = (properties, required = []) => ({ type: 'object', properties, required, additionalProperties: false });

const tools = [
    { name: 'echo', description: 'Say it again.', inputSchema: object({ text: { type: 'string' } }, ['text']),
      annotations: { readOnlyHint: true } },
    { name: 'add', description: 'Add two numbers.', annotations: { readOnlyHint: true },
      inputSchema: object({ a: { type: 'number' }, b: { type: 'number' } }, ['a', 'b']),
      outputSchema: { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] } },
    { name: 'count', description: 'Count an effect.', inputSchema: object({ by: { type: 'integer' } }) },
    { name: 'count_once', description: 'Count an effect, by key once.', annotations: { idempotentHint: true },
      inputSchema: object({ by: { type: 'integer' } }) },
    { name: 'slow', description: 'Wait.', inputSchema: object({ ms: { type: 'integer' } }, ['ms']) },
    { name: 'fail', description: 'Fail.', inputSchema: object({}) },
    { name: 'wrong_output', description: 'Promise and break it.', inputSchema: object({}),
      outputSchema: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } },
    { name: 'no_output', description: 'Promise and forget it.', inputSchema: object({}), outputSchema: { type: 'object' } },
    { name: 'refused', description: 'Be refused.', inputSchema: object({}) },
    { name: 'remove', description: 'Destroy.', inputSchema: object({}), annotations: { destructiveHint: true } },
    { name: 'environment', description: 'Names of variables.', inputSchema: object({}) },
    { name: 'form', description: 'Ask a person, by names of forms.', annotations: { idempotentHint: true },
      inputSchema: object({ ask: { type: 'array', items: { type: 'string' } } }) },
    { name: 'form_once', description: 'The same, with an effect.',
      inputSchema: object({ ask: { type: 'array', items: { type: 'string' } } }) },
    { name: 'steps', description: 'Tell of progress.', annotations: { readOnlyHint: true },
      inputSchema: object({ n: { type: 'integer' } }) },
    { name: 'work', description: 'Work as a task.', execution: { taskSupport: 'required' },
      inputSchema: object({ by: { type: 'integer' } }) },
    { name: 'rich', description: 'Answer with data, and with what a model should read.', inputSchema: object({}),
      annotations: { readOnlyHint: true } },
    { name: 'picture', description: 'Answer with more than text.', inputSchema: object({}) },
];
for (let i = 0; i < nTools; i++)
    tools.push({ name: `tool_${i}`, description: `Tool number ${i}.`, inputSchema: object({ n: { type: 'integer' } }) });

function list(id, params) {
    if (fault === 'loop')
        return answer(id, { tools: [], nextCursor: 'again' });
    if (fault === 'endless-pages')
        return answer(id, { tools: [], nextCursor: 'page' + Math.random() });
    if (fault === 'bad-tools')
        return answer(id, { tools: [
            ...tools, tools[0], { name: 'no schema' }, 7, null, { name: 'no_schema' },
            { name: 'bad_schema', inputSchema: { type: 'object', properties: 5 } },
            { name: 'array', inputSchema: { type: 'array' } },
            { name: 'x'.repeat(200), inputSchema: { type: 'object' } },
        ] });
    const ttl = option('ttl', '') ? { ttlMs: Number(option('ttl')), cacheScope: 'private' } : {};
    if (ttl.ttlMs !== undefined) note({ list: params?.cursor ?? 'first' });
    const from = Number(params?.cursor ?? 0);
    const to = from + 40;
    if (changed)
        return answer(id, { tools: [{ name: 'other', inputSchema: object({}) }], ...ttl });
    answer(id, { tools: tools.slice(from, to), ...ttl, ...(to < tools.length ? { nextCursor: String(to) } : {}) });
}

const endless = (piece) => {
    const more = () => { while (process.stdout.write(piece)); process.stdout.once('drain', more); };
    more();
};

const faults = {
    exit: () => process.exit(7),
    'signal': () => process.kill(process.pid, 'SIGKILL'),
    'close-stdout': () => { process.stdout.end(); setInterval(() => {}, 1000); },
    silence: () => {},
    'endless-line': () => endless('x'.repeat(65536)),
    'huge-message': (id) => {
        process.stdout.write(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`);
        endless('y'.repeat(65536));
    },
    'line-above-limit': (id) => { // by a byte: its end comes with what is too much
        const head = `{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`;
        process.stdout.write(`${head}${'y'.repeat((16 << 20) + 1 - head.length - 5)}"}]}}\n`);
    },
    'invalid-utf8': (id) => process.stdout.write(Buffer.concat([
        Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`),
        Buffer.from([0xff, 0xfe, 0xc0]), Buffer.from('"}]}}\n')])),
    'not-json': (id) => { process.stdout.write('starting up...\n\n\r\n{broken\n[1,\n'); text(id, 'still here'); },
    'wrong-id': (id) => {
        for (const wrong of [id + 1000, String(id), -1, 0, 1.5, null, { a: 1 }, [id]])
            put({ id: wrong, result: { content: [{ type: 'text', text: 'wrong' }] } });
        text(id, 'right');
    },
    twice: (id) => { text(id, 'first'); text(id, 'second'); put({ id, error: { code: 1, message: 'third' } }); },
    changes: (id) => { changed = true; put({ method: 'notifications/tools/list_changed' }); text(id, 'changed'); },
    flood: (id) => {
        for (let i = 0; i < 20000; i++)
            put({ method: 'notifications/message', params: { level: 'info', data: 'n'.repeat(100) } });
        text(id, 'after the flood');
    },
    'progress-flood': (id, params) => {
        for (let i = 0; i < 20000; i++)
            put({ method: 'notifications/progress',
                  params: { progressToken: params?._meta?.progressToken, progress: i % 7, message: 'p' } });
        text(id, 'after the progress');
    },
    requests: (id) => {
        for (let i = 0; i < 500; i++) {
            put({ id: 'r' + i, method: 'sampling/createMessage', params: {} });
            put({ id: 's' + i, method: 'ping' });
        }
        text(id, 'asked');
    },
    stderr: (id) => {
        for (let i = 0; i < 20000; i++) process.stderr.write('e'.repeat(200) + '\n');
        process.stderr.write('z'.repeat(1 << 20));
        text(id, 'after the errors');
    },
    zombies: (id) => {
        for (let i = 0; i < 20; i++)
            spawn('sleep', ['600'], { stdio: ['ignore', 'inherit', 'inherit'], detached: false });
        text(id, 'left children');
    },
    'bad-result': (id) => put({ id, result: 'not an object' }),
    'bad-content': (id) => answer(id, { content: 'text' }),
    'input-required': (id) => put({ id, result: { resultType: 'input_required', inputRequests: { a: {} } } }),
    again: (id, params) => params.requestState === 'abc'
        ? text(id, 'answered with the state')
        : put({ id, result: { resultType: 'input_required', requestState: 'abc' } }),
    'again-and-again': (id) => put({ id, result: { resultType: 'input_required', requestState: 'abc' } }),
    task: (id, params) => begin(id, params),
    'task-endless': (id, params) => begin(id, params),
    'task-lost': (id) => put({ id, result: { resultType: 'task', taskId: 'lost', status: 'working', pollIntervalMs: 1 } }),
    'task-fails': (id, params) => begin(id, params),
    'task-asks': (id, params) => begin(id, params),
    rpc: (id) => put({ id, error: { code: -32602, message: 'no such argument' } }),
    deep: (id) => process.stdout.write(`{"jsonrpc":"2.0","id":${id},"result":${'['.repeat(5000)}${']'.repeat(5000)}}\n`),
};

// Tasks: the first question for one says that it works, the second one how it ended.
// In the era before, a client asks for one with `task`, and for its result with tasks/result. The tool `work` needs one:
// its effect is counted when the task begins, and --fault says how it ends.
const tasks = new Map();
const isEarly = () => option('until', '') && !existsSync(option('until'));
const updates = new Map(); // answers that tasks have got
const ends = { 'task-fails': 'failed', 'task-lost': 'lost', 'task-asks': 'input_required', 'task-cancelled': 'cancelled' };
const shown = (taskId, status) => ({ taskId, status, createdAt: '2026-01-01T00:00:00Z', lastUpdatedAt: '2026-01-01T00:00:00Z',
                                     ttl: null, pollInterval: 1 });
function work(id, params) {
    if (!params.task) return put({ id, error: { code: -32601, message: 'this tool needs a task' } });
    const taskId = `täsk ${tasks.size}`;
    note({ by: params.arguments.by, key: params._meta?.['dev.reeve/idempotency-key'] });
    tasks.set(taskId, 0);
    put({ id, result: { task: shown(taskId, 'working') } });
}
function workTold(id, taskId) {
    const n = tasks.get(taskId);
    if (n === undefined || (n > 0 && fault === 'task-lost'))
        return put({ id, error: { code: -32602, message: 'there is no such task' } });
    tasks.set(taskId, n + 1);
    const works = n === 0 || fault === 'task-endless' || isEarly();
    put({ id, result: shown(taskId, works ? 'working' : ends[fault] ?? 'completed') });
}
function workEnd(id, taskId) {
    const about = { _meta: { 'io.modelcontextprotocol/related-task': { taskId } } };
    const give = (words, more) => put({ id, result: { content: [{ type: 'text', text: words }], ...about, ...more } });
    note({ result: taskId });
    if (fault === 'task-fails') return give('it broke', { isError: true });
    if (fault !== 'task-asks') return give('the work is done');
    waiting.set('of a task', (m) => { note({ answer: m.result }); give(JSON.stringify(m.result.content)); });
    put({ id: 'of a task', method: 'elicitation/create', params: { ...forms.name, ...about } });
}
function begin(id, params) {
    const taskId = `täsk ${tasks.size}`;
    note({ begun: params.name, declared: params._meta['io.modelcontextprotocol/clientCapabilities'].extensions });
    tasks.set(taskId, 0);
    put({ id, result: { resultType: 'task', taskId, status: 'working', ttlMs: null, pollIntervalMs: 1 } });
}
function told(id, taskId) {
    const n = tasks.get(taskId);
    if (n === undefined) return put({ id, error: { code: -32602, message: 'there is no such task' } });
    tasks.set(taskId, n + 1);
    note({ asked: taskId });
    const base = { resultType: 'complete', taskId, pollIntervalMs: 1 };
    if (n === 0 || fault === 'task-endless' || (updates.has(taskId) && isEarly())) return put({ id, result: { ...base, status: 'working' } });
    if (fault === 'task-fails') return put({ id, result: { ...base, status: 'failed', error: { code: -32603, message: 'it broke' } } });
    if (fault === 'task-asks' && !updates.has(taskId)) return put({ id, result: { ...base, status: 'input_required', inputRequests: { a: wants('name') } } });
    const words = updates.has(taskId) ? JSON.stringify(updates.get(taskId)) : 'the task is done';
    put({ id, result: { ...base, status: 'completed', result: { content: [{ type: 'text', text: words }] } } });
}

// What a person may be asked, as the server of either era asks it.
const forms = {
    name: { message: 'What is your name?', requestedSchema: { type: 'object', required: ['name'],
            properties: { name: { type: 'string', minLength: 2 }, times: { type: 'integer', default: 3, maximum: 9 } } } },
    colour: { message: 'Which colour?', requestedSchema: { type: 'object',
              properties: { colour: { type: 'string', enum: ['red', 'blue'], default: 'blue' } } } },
    link: { mode: 'url', message: 'Log in.', url: 'https://example.com/', elicitationId: '1' },
};
const wants = (name) => name === 'roots' ? { method: 'roots/list' }
    : name.startsWith('say:') ? { method: 'sampling/createMessage', params: { maxTokens: 5,
        messages: [{ role: 'user', content: { type: 'text', text: name.slice(4) } }] } }
    : name === 'model' ? { method: 'sampling/createMessage', params: { messages: [], maxTokens: 5 } }
    : { method: 'elicitation/create', params: forms[name] ?? forms.name };
const note = (line) => log && appendFileSync(log, JSON.stringify(line) + '\n');
const waiting = new Map(); // questions of the old era: id of the question, what to do with its answer
let asked = 0;
const hang = (does, then) => does && isEarly() ? until(() => !isEarly(), dirname(option('until'))).then(then) : then();

function form(id, params) {
    const names = params.arguments.ask ?? [];
    const key = params._meta?.['dev.reeve/idempotency-key'];
    note({ call: params.name, key, state: params.requestState, responses: params.inputResponses });
    if (era !== 'legacy') {
        if (!params.inputResponses || names[0] === 'again')
            return put({ id, result: { resultType: 'input_required', requestState: 'state ' + names.join(),
                                       inputRequests: Object.fromEntries(names.filter((name) => name !== 'hang').map((name) =>
                                           [name, wants(name)])) } });
        if (names.includes('hang')) note({ responses: params.inputResponses });
        return hang(names.includes('hang'), () => {
            note({ effect: params.name, key });
            text(id, JSON.stringify(params.inputResponses));
        });
    }
    const got = {};
    const next = () => {
        const name = names[Object.keys(got).length];
        if (name === 'hang')
            return hang(true, () => { got.hang = true; next(); });
        if (!name) {
            note({ effect: params.name, key });
            return text(id, JSON.stringify(got));
        }
        const question = 'question ' + asked++;
        waiting.set(question, (m) => { got[name] = m.result ?? m.error; note({ answer: m.result ?? m.error }); next(); });
        put({ id: question, ...wants(name) });
    };
    next();
}

function call(id, params) {
    const given = params?.arguments ?? {};
    switch (params?.name) {
    case 'echo':
        if (faults[fault]) return faults[fault](id, params);
        return text(id, String(given.text));
    case 'add':
        return text(id, String(given.a + given.b), { structuredContent: { sum: given.a + given.b } });
    case 'count':
    case 'count_once':
        if (log) appendFileSync(log, JSON.stringify({ tool: params.name, by: given.by, key: params._meta?.['dev.reeve/idempotency-key'] }) + '\n');
        if (fault === 'exit-after-effect') process.exit(3);
        return setTimeout(() => text(id, JSON.stringify({ counted: given.by })), fault === 'late' ? 300 : 0);
    case 'work':
        return work(id, params);
    case 'slow':
        put({ method: 'notifications/progress',
              params: { progressToken: params._meta?.progressToken, progress: 1, total: 2, message: 'half' } });
        return setTimeout(() => { if (!cancelled.has(id)) text(id, 'slept'); }, given.ms);
    case 'fail':
        return text(id, 'it is broken', { isError: true });
    case 'wrong_output':
        return text(id, 'no number', { structuredContent: { n: 'x' } });
    case 'no_output':
        return text(id, 'no object');
    case 'environment':
        return text(id, Object.keys(process.env).join(' '));
    case 'remove':
        note({ tool: params.name, key: params._meta?.['dev.reeve/idempotency-key'] });
        return text(id, 'removed');
    case 'form':
    case 'form_once':
        return form(id, params);
    case 'steps':
        for (let i = 1; i <= given.n; i++)
            put({ method: 'notifications/progress', params: { progressToken: params._meta?.progressToken, progress: i,
                  total: given.n, message: 'step ' + i + '!'.repeat(2000) } });
        put({ method: 'notifications/progress', params: { progressToken: 999999, progress: 1 } });
        return text(id, 'done');
    case 'rich':
        return answer(id, { structuredContent: { rows: [1, 2, 3] }, _meta: { 'io.systemprompt/execution': { artifact_id: 'r-1' } }, content: [
            { type: 'text', text: 'three rows were found' },
            { type: 'text', text: 'for people only', annotations: { audience: ['user'] } },
            { type: 'image', data: 'AAAA', mimeType: 'image/png' },
            { type: 'resource_link', uri: 'stub://a', name: 'a', mimeType: 'text/plain' },
            { type: 'resource', resource: { uri: 'stub://b', text: 'the text of b' } },
        ] });
    case 'picture':
        return answer(id, { content: [{ type: 'image', data: 'AAAA', mimeType: 'image/png' },
                                      { type: 'text', text: 'a picture' }] });
    default:
        if (/^tool_\d+$/.test(params?.name)) return text(id, params.name);
        return put({ id, error: { code: -32602, message: 'unknown tool' } });
    }
}

function handle(m) {
    const { id, method, params } = m;
    const capabilities = { tools: { listChanged: true }, resources: {}, prompts: {},
                           ...(era === 'legacy' ? { tasks: { cancel: {}, requests: { tools: { call: {} } } } } : {}) };
    if (method === 'server/discover' && era !== 'legacy')
        return answer(id, { supportedVersions: [modern], capabilities });
    if (method === 'initialize' && fault === 'refuses')
        return put({ id, error: { code: -32601, message: 'not you' } });
    if (method === 'initialize' && era !== 'modern')
        return put({ id, result: { protocolVersion: option('version', params.protocolVersion), capabilities,
                                   serverInfo: { name: 'stub', version: '1' } } });
    if (method === undefined && waiting.has(id)) return void waiting.get(id)(m);
    if (method === 'notifications/cancelled') note({ cancelled: params.requestId });
    if (method === 'notifications/cancelled') return void cancelled.add(params.requestId);
    if (id === undefined || method === undefined) return;
    if (era === 'modern' && !params?._meta?.['io.modelcontextprotocol/protocolVersion'])
        return put({ id, error: { code: -32602, message: 'no protocol version' } });
    if (method === 'tools/list') return list(id, params);
    if (method === 'tasks/get') return (era === 'legacy' ? workTold : told)(id, params.taskId);
    if (method === 'tasks/update') {
        note({ updated: params.taskId });
        tasks.set(params.taskId, tasks.get(params.taskId) ?? 1); // one that outlives its process
        updates.set(params.taskId, params.inputResponses);
        return answer(id, {});
    }
    if (method === 'tasks/result') return workEnd(id, params.taskId);
    if (method === 'tasks/cancel') note({ cancelled: params.taskId });
    if (method === 'tasks/cancel') return answer(id, {});
    if (method === 'tools/call') return call(id, params);
    if (method === 'resources/list')
        return answer(id, { resources: [{ uri: 'stub://a', name: 'a' }, { uri: 'stub://b', name: 'b' }] });
    if (method === 'resources/templates/list')
        return answer(id, { resourceTemplates: [{ uriTemplate: 'stub://{name}', name: 'any' }] });
    if (method === 'resources/read')
        return params.uri === 'stub://a' ? answer(id, { contents: [{ uri: params.uri, text: 'the text of a' }] })
                                         : put({ id, error: { code: -32002, message: 'no such resource' } });
    if (method === 'prompts/list') return answer(id, { prompts: [{ name: 'p' }] });
    if (method === 'prompts/get')
        return answer(id, { messages: [{ role: 'user', content: { type: 'text', text: 'say ' + params.arguments?.x } }] });
    put({ id, error: { code: -32601, message: 'no method ' + method } });
}

if (fault === 'exit-at-start') { process.stderr.write('cannot find my configuration\n'); process.exit(1); }
if (fault === 'exit-in-line') { process.stderr.write('no licence file'); process.exit(3); }
if (fault === 'prints') endless('starting up\n'.repeat(8000));
let rest = '';
process.stdin.on('data', (bytes) => {
    rest += bytes;
    let end;
    while ((end = rest.indexOf('\n')) >= 0) {
        const line = rest.slice(0, end);
        rest = rest.slice(end + 1);
        if (line.trim() && fault !== 'prints') handle(JSON.parse(line));
    }
});
process.stdin.on('end', () => { if (fault !== 'never-ends') process.exit(0); });
if (fault === 'never-ends') { process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); }
