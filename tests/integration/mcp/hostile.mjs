// A server that misbehaves costs one call, which fails with words that say why; the run goes on to its end.
// Proves mcp.M3, plan.N1, plan.N3, plan.N5
import { join } from 'node:path';
import { assert, here, pipeline, place, processes, results, run, script, server, write } from './kit.mjs';

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
    'line-above-limit': [false, '[too_large]'],
    'invalid-utf8': [false, '[bad_message]'],
    deep: [false, '[bad_message]'],
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
                                           '--no-store', '--log-level', fault === 'not-json' ? 'warn' : 'error');
    assert.equal(status, 0, `${fault}: ${err}`); // the run is over, whatever its tool did
    const [result] = results(out);
    assert.equal(result.status, succeeds ? 'success' : 'error', `${fault}: ${JSON.stringify(result)}`);
    const said = succeeds ? result.data.value : JSON.stringify(result.error);
    const timeout = words.includes('timed_out') && said.includes('Timeout'); // the engine's own clock may be first
    assert.ok(said.includes(words) || timeout, `${fault}: ${said}`);
    assert.deepEqual(processes(place('')), [], `${fault}: a server is left`);
    if (fault === 'not-json')
        assert.match(err, /mcp\.not_a_message.*stub.*starting up\.\.\./, 'a line that is no message is logged');
}
assert.deepEqual(processes('sleep 600'), [], 'children of a server are left');

// Servers that end in a call leave no descriptor and no child in the process of the run, which goes on meanwhile.
const three = ['exit', 'signal', 'stderr'].map((fault) => ({ tool: `${fault}.echo`, parameters: { text: 'x' } }));
const count = { tool: 'count.open', parameters: {} };
write('many.yaml', `name: t
mcp_servers:
  count: {command: ["node", "${join(here, 'hostile_http_counter.mjs')}"], tools: {open: {read_only: true}}}
${['exit', 'signal', 'stderr'].map((fault) =>
    `  ${fault}: {command: ["node", "${server}", "--fault", "${fault}"], tools: {echo: {read_only: true}}}`).join('\n')}
models: {default: "scripted:any"}
agents:
  - {name: plan, has_llm: true, model_role: default, prompt_key: p, output_key: plan, default_next: work}
  - {name: work, has_tools: true, tool_access: all, default_next: end}
prompts: {p: plan it}
`);
script([count, ...three, count, ...three, count]);
const held = results((await run('run', 'many.yaml', '--script', 'script.yaml', '--input', 'x', '--state', '--no-store')).out)
    .map((r) => r.data).filter((data) => data?.descriptors);
assert.equal(held.length, 3);
for (const what of ['descriptors', 'children'])
    assert.ok(held[2][what] <= held[1][what], `${what}: ${held[1][what]}, then ${held[2][what]}`);

// Lists that do not end, and definitions that cannot be used, cost the server or the tool, not the run.
for (const [fault, words] of [['loop', 'a cursor came twice'], ['endless-pages', 'more than 64 pages'],
                              ['exit-at-start', 'cannot find my configuration'],
                              ['exit-in-line', 'ended with status 3; its last words: no licence file'], ['refuses', 'refuses the connection: not you (-32601)'],
                              ['prints', 'printed more than 1 MiB before its first message [bad_message]'], ['bad-tools', 'tool "array" is left out']]) {
    pipeline('p.yaml', ['--fault', fault], '', 'stub.echo');
    const listed = await run('mcp', 'list', 'p.yaml', '--json');
    assert.equal(listed.status, fault === 'bad-tools' ? 0 : 1, fault);
    assert.equal((await run('mcp', 'tools', 'p.yaml')).status, listed.status, fault);
    assert.ok(listed.err.includes(words), `${fault}: ${listed.err}`);
    assert.equal(JSON.parse(listed.out)[0].status, fault === 'bad-tools' ? 'ready' : 'failed', fault);
    pipeline('p.yaml', ['--fault', fault], '    required: true', 'stub.echo');
    const required = await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--no-store');
    assert.equal(required.status, fault === 'bad-tools' ? 0 : 2, `${fault}: ${required.err}`);
}

// Proves plan.G1: A plan sees the tools of all servers, whatever page of the list they are on; a server that fails is left
// out with a warning, and one that is required fails the run before a model is asked
const planned = (required) => write('planned.yaml', `name: t
mcp_servers:
  many: {command: ["node", "${server}", "--tools", "100"], tools: {tool_99: {read_only: true}}}
  broken: {command: ["node", "${server}", "--fault", "loop"], required: ${required}}
models: {default: "scripted:any"}
agents:
  - {name: work, has_llm: true, has_tools: true, tool_access: all, strategy: planned, model_role: default, prompt_key: p, default_next: end}
prompts: {p: plan it}
`);
const plan = { type: 'tool_calls', calls: [{ tool_name: 'tool_99', arguments: { n: 1 } }] };
write('script.yaml', `models:\n  work: [{tool_calls: [{name: __planning__, arguments: ${JSON.stringify(plan)}}]}, {text: "done"}]\n`);
planned(false);
const without = await run('run', 'planned.yaml', '--script', 'script.yaml', '--input', 'x', '--state', '--store', place('g1'));
const work = JSON.parse(without.out).outputs.work;
assert.deepEqual([work.plan_outcome, work.results[0].tool_name, work.response], ['ok', 'tool_99', 'done'], without.err + without.out);
assert.match(without.err, /broken.*a cursor came twice/, 'a server that fails is a warning');
planned(true);
const refused = await run('run', 'planned.yaml', '--script', 'script.yaml', '--input', 'x', '--store', place('g1'));
assert.equal(refused.status, 2, refused.err);
assert.equal(JSON.parse((await run('runs', 'list', '--json', '--store', place('g1'))).out).length, 1, 'no run, and no model, began');

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
