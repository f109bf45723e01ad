// A run whose tool asks a person is killed at each write to its store, as are the processes that recover it and that
// bring the answer: a real server on a pipe counts its effects, and each is as the class of its tool promises.
// elicit_killed.mjs REEVE SHIM
import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { assert, env, folder, lines, pipeline, place, reeve, script, write } from './kit.mjs';

const shim = process.argv[3];
const step = process.env.REEVE_SOAK ? 1 : 31; // some writes, each with another way of dying; all of them in a soak
const hows = ['before', 'torn', 'after', 'lose', 'scatter'];
const store = place('store.db');
let nKilled = 0, nUnknown = 0;

// One process; death: {at, how}, or nothing to let it alone.
function act(death, ...args) {
    const r = spawnSync(reeve, [...args, '--store', store], { cwd: folder, encoding: 'utf8', env: { ...env, REEVE_SYNC: 'full',
        REEVE_CRASH_STORE: store, REEVE_CRASH_EFFECTS: place('effects'), REEVE_CRASH_COUNT: place('count'),
        REEVE_CRASH_HOW: death?.how ?? 'before', REEVE_CRASH_AT: String(death?.at ?? 0), REEVE_CRASH_SEED: '7',
        ...(death ? { LD_PRELOAD: shim } : {}) } });
    const killed = r.signal === 'SIGKILL' && r.stderr.includes('crash: ');
    nKilled += killed;
    assert.ok(killed || [0, 3].includes(r.status), `${args.join(' ')}: ${r.status ?? r.signal} ${r.stderr}`);
    return r;
}
const noted = () => lines('log').map((line) => JSON.parse(line));

// Whether the call happened is answered from the server's own log, as a person would find it out.
function answer(death, run, { id, data }) {
    const send = (...args) => act(death, 'resume', run, '--interrupt', id, ...args);
    if (data.reason === 'tool_input') {
        assert.equal(data.schema.required[0], 'name');
        return send('--decision', 'accept', '--data', '{"name": "Anna"}');
    }
    nUnknown++;
    assert.ok(data.idempotency_key, JSON.stringify(data));
    return noted().some(({ effect, key }) => effect && key === data.idempotency_key)
        ? send('--decision', 'happened', '--data', '{"name": {"action": "accept", "content": {"name": "Anna", "times": 3}}}')
        : send('--decision', 'not_happened');
}

// From nothing to the end, by as many processes as it takes. deaths[0]: of the process that begins, deaths[1]: of the
// one that comes next. The number of writes of these two.
function live(deaths, input) {
    const counts = [];
    for (const end of ['', '-wal', '-shm', '-journal'])
        rmSync(store + end, { force: true });
    copyFileSync(place('template.db'), store);
    writeFileSync(place('log'), '');
    const next = (what) => {
        const death = deaths.shift();
        rmSync(place('count'), { force: true });
        what(death);
        counts.push(Number(lines('count')[0]));
    };
    const begin = (death) => act(death, 'run', 'p.yaml', '--script', 'script.yaml', '--input', input);
    next(begin);
    for (let i = 0; ; i++) {
        assert.ok(i < 20, 'it does not come to an end');
        const [row] = JSON.parse(act(null, 'runs', 'list', '--json').stdout).filter((one) => one.pipeline === 't');
        if (!row)
            assert.equal(noted().length, 0, 'something happened before there was a run');
        else if (row.status === 'completed')
            break;
        next(!row ? begin
             : row.status === 'interrupted' ? (death) => answer(death, row.id, row.pending[0])
             : (death) => act(death, 'runs', 'recover'));
    }
    act(null, 'replay', 'last');
    act(null, 'gc', '--check');
    return counts;
}

// What the server saw, and what the run made of it.
function judge(times, which) {
    const all = noted(), effects = all.filter(({ effect }) => effect);
    const { state } = JSON.parse(act(null, 'runs', 'show', 'last', '--json').stdout);
    const [result] = state.outputs.work.results;
    assert.deepEqual(result.data, { name: { action: 'accept', content: { name: 'Anna', times: 3 } } }, which);
    assert.ok(times(effects.length), `${which}: ${effects.length} effects`);
    assert.equal(new Set(all.filter(({ call }) => call).map(({ key }) => key)).size, 1, which);
}

const rows = [
    // era, tool, what the file says of it, how many effects there may be after one kill
    ['modern', 'form', '{form: {idempotent: true}}', (n) => n === 1 || n === 2],
    ['modern', 'form_once', '{form_once: {confirm: never}}', (n) => n === 1],
    ['legacy', 'form', '{form: {read_only: true}}', (n) => n === 1 || n === 2],
];
// A store that is there: kills while it is made are those of tests/crash.
write('aside.yaml', 'name: aside\nagents: [{name: a, set: {x: "1"}, default_next: end}]\n');
assert.equal(spawnSync(reeve, ['run', 'aside.yaml', '--input', 'x', '--store', place('template.db')], { cwd: folder, env }).status, 0);
for (const [era, tool, says, times] of rows) {
    pipeline('p.yaml', ['--era', era, '--log', place('log')], `    elicitation: true\n    tools: ${says}`, tool);
    script([{ tool, parameters: { ask: ['name'] } }]);
    const far = { at: 1 << 30, how: 'before' };
    const counts = live([far, far], 'x');
    judge((n) => n === 1, 'without a crash');
    assert.ok(counts.length === 2 && counts.every((n) => n > 5), `${era} ${tool}: ${counts}`);
    let points = 0;
    for (const phase of [0, 1])
        for (let at = 1 + points % step; at <= counts[phase]; at += step) {
            const death = { at, how: hows[points++ % hows.length] };
            const before = nKilled;
            live(phase === 0 ? [death] : [null, death], 'x');
            judge(times, `${era} ${tool}, process ${phase}, ${death.how} write ${at}`);
            assert.equal(nKilled, before + 1, `${era} ${tool}, process ${phase}, write ${at}: it was not killed`);
        }
    console.log(`${era} ${tool}: ${points} of ${counts[0]} + ${counts[1]} writes`);
}
assert.ok(nKilled > 6);
console.log(`${nKilled} were killed, a person was asked about ${nUnknown} calls`);
