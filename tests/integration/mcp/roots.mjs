// Roots: a server is told of the folders that the file names, in both eras, together with a form and without one; a
// server without the key is refused, and a folder that is not there is a failure of that server alone.
import { mkdirSync, writeFileSync } from 'node:fs';
import { assert, lines, pipeline, place, run, script } from './kit.mjs';

mkdirSync(place('a folder/50% ü'), { recursive: true });
mkdirSync(place('other'));
const roots = { roots: [{ uri: 'file://' + encodeURI(place('a folder/50% ü')), name: '50% ü' },
                        { uri: 'file://' + place('other'), name: 'other' }] };
const noted = () => lines('log').map((line) => JSON.parse(line));
function begin(era, ask, keys) {
    writeFileSync(place('log'), '');
    pipeline('p.yaml', ['--era', era, '--log', place('log')], `    trusted: true\n${keys}`, 'form');
    script([{ tool: 'form', parameters: { ask } }]);
    return run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--state');
}
const result = ({ out, err, status }) => {
    assert.equal(status, 0, err);
    return JSON.parse(out).outputs.work.results[0];
};
const both = '    roots: ["a folder/50% ü", other]\n';

for (const era of ['modern', 'legacy']) {
    assert.deepEqual(result(await begin(era, ['roots'], both)).data, { roots });
    assert.deepEqual(result(await begin(era, ['roots'], '    roots: []\n')).data, { roots: { roots: [] } });

    // With a form: the answer of the person comes from another process, and the roots go with it.
    assert.equal((await begin(era, ['roots', 'colour'], both + '    elicitation: true\n')).status, 3);
    const done = await run('resume', 'last', '--decision', 'accept', '--state');
    assert.deepEqual(result(done).data, { roots, colour: { action: 'accept', content: { colour: 'blue' } } });
    assert.ok(era === 'legacy' || noted().at(-2).state === 'state roots,colour');
    assert.equal((await run('replay', 'last')).status, 0);

    // Not declared; and what is declared is not a model.
    const refused = result(await begin(era, ['roots'], ''));
    assert.ok(era === 'modern' ? refused.error.message.includes('was not declared') : refused.data.roots.code === -32601,
              JSON.stringify(refused));
    const model = result(await begin(era, ['roots', 'model'], both));
    assert.ok(era === 'modern' ? model.error.message.includes('was not declared') : model.data.model.code === -32601,
              JSON.stringify(model));
}

// Asked for again and again.
const again = result(await begin('modern', ['again', 'roots'].reverse(), both));
assert.equal(again.status, 'error');

for (const [path, words] of [['nowhere', 'No such file or directory'], ['log', 'is not a folder']]) {
    const missing = await begin('modern', ['roots'], `    required: true\n    roots: [${path}]\n`);
    assert.ok(missing.status !== 0 && missing.err.includes('root ') && missing.err.includes(words), missing.err);
}
const empty = await begin('modern', ['roots'], '    roots: [""]\n');
assert.ok(empty.status === 2 && empty.err.includes('a root must be a folder'), empty.err);
console.log('roots of both eras');
