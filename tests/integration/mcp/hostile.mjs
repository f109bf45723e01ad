// A server that misbehaves costs one call, which fails with words that say why; the run goes on to its end.
// Proves mcp.M3, plan.N1, plan.N3, plan.N5
import { assert, pipeline, place, processes, results, run, script } from './kit.mjs';

const steps = [{ tool: 'stub.echo', parameters: { text: 'hello' } }];
const cases = {
    // fault: [does the call succeed?, words of its error or its value, limit of the call]
    none: [true, 'hello'],
    exit: [false, 'ended with status 7 [server_exited]'],
    signal: [false, 'ended by signal 9 [server_exited]'],
    'close-stdout': [false, 'closed its output [server_exited]'],
    silence: [false, 'did not answer in time [timed_out]', 300],
    'endless-line': [false, '[too_large]'],
    'huge-message': [false, '[too_large]'],
    'invalid-utf8': [false, '[timed_out]', 300],
    deep: [false, '[timed_out]', 300],
    'not-json': [true, 'still here'],
    'wrong-id': [true, 'right'],
    twice: [true, 'first'],
    changes: [true, 'changed'],
    flood: [true, 'after the flood'],
    'progress-flood': [true, 'after the progress'],
    requests: [true, 'asked'],
    stderr: [true, 'after the errors'],
    zombies: [true, 'left children'],
    'bad-result': [false, '[bad_message]'],
    'bad-content': [false, 'content is not a list'],
    rpc: [false, 'no such argument [rejected]'],
};

script(steps);
for (const [fault, [succeeds, words, limit]] of Object.entries(cases)) {
    const more = `    tools: {echo: {read_only: true${limit ? `, timeout_ms: ${limit}` : ''}}}`;
    pipeline('p.yaml', ['--fault', fault, '--mark', place('')], more, 'stub.echo');
    if (process.env.VERBOSE) console.log(fault);
    const { status, out, err } = await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--state',
                                           '--no-store');
    assert.equal(status, 0, `${fault}: ${err}`); // the run is over, whatever its tool did
    const [result] = results(out);
    assert.equal(result.status, succeeds ? 'success' : 'error', `${fault}: ${JSON.stringify(result)}`);
    const said = succeeds ? result.data.value : JSON.stringify(result.error);
    const timeout = words.includes('timed_out') && said.includes('Timeout'); // the engine's own clock may be first
    assert.ok(said.includes(words) || timeout, `${fault}: ${said}`);
    assert.deepEqual(processes(place('')), [], `${fault}: a server is left`);
}
assert.deepEqual(processes('sleep 600'), [], 'children of a server are left');

// Lists that do not end, and definitions that cannot be used, cost the server or the tool, not the run.
for (const [fault, words] of [['loop', 'a cursor came twice'], ['endless-pages', 'more than 64 pages'],
                              ['exit-at-start', 'cannot find my configuration'], ['bad-tools', 'tool "array" is left out']]) {
    pipeline('p.yaml', ['--fault', fault], '', 'stub.echo');
    const listed = await run('mcp', 'list', 'p.yaml', '--json');
    assert.equal(listed.status, 0, fault);
    assert.ok(listed.err.includes(words), `${fault}: ${listed.err}`);
    assert.equal(JSON.parse(listed.out)[0].status, fault === 'bad-tools' ? 'ready' : 'failed', fault);
    pipeline('p.yaml', ['--fault', fault], '    required: true', 'stub.echo');
    const required = await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--no-store');
    assert.equal(required.status, fault === 'bad-tools' ? 0 : 2, `${fault}: ${required.err}`);
}

// A server that ignores its end is killed, and one that ended is started again when it is needed next.
pipeline('p.yaml', ['--fault', 'never-ends', '--mark', place('')], '', 'stub.echo');
assert.equal((await run('mcp', 'call', 'p.yaml', 'echo', '--args', '{"text": "x"}')).status, 0);
assert.deepEqual(processes(place('')), []);
script([...steps, ...steps]);
pipeline('p.yaml', ['--fault', 'exit'], '    tools: {echo: {read_only: true}}', 'stub.echo');
const twice = await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--state', '--no-store');
assert.deepEqual(results(twice.out).map((r) => r.status), ['error', 'error'], twice.out);

// Nothing of our environment is passed on but what the file says.
script([{ tool: 'stub.environment', parameters: {} }]);
pipeline('p.yaml', ['--fault', 'none'], '    env: {MINE: "yes"}', 'stub.environment');
const told = results((await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--state', '--no-store')).out);
const names = told[0].data.value.split(' ');
assert.ok(names.includes('MINE') && names.includes('PATH') && !names.includes('SECRET_OF_OURS'), names.join(' '));
console.log(`${Object.keys(cases).length} faults`);
