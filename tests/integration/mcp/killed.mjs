// reeve is killed while a call of an MCP tool is under way, after its effect: what the effect class promises holds.
import { assert, gone, lines, pipeline, place, run, script, start, until } from './kit.mjs';

const rows = [
    // tool, what the file says of it, effects after recovery, status of the run
    ['count', '{count: {}}', 1, 'interrupted'],                      // it may have happened: a person is asked
    ['count', '{count: {idempotent: true}}', 2, 'completed'],        // repeated, with the same key
    ['count', '{count: {read_only: true}}', 2, 'completed'],
];
for (const [i, [tool, says, effects, end]] of rows.entries()) {
    script([{ tool, parameters: { by: i } }]);
    pipeline('p.yaml', ['--log', place(`log${i}`), '--fault', 'late', '--mark', place(`mark${i}`)],
             `    tools: ${says}`, tool);
    const child = start('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--store', place(`store${i}`));
    const ended = new Promise((resolve) => child.on('exit', resolve));
    await until(() => lines(`log${i}`).length === 1);
    child.kill('SIGKILL');
    await ended;
    await gone(place(`mark${i}`)); // its input ended, and so did the server
    const recovered = await run('runs', 'recover', '--store', place(`store${i}`));
    const all = lines(`log${i}`).map((line) => JSON.parse(line));
    assert.equal(all.length, effects, `${says}: ${recovered.err}`);
    assert.ok(all.every(({ by, key }) => by === i && key && key === all[0].key), JSON.stringify(all));
    const [row] = JSON.parse((await run('runs', 'list', '--json', '--store', place(`store${i}`))).out);
    assert.equal(row.status, end, recovered.err);
}
console.log(`${rows.length} classes`);
