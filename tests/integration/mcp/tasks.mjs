// A server that makes a task of a call: the call is one call, whose result comes later; its time limit is that of the call,
// and a task that is not waited for any more is cancelled.
import { assert, lines, pipeline, place, results, run, script } from './kit.mjs';
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
const late = await call('task-endless', '\n    tools: {echo: {timeout_ms: 700}}');
assert.equal(late.status, 'error');
assert.match(JSON.stringify(late.error), /Timeout/);
assert.ok(noted().some((line) => line.cancelled === 'täsk 0'), 'at the limit the task is cancelled');
assert.match(JSON.stringify((await call('task-fails')).error), /error -32603: it broke \[rejected\]/);
assert.match(JSON.stringify((await call('task-lost')).error), /there is no such task \[rejected\]/);
assert.match(JSON.stringify((await call('task-asks')).error), /asks for input.*\[input_required\]/);
assert.ok(noted().some((line) => line.cancelled === 'täsk 0'), 'a task that cannot go on is cancelled');
