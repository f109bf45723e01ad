// `reeve mcp serve` and its worker are killed while the run of a task works: each at writes to the store, and both after
// the effect of a call whose answer has not come. Others on the same store say how the task is, go on with it, and
// repeat no effect that its class forbids. The worker is a process of its own because of its short lease.
// task_killed.mjs REEVE SHIM
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { assert, env, folder, lines, place, reeve, run, server, until, write } from './kit.mjs';

const shim = process.argv[3];
const hows = ['before', 'torn', 'after', 'lose', 'scatter'];
const store = place('store.db');
mkdirSync(place('p'));
mkdirSync(place('s'));
write('s/t.yaml', 'models:\n  plan: [{json: {steps: [{tool: count, parameters: {by: 1}}]}}]\n');
const pipeline = (says, fault) => write('p/t.yaml', `name: t
mcp_servers:
  stub: {command: ${JSON.stringify(['node', server, '--log', place('log'), ...fault])}, timeout_ms: 60000, tools: ${says}}
models: {default: "scripted:any"}
agents:
  - {name: plan, has_llm: true, model_role: default, prompt_key: p, output_key: plan, default_next: work}
  - {name: work, has_tools: true, allowed_tools: [count], default_next: end}
prompts: {p: plan it}
`);
const noted = () => lines('log').map((line) => JSON.parse(line));

// death: {at, how}: the write to the store at which it is killed; the shim counts them in a file.
const launch = (death, count, ...args) => spawn(reeve, [...args, '--store', store], { cwd: folder, stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...env, REEVE_SYNC: 'full', REEVE_CRASH_STORE: store, REEVE_CRASH_SEED: '7', REEVE_CRASH_COUNT: place(count),
           REEVE_CRASH_HOW: death?.how ?? 'before', REEVE_CRASH_AT: String(death?.at ?? 0), ...(death ? { LD_PRELOAD: shim } : {}) } });
function work(death) {
    const child = launch(death, 'worker', 'worker', '--lease', '1', '--quiet');
    const worker = { child, err: '' };
    child.stdout.resume();
    child.stderr.on('data', (bytes) => (worker.err += bytes));
    worker.ended = new Promise((resolve) => child.on('close', (status, signal) => resolve(signal ?? status)));
    return worker;
}
// One server with its client. A request has null when the server ends before it answers.
function begin(death) {
    const child = launch(death, 'server', 'mcp', 'serve', '--no-worker', '--pipelines', place('p'), '--scripts', place('s'));
    const waits = new Map();
    const client = { child, asked: () => ({ action: 'cancel' }), err: '', isOver: false };
    const put = (m) => child.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\n');
    let n = 0;
    child.stdin.on('error', () => {});
    child.stderr.on('data', (bytes) => (client.err += bytes));
    createInterface({ input: child.stdout }).on('line', (line) => {
        const m = JSON.parse(line);
        if (m.method === 'elicitation/create')
            put({ id: m.id, result: client.asked(m.params) });
        waits.get(m.id)?.(m);
        waits.delete(m.id);
    });
    client.ended = new Promise((resolve) => child.on('close', (status, signal) => {
        client.isOver = true;
        for (const wait of waits.values())
            wait(null);
        resolve(signal ?? status);
    }));
    client.request = (method, params) => client.isOver ? null : new Promise((resolve) => {
        waits.set(`r${++n}`, resolve);
        put({ id: `r${n}`, method, params });
    });
    client.end = () => (child.stdin.end(), client.ended);
    client.first = client.request('initialize',
        { protocolVersion: '2025-11-25', capabilities: { elicitation: {} }, clientInfo: { name: 't', version: '1' } });
    return client;
}
const call = async (c) => (await c.request('tools/call', { name: 't', arguments: { input: 'x' }, task: {} }))?.result.task.taskId;
// How the task is when it does not work; undefined: the server was killed.
async function settle(c, taskId) {
    let answer;
    await until(async () => (answer = await c.request('tasks/get', { taskId }))?.result?.status !== 'working');
    return answer && answer.result.status;
}

// From nothing to the end of one task. deaths: {server, worker}; kill: both, when the effect has happened.
async function live(deaths, kill, mayRepeat, which) {
    for (const end of ['', '-wal', '-shm', '-journal'])
        rmSync(store + end, { force: true });
    copyFileSync(place('template.db'), store);
    for (const name of ['server', 'worker'])
        rmSync(place(name), { force: true });
    writeFileSync(place('log'), '');
    let c = begin(deaths.server), w = work(deaths.worker);
    await c.first;
    let task = await call(c);
    if (kill)
        await until(() => noted().length === 1);
    else if (task) /* until one of them ends, or the task */
        await Promise.race([settle(c, task), w.ended]);
    if (kill || deaths.server || deaths.worker)
        w.child.kill(kill || deaths.worker?.at < 1 << 20 ? 'SIGKILL' : 'SIGTERM');
    if (kill || deaths.worker?.at < 1 << 20)
        c.child.kill('SIGKILL');
    await Promise.all([c.end(), w.ended]);
    const wasKilled = (c.err + w.err).includes('crash: ');
    const counts = ['server', 'worker'].map((name) => Number(lines(name)[0] ?? 0));

    c = begin(null);
    w = work(null);
    assert.ok(await c.first, c.err);
    task ??= await call(c); // its answer was lost: a client makes another one
    const status = await settle(c, task);
    if (status === 'input_required')
        c.asked = ({ requestedSchema }) => {
            assert.deepEqual(requestedSchema.properties.decision.enum, ['happened', 'not_happened', 'fail'], which);
            return { action: 'accept', content: { decision: noted().length > 0 ? 'happened' : 'not_happened' } };
        };
    const got = await c.request('tasks/result', { taskId: task });
    assert.ok(got.result && !got.result.isError, `${which}: ${JSON.stringify(got)}`);
    assert.equal(await settle(c, task), 'completed', which);
    const all = noted(), keys = new Set(all.map(({ key }) => key));
    assert.ok(all.length > 0, which);
    assert.ok(all.length === keys.size || (mayRepeat && all.length === keys.size + 1), `${which}: ${JSON.stringify(all)}`);
    assert.equal(await c.end(), 0, c.err);
    w.child.kill('SIGTERM');
    await w.ended;
    return { counts, wasKilled, status };
}

// A store that is there: kills while it is made are those of tests/crash.
write('aside.yaml', 'name: aside\nagents: [{name: a, set: {x: "1"}, default_next: end}]\n');
assert.equal((await run('run', 'aside.yaml', '--input', 'x', '--store', place('template.db'))).status, 0);

// After the effect, before the answer.
pipeline('{count: {}}', ['--fault', 'late']);
assert.equal((await live({}, true, false, 'once')).status, 'input_required', 'a person is asked whether it happened');
pipeline('{count: {idempotent: true}}', ['--fault', 'late']);
assert.equal((await live({}, true, true, 'idempotent')).status, 'completed', 'a call that may be repeated is');

// At writes.
pipeline('{count: {}}', []);
const far = { at: 1 << 30, how: 'before' };
const { counts } = await live({ server: far, worker: far }, false, false, 'without a crash');
assert.ok(counts[0] > 2 && counts[1] > 10, `${counts} writes`);
let nKilled = 0, nAsked = 0;
for (const [i, who] of ['server', 'worker'].entries()) {
    const step = process.env.REEVE_SOAK ? 1 : Math.ceil(counts[i] / 5);
    for (let at = step; at <= counts[i]; at += step) {
        const { wasKilled, status } = await live({ [who]: { at, how: hows[nKilled % hows.length] } }, false, false, `${who}, write ${at}`);
        nKilled += wasKilled;
        nAsked += status === 'input_required';
    }
}
assert.ok(nKilled > 3, `${nKilled} were killed`);
console.log(`${nKilled} were killed at ${counts} writes, a person was asked ${nAsked} times`);
