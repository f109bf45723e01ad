// A server asks a person in the middle of a call: the run waits with a question, without a process or a connection, and
// the call is made again with the answer. Servers of both eras.
import { writeFileSync } from 'node:fs';
import { assert, lines, pipeline, place, results, run, script } from './kit.mjs';

const noted = () => lines('log').map(JSON.parse);
function begin(era, tool, ask, more = '    elicitation: true\n    trusted: true') {
    writeFileSync(place('log'), '');
    pipeline('p.yaml', ['--era', era, '--log', place('log')], more, tool);
    script([{ tool, parameters: { ask } }]);
    return run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--json');
}
const answer = (...args) => run('resume', 'last', ...args, '--state');
const value = (state) => JSON.parse(state).outputs.work.results[0].data;

for (const era of ['modern', 'legacy']) {
    // One form: values that do not fit are refused and the question stays open; defaults are put in.
    const first = await begin(era, 'form', ['name']);
    assert.equal(first.status, 3, first.err);
    const question = JSON.parse(first.out);
    const told = JSON.stringify(question) + first.err;
    assert.ok(told.includes('MCP server \\"stub\\"') || told.includes('MCP server "stub"'), told);
    assert.ok(told.includes('What is your name?'), told);
    for (const [data, words] of [['{}', 'name'], ['{"name": "x"}', 'name'], ['{"name": "Anna", "times": 10}', 'times'],
                                 ['[]', 'object']]) {
        const refused = await answer('--decision', 'accept', '--data', data);
        assert.ok(refused.status === 2 && refused.err.includes(words), `${data}: ${refused.status} ${refused.err}`);
    }
    for (const args of [['--decision', 'approve'], ['--decision', 'decline', '--data', '{}'], ['--text', 'Anna']])
        assert.equal((await answer(...args)).status, 2, args.join());
    const done = await answer('--decision', 'accept', '--data', '{"name": "Anna"}');
    assert.equal(done.status, 0, done.err);
    assert.deepEqual(value(done.out), { name: { action: 'accept', content: { name: 'Anna', times: 3 } } });
    const calls = noted().filter((line) => line.call);
    assert.equal(calls.length, 2);
    assert.equal(calls[0].key, calls[1].key);
    assert.ok(era === 'modern' ? calls[1].state === 'state name' : noted().some((line) => line.cancelled));
    assert.equal((await run('replay', 'last')).status, 0);

    // Declined, dismissed.
    for (const action of ['decline', 'cancel']) {
        assert.equal((await begin(era, 'form', ['name'])).status, 3);
        assert.deepEqual(value((await answer('--decision', action)).out), { name: { action } });
    }

    // Two forms: one question after the other, and one call with both answers (or a third one, of an older server).
    assert.equal((await begin(era, 'form', ['name', 'colour'])).status, 3);
    const half = await answer('--decision', 'accept', '--data', '{"name": "Anna"}');
    assert.equal(half.status, 3, half.err);
    const both = await answer('--decision', 'accept');
    assert.equal(both.status, 0, both.err);
    assert.deepEqual(value(both.out).colour, { action: 'accept', content: { colour: 'blue' } });
    assert.equal(value(both.out).name.content.name, 'Anna');
    assert.equal(noted().filter((line) => line.call).length, era === 'modern' ? 2 : 3);

    // A page in a browser is not a form; without the key no one is asked.
    const link = await begin(era, 'form', ['link']);
    assert.equal(link.status, 0, link.err);
    const undeclared = await begin(era, 'form', ['name'], '    trusted: true');
    assert.equal(undeclared.status, 0, undeclared.err);
    assert.ok(era === 'modern' || noted().some((line) => line.answer?.code === -32601));
}

// A call that must not be repeated: the new era asks, for its call is over; an older server is told that no one answered.
assert.equal((await begin('modern', 'form_once', ['name'], '    elicitation: true')).status, 3);
assert.deepEqual(value((await answer('--decision', 'accept', '--data', '{"name": "Anna"}')).out).name.content.name, 'Anna');
const once = await begin('legacy', 'form_once', ['name'], '    elicitation: true');
assert.equal(once.status, 0, once.err);
assert.deepEqual(noted().filter((line) => line.call || line.answer).map((line) => line.answer?.action ?? line.call),
                 ['form_once', 'cancel']);

// A server that asks without end.
let again = await begin('modern', 'form', ['again']);
let n = 0;
for (; again.status === 3 && n < 50; n++)
    again = await answer('--decision', 'accept', '--data', '{"name": "Anna"}');
assert.equal(n, 8, again.err);
assert.ok(results(again.out)[0].error.message.includes('again and again'), again.out);
console.log('forms of both eras');
