// A server asks a model in the middle of a call: the completion is a run of its own, which is found again after a crash,
// and counts for the run that calls the tool. Servers of both eras.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { assert, env, gone, lines, pipeline, place, run, start, until, write } from './kit.mjs';

const store = ['--store', place('store.db')];
const noted = () => lines('log').map((line) => JSON.parse(line));
const says = '    trusted: true\n    sampling: "scripted:any"\n';
function prepare(era, ask, keys, change = (text) => text) {
    writeFileSync(place('log'), '');
    rmSync(place('go'), { force: true });
    const path = pipeline('p.yaml', ['--era', era, '--log', place('log'), '--until', place('go'), '--mark', place('m')], keys, 'form');
    writeFileSync(path, change(readFileSync(path, 'utf8')));
    const said = ask.filter((name) => name.startsWith('say:')).map((name) => `  - {contains: "${name.slice(4)}", text: "to ${name.slice(4)}"` +
        `, usage: {input_tokens: 1000, output_tokens: 500}}\n`);
    write('script.yaml', 'models:\n' +
          `  - {contains: plan it, json: {steps: [{tool: form, parameters: {ask: ${JSON.stringify(ask)}}}]}}\n` + said.join(''));
}
function begin(...args) {
    prepare(...args);
    return run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--state', ...store);
}
const runs = async () => JSON.parse((await run('runs', 'list', '--json', ...store)).out);
const asked = async () => (await runs()).filter((row) => row.pipeline === 'models_call');
const state = ({ out, err, status }) => {
    assert.equal(status, 0, err);
    return JSON.parse(out);
};
const result = (r) => state(r).outputs.work.results[0];
const completion = (text) => ({ role: 'assistant', content: { type: 'text', text }, model: 'any', stopReason: 'endTurn' });

for (const era of ['modern', 'legacy']) {
    rmSync(place('store.db'), { force: true });
    const done = state(await begin(era, ['say:hello'], says));
    assert.deepEqual(done.outputs.work.results[0].data, { 'say:hello': completion('to hello') });
    assert.equal(done.llm_call_count, 2, 'the completion is a model call of the run');
    const [own] = await asked();
    assert.equal(own.status, 'completed');
    const first = (await runs()).find((row) => row.pipeline === 't');
    const replayed = await run('replay', first.id, ...store);
    assert.equal(replayed.status, 0, replayed.err);

    // Two at once, or one after the other; more than a call may have; a bound of the run.
    assert.deepEqual(Object.keys(result(await begin(era, ['say:alpha', 'say:beta'], says)).data).sort(), ['say:alpha', 'say:beta']);
    const many = result(await begin(era, ['say:alpha', 'say:beta'], says + '    max_samplings: 1\n'));
    assert.ok(era === 'modern' ? many.error.message.includes('too much') : many.data['say:beta'].code === -1, JSON.stringify(many));
    const bound = result(await begin(era, ['say:alpha', 'say:beta'], says, (text) => `${text}max_llm_calls: 2\n`));
    assert.ok(JSON.stringify(bound).includes('max_llm_calls'), JSON.stringify(bound));
    assert.ok(era === 'modern' ? bound.status === 'error' : bound.data['say:alpha'].content, JSON.stringify(bound));

    // Its cost is the run's, and bound by the budget of that; a budget that the first half of the run has used leaves nothing.
    const paid = (usd) => (text) => text.replace('{default: "scripted:any"}',
        '{default: {provider: scripted, model: any, price: {input: 0.1, output: 0.1}}}') + `budget: {usd: ${usd}}\n`;
    const priced = says.replace('scripted:any', 'openai:gpt-4.1-mini');
    const cheap = state(await begin(era, ['say:gamma'], priced, paid(0.01)));
    assert.deepEqual([cheap.usage.input_tokens, cheap.usage.cost_micro_usd], [1000, 1200], JSON.stringify(cheap.usage));
    const dear = result(await begin(era, ['say:delta'], priced, paid(0.0004)));
    assert.ok(JSON.stringify(dear).includes('budget'), JSON.stringify(dear));

    // Three at once that each cost $0.0068: the second one does not fit any more, and the budget holds. What the call took counts,
    // though it failed.
    const costly = (path = place('script.yaml')) =>
        writeFileSync(path, readFileSync(path, 'utf8').replaceAll('output_tokens: 500', 'output_tokens: 4000'));
    prepare(era, ['say:one', 'say:two', 'say:three'], priced, paid(0.01));
    costly();
    const three = state(await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--state', ...store));
    const took = three.usage.cost_micro_usd;
    assert.ok(took >= 6800 && took <= 10000, JSON.stringify(three.usage));
    assert.ok(JSON.stringify(three.outputs.work).includes('budget'), JSON.stringify(three.outputs.work));

    // One that ends without an answer after a call that was paid: its run fails, and what it took counts.
    prepare(era, ['say:omega'], priced, paid(1));
    const failing = place('script.yaml');
    writeFileSync(failing, readFileSync(failing, 'utf8').replace('text: "to omega"', 'error: {kind: overloaded, retryable: false, billed: true}'));
    const failed = state(await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--state', ...store));
    assert.ok(JSON.stringify(failed.outputs.work).includes('overloaded'), JSON.stringify(failed.outputs.work));
    assert.equal(failed.usage.input_tokens, 1000, JSON.stringify(failed.usage));
    assert.ok(failed.usage.cost_micro_usd >= 1200 && failed.usage.estimated, JSON.stringify(failed.usage));
    assert.equal(failed.llm_call_count, 2);

    // The time of the call is up while it waits for a model: what that costs is not known, so it counts as all that was left.
    const slow = priced.replace('    trusted', '    timeout_ms: 400\n    trusted');
    prepare(era, ['say:sigma', 'say:tau'], slow, (text) => paid(0.01)(text).replace('    timeout_ms: 60000\n', ''));
    writeFileSync(failing, readFileSync(failing, 'utf8').replace('text: "to sigma"', 'chunks: [{delay_ms: 900}, {text: late}]'));
    const options = env.ASAN_OPTIONS; // what a call that was given up uses stays until the process is gone
    env.ASAN_OPTIONS = `${options ?? ''}:detect_leaks=0`;
    const late = state(await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--state', '--store', place('late.db')));
    if (options === undefined) delete env.ASAN_OPTIONS;
    else env.ASAN_OPTIONS = options;
    assert.ok(JSON.stringify(late.outputs.work).includes('TimeoutError'), JSON.stringify(late.outputs.work));
    assert.deepEqual([late.usage.cost_micro_usd, late.usage.estimated, late.llm_call_count], [10000, true, 3], JSON.stringify(late.usage));

    // Beside others that may spend the same money, there are none.
    const beside = state(await begin(era, ['say:upsilon'], says, (text) =>
        text.replace('has_tools: true', 'has_tools: true, for_each: "[1]", max_items: 1')));
    assert.ok(JSON.stringify(beside.outputs.work).includes('at the same time'), JSON.stringify(beside));
    assert.equal(beside.llm_call_count, 1);

    // What no model is asked; a server without the key; a call outside of a run.
    const empty = result(await begin(era, ['model'], says));
    assert.ok(JSON.stringify(empty).includes('1 to 100 messages'), JSON.stringify(empty));
    const refused = result(await begin(era, ['say:alpha'], '    trusted: true\n'));
    assert.ok(era === 'modern' ? refused.error.message.includes('not declared') : refused.data['say:alpha'].code === -32601,
              JSON.stringify(refused));
    const mixed = result(await begin(era, ['say:alpha', 'colour'], says));
    assert.ok(era === 'modern' ? mixed.error.message.includes('not declared') : mixed.data.colour.code === -32601, JSON.stringify(mixed));
    prepare(era, ['say:alpha'], says);
    const outside = await run('mcp', 'call', 'p.yaml', 'form', '--args', '{"ask": ["say:alpha"]}');
    assert.match(outside.out + outside.err, /no run is under way/);

    // reeve is killed when the server has the completion: the call that is made again gets it without another model call.
    const before = (await asked()).length;
    prepare(era, ['say:again', 'hang'], says);
    const child = start('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', ...store);
    const ended = new Promise((resolve) => child.on('exit', resolve));
    const heard = () => noted().filter((line) => line.answer?.content || line.responses?.['say:again']);
    await until(() => heard().length > 0);
    child.kill('SIGKILL');
    await ended;
    await gone(place('m'));
    writeFileSync(place('go'), '');
    const recovered = await run('runs', 'recover', ...store);
    assert.equal(recovered.status, 0, recovered.err);
    assert.equal((await asked()).length, before + 1, 'no second completion');
    assert.equal(heard().length, era === 'modern' ? heard().length : 2);
    assert.equal((await runs()).filter((row) => row.pipeline === 't')[0].status, 'completed', recovered.err);
}
console.log('completions of both eras');
