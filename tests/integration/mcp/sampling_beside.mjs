// Completions for servers where a run does several things: steps of a plan that may overlap, calls of one reply, branches of a
// group, stages of a parallel pipeline, elements of a list. What works beside others gets none, so that the bounds of the run hold.
import { rmSync, writeFileSync } from 'node:fs';
import { assert, lines, place, run, server, write } from './kit.mjs';

let era, checks = 0;
const noted = () => lines('log').map((line) => JSON.parse(line));
const stage = (name, more) => `  - {name: ${name}, has_llm: true, model_role: default, prompt_key: p, ${more}}\n`;
const tools = 'has_tools: true, tool_access: all';
const steps = (...asks) => asks.map((ask) => ask === 'echo' ? { tool: 'echo', parameters: { text: 'x' } } : { tool: 'form', parameters: { ask } });
const plan = (...asks) => ({ tool_calls: [{ name: '__planning__', arguments: { type: 'tool_calls',
    calls: steps(...asks).map((s) => ({ tool_name: s.tool, arguments: s.parameters })) } }] });
const reply = (...asks) => ({ tool_calls: steps(...asks).map((s) => ({ name: s.tool, arguments: s.parameters })) });

// A run of the stages, with answers of their models; say:TEXT of a server is answered with "to TEXT".
const head = () => `mcp_servers:\n  stub:\n    command: ${JSON.stringify(['node', server, '--era', era, '--log', place('log')])}
    timeout_ms: 60000\n    trusted: true\n    sampling: "scripted:any"\n    tools: {form: {read_only: true}}
models: {default: "scripted:any"}\n`;
async function play(agents, models, more = '') {
    writeFileSync(place('log'), '');
    write('p.yaml', `name: t\n${head()}${more}agents:\n${agents}prompts: {p: go on}\n`);
    const said = ['one', 'two', 'three'].map((name) => ({ contains: name, text: `to ${name}` }));
    write('s.yaml', JSON.stringify({ models: [...Object.entries(models).flatMap(([to, list]) => list.map((m) => ({ stage: to, ...m }))), ...said] }));
    rmSync(place('store.db'), { force: true });
    const r = await run('run', 'p.yaml', '--script', 's.yaml', '--input', 'x', '--state', '--store', place('store.db'));
    checks++;
    return { ...r, state: r.out ? JSON.parse(r.out) : {} };
}
// What the server heard of its questions, in order: completions, and failures.
const heard = () => noted().flatMap((line) => line.answer ? [line.answer] : Object.values(line.responses ?? {}))
    .map((answer) => answer.content?.text ?? answer.message);
const calls = () => noted().filter((line) => line.call || line.effect).map((line) => line.effect ? 'end' : 'begin');
const alone = /^other stages or agents may call models at the same time/;
const data = (r, name) => JSON.stringify(r.state.outputs?.[name] ?? '');
// A model is not asked: a server of the era before hears why, and the call of the newer one fails with it.
function refused(r, name, why, told) {
    if (era === 'legacy')
        assert.match(told.at(-1), why);
    else
        assert.match(data(r, name), new RegExp(`gets no answer: ${why.source.slice(1)}`));
}
const json = (value) => [{ json: { v: value } }];

for (era of ['modern', 'legacy']) {
    // Steps of a plan that may overlap: those that may ask a model run alone, and each gets its completion.
    const one = era === 'modern' ? ['begin', 'begin', 'end'] : ['begin', 'end'];
    let r = await play(stage('a', `${tools}, strategy: planned, execute: {parallelism: 4}, default_next: end`),
                       { a: [plan('echo', ['say:one'], 'echo', 'echo', ['say:two']), { text: 'done' }] });
    assert.deepEqual([heard(), calls(), r.state.llm_call_count], [['to one', 'to two'], [...one, ...one], 4], r.err);
    // ... within the bound of the run
    r = await play(stage('a', `${tools}, strategy: planned, execute: {parallelism: 4}, default_next: end`),
                   { a: [plan(['say:one'], ['say:two']), { text: 'done' }] }, 'max_llm_calls: 2\n');
    assert.equal(heard()[0], 'to one');
    assert.match(JSON.stringify(noted()) + r.err + JSON.stringify(r.state), /max_llm_calls/);
    assert.equal(r.state.llm_call_count, 2);

    // Calls of one reply.
    r = await play(stage('a', `${tools}, strategy: standard, default_next: end`),
                   { a: [reply('echo', ['say:one'], 'echo', ['say:two']), ...json('done')] });
    assert.deepEqual([r.status, heard(), calls(), r.state.llm_call_count], [0, ['to one', 'to two'], [...one, ...one], 4], r.err);

    // A branch of a group gets none; the stage where the branches meet does.
    r = await play(stage('o', 'default_next: [a, b]') + stage('a', `${tools}, default_next: m`) + stage('b', 'default_next: m') +
                   stage('m', `join: all, ${tools}, default_next: end`),
                   { o: json(0), a: [plan(['say:one']), { text: 'done' }], b: json(1), m: [plan(['say:two']), { text: 'met' }] });
    assert.equal(r.status, 0, r.err);
    const told = heard();
    refused(r, 'a', alone, told.slice(0, 1));
    assert.deepEqual(told.at(-1), 'to two');
    assert.equal(r.state.llm_call_count, 1 + 2 + 1 + 3, 'none for the branch');

    // Stages of a parallel pipeline.
    r = await play(stage('a', tools) + stage('b', 'stage_order: 2'), { a: [plan(['say:one']), { text: 'done' }], b: json(1) },
                   'default_run_mode: parallel\n');
    assert.equal(r.status, 0, r.err);
    refused(r, 'a', alone, heard());
    assert.equal(r.state.llm_call_count, 3);

    // Elements of a list, two at once.
    r = await play(stage('o', 'default_next: a') + stage('a', `${tools}, for_each: "[1, 2]", max_items: 2, max_parallel: 2, default_next: end`),
                   { o: json(0), a: [plan(['say:one']), { text: 'done' }] });
    assert.equal(r.status, 0, r.err + r.out);
    refused(r, 'a', alone, heard());
    assert.ok(noted().every((line) => !line.answer?.content && !Object.values(line.responses ?? {}).some((said) => said.content)));
}
console.log(`mcp_client_sampling_beside: ${checks} runs`);
