// A server that makes a task of a call: the call is one call, whose result comes later; its time limit is that of the call,
// and a task that is not waited for any more is cancelled.
import { assert, gone, lines, pipeline, place, results, run, script, start, until } from './kit.mjs';
import { writeFileSync } from 'node:fs';

script([{ tool: 'stub.echo', parameters: { text: 'hello' } }]);
const noted = () => lines('log').map(JSON.parse);
async function call(fault, more = '') {
    writeFileSync(place('log'), '');
    pipeline('p.yaml', ['--era', 'modern', '--fault', fault, '--log', place('log')], `    trusted: true${more}`, 'stub.echo');
    const { status, out, err } = await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--state', '--no-store');
    assert.equal(status, 0, `${fault}: ${err}`);
    return results(out)[0];
}
const done = await call('task');
assert.deepEqual([done.status, done.data], ['success', { value: 'the task is done' }]);
assert.deepEqual(noted(), [{ begun: 'echo', declared: { 'io.modelcontextprotocol/tasks': {} } }, { asked: 'täsk 0' }, { asked: 'täsk 0' }]);
let late; // a slow server needs longer until the client knows of its task
for (let ms = 2000; ms <= 32000; ms *= 4) {
    late = await call('task-endless', `\n    tools: {echo: {timeout_ms: ${ms}}}`);
    if (noted().some((line) => line.asked)) break;
}
assert.equal(late.status, 'error');
assert.match(JSON.stringify(late.error), /Timeout/);
assert.ok(noted().some((line) => line.cancelled === 'täsk 0'), 'at the limit the task is cancelled');
assert.match(JSON.stringify((await call('task-fails')).error), /error -32603: it broke \[rejected\]/);
assert.match(JSON.stringify((await call('task-lost')).error), /there is no such task \[rejected\]/);
assert.match(JSON.stringify((await call('task-asks')).error), /asks for input.*\[input_required\]/);
assert.ok(noted().some((line) => line.cancelled === 'täsk 0'), 'a task that cannot go on is cancelled');

// A task that asks a person: its call waits without a connection, and the answer goes to the task, which goes on.
writeFileSync(place('log'), '');
pipeline('p.yaml', ['--era', 'modern', '--fault', 'task-asks', '--log', place('log')], '    trusted: true\n    elicitation: true', 'stub.echo');
const waits = await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--store', place('waits.db'));
assert.equal(waits.status, 3, waits.err);
const [{ id: waiting }] = JSON.parse((await run('runs', 'list', '--json', '--store', place('waits.db'))).out);
const going = await run('resume', waiting, '--decision', 'accept', '--data', '{"name": "Ada"}', '--state', '--store', place('waits.db'));
assert.equal(going.status, 0, going.err);
assert.match(JSON.stringify(results(going.out)[0].data), /accept.*Ada/);
assert.equal(noted().filter((line) => line.begun).length, 1, 'it is not begun again');
assert.equal(noted().filter((line) => line.updated).length, 1);
assert.ok(!noted().some((line) => line.cancelled), 'nor cancelled meanwhile');

// reeve is killed when the task has the answer: the same answer goes to the same task again, and nothing is begun.
writeFileSync(place('log'), '');
pipeline('p.yaml', ['--era', 'modern', '--fault', 'task-asks', '--until', place('answered.over'), '--log', place('log')],
         '    trusted: true\n    elicitation: true', 'stub.echo');
const later = ['--store', place('answered.db')];
assert.equal((await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', ...later)).status, 3);
const [{ id: answering }] = JSON.parse((await run('runs', 'list', '--json', ...later)).out);
const dying = start('resume', answering, '--decision', 'accept', '--data', '{"name": "Ada"}', ...later);
const dead = new Promise((resolve) => dying.on('exit', resolve));
await until(() => noted().some((line) => line.updated));
dying.kill('SIGKILL');
await dead;
await gone(place('answered.over'));
writeFileSync(place('answered.over'), '');
const repeated = await run('runs', 'recover', ...later);
const [{ status: end }] = JSON.parse((await run('runs', 'list', '--json', ...later)).out);
assert.equal(end, 'completed', repeated.err);
assert.deepEqual([noted().filter((line) => line.begun).length, noted().filter((line) => line.updated).map((line) => line.updated)],
                 [1, ['täsk 0', 'täsk 0']]);

// The same in 2025-11-25, where the client asks for a task: of a tool that needs one, and after its end for the result.
script([{ tool: 'stub.work', parameters: { by: 1 } }]);
async function legacy(fault, more = '', ...args) {
    writeFileSync(place('log'), '');
    pipeline('p.yaml', ['--fault', fault, '--log', place('log')], `    trusted: true${more}`, 'stub.work');
    return run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--state', ...args);
}
const told = async (...args) => {
    const { status, out, err } = await legacy(...args, '--no-store');
    assert.equal(status, 0, err);
    return results(out)[0];
};
assert.match(JSON.stringify((await told('', '')).data), /the work is done/);
assert.deepEqual(noted().slice(1), [{ result: 'täsk 0' }], 'its result is asked for when it is there');
assert.match(JSON.stringify((await told('task-fails', '')).error), /it broke/);
assert.match(JSON.stringify((await told('task-lost', '')).error), /there is no such task \[rejected\]/);
assert.match(JSON.stringify((await told('task-cancelled', '')).error), /cancelled the task \[rejected\]/);
assert.match(JSON.stringify((await told('task-endless', '\n    tools: {work: {timeout_ms: 700}}')).error), /Timeout/);
assert.deepEqual(noted().slice(1), [{ cancelled: 'täsk 0' }], 'at the limit the task is cancelled');
assert.match(JSON.stringify((await told('task-asks', '')).error), /asks for input.*\[input_required\]/);
assert.deepEqual(noted().slice(1), [{ cancelled: 'täsk 0' }], 'a task that may not ask is cancelled');

// A task that asks a person: its call ends, and is made again with the answer.
const asks = '\n    elicitation: true\n    tools: {work: {idempotent: true}}';
const asked = await legacy('task-asks', asks, '--store', place('asked.db'));
assert.equal(asked.status, 3, asked.err);
const [{ id }] = JSON.parse((await run('runs', 'list', '--json', '--store', place('asked.db'))).out);
const answered = await run('resume', id, '--decision', 'accept', '--data', '{"name": "Ada"}', '--state', '--store', place('asked.db'));
assert.equal(answered.status, 0, answered.err);
assert.match(JSON.stringify(results(answered.out)[0].data), /Ada/);
const answer = noted().find((line) => line.answer).answer;
assert.equal(answer._meta['io.modelcontextprotocol/related-task'].taskId, 'täsk 0', 'the answer names its task');

// reeve is killed while such a task works: what the effect class promises holds.
for (const [says, effects, end] of [['{}', 1, 'interrupted'], ['{idempotent: true}', 2, 'completed']]) {
    const store = place(`${end}.db`);
    writeFileSync(place('log'), '');
    pipeline('p.yaml', ['--until', place(`${end}.over`), '--log', place('log')], `    tools: {work: ${says}}`, 'stub.work');
    const child = start('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--store', store);
    const ended = new Promise((resolve) => child.on('exit', resolve));
    await until(() => noted().length === 1);
    child.kill('SIGKILL');
    await ended;
    await gone(place(`${end}.over`));
    writeFileSync(place(`${end}.over`), '');
    const recovered = await run('runs', 'recover', '--store', store);
    const [row] = JSON.parse((await run('runs', 'list', '--json', '--store', store)).out);
    const all = noted().filter((line) => line.key);
    assert.deepEqual([row.status, all.length, new Set(all.map(({ key }) => key)).size], [end, effects, 1], recovered.err);
}
