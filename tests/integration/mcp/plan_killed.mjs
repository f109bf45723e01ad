// The run of a plan with a tool of each effect class is killed at each write to its store, as is the process that goes on
// with it: a real server on a pipe counts its effects, and each is as the class of its tool promises.
// plan_killed.mjs REEVE SHIM
import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { assert, env, folder, lines, place, reeve, server, write } from './kit.mjs';

const shim = process.argv[3];
const step = process.env.REEVE_SOAK ? 1 : 41; // some writes, each with another way of dying; all of them in a soak
const hows = ['before', 'torn', 'after', 'lose', 'scatter'];
const store = place('store.db');
let nKilled = 0, nUnknown = 0;

write('p.yaml', `name: t
mcp_servers:
  stub:
    command: ${JSON.stringify(['node', server, '--log', place('log')])}
    timeout_ms: 60000
    tools: {add: {read_only: true}, count_once: {idempotent: true}, remove: {destructive: true, confirm: never}}
models: {default: "scripted:any"}
agents:
  - {name: work, has_llm: true, has_tools: true, tool_access: all, strategy: planned, model_role: default, prompt_key: p, default_next: end}
prompts: {p: plan it}
`);
const calls = [{ tool_name: 'add', arguments: { a: 3, b: 4 } }, { tool_name: 'count_once', arguments: { by: '$0.output.sum' } },
               { tool_name: 'remove', arguments: {} }];
write('script.yaml', `models:
  work:
    - {tool_calls: [{name: __planning__, arguments: ${JSON.stringify({ type: 'tool_calls', calls })}}]}
    - {text: "done"}
`);

// One process; death: {at, how}, or nothing to let it alone.
function act(death, ...args) {
    const r = spawnSync(reeve, [...args, '--store', store], { cwd: folder, encoding: 'utf8', env: { ...env, REEVE_SYNC: 'full',
        REEVE_CRASH_STORE: store, REEVE_CRASH_COUNT: place('count'), REEVE_CRASH_HOW: death?.how ?? 'before',
        REEVE_CRASH_AT: String(death?.at ?? 0), REEVE_CRASH_SEED: '7', ...(death ? { LD_PRELOAD: shim } : {}) } });
    const killed = r.signal === 'SIGKILL' && r.stderr.includes('crash: ');
    nKilled += killed;
    assert.ok(killed || r.status === 0, `${args.join(' ')}: ${r.status ?? r.signal} ${r.stderr}`);
    return r;
}
const noted = () => lines('log').map((line) => JSON.parse(line));
const rows = () => JSON.parse(act(null, 'runs', 'list', '--json').stdout).filter((one) => one.pipeline === 't');

// From nothing to the end. deaths[0]: of the process that begins, deaths[1]: of the one that comes next. The number of
// writes of these two.
function live(deaths) {
    const counts = [];
    for (const end of ['', '-wal', '-shm', '-journal'])
        rmSync(store + end, { force: true });
    copyFileSync(place('template.db'), store);
    writeFileSync(place('log'), '');
    for (let i = 0; ; i++) {
        assert.ok(i < 20, 'it does not come to an end');
        const [row] = rows();
        if (row?.status === 'completed')
            break;
        assert.ok(row || noted().length === 0, 'something happened before there was a run');
        rmSync(place('count'), { force: true });
        act(deaths[i], ...(row ? ['runs', 'recover'] : ['run', 'p.yaml', '--script', 'script.yaml', '--input', 'x']));
        counts.push(Number(lines('count')[0]));
    }
    act(null, 'replay', 'last');
    act(null, 'gc', '--check');
    return counts;
}

// What the server saw, and what the run made of it.
function judge(which) {
    const { state } = JSON.parse(act(null, 'runs', 'show', 'last', '--json').stdout);
    const { results } = state.outputs.work;
    const [once, removed] = ['count_once', 'remove'].map((tool) => noted().filter((line) => line.tool === tool));
    assert.equal(results[0].output.sum, 7, which);
    assert.ok(results[1].success && once.length >= 1 && once.every(({ by, key }) => by === 7 && key && key === once[0].key), which);
    if (results[2].success)
        return assert.equal(removed.length, 1, which);
    nUnknown++;
    assert.ok(JSON.stringify(results[2]).includes('outcome_unknown') && removed.length <= 1, `${which}: ${JSON.stringify(results[2])}`);
    return undefined;
}

// A store that is there: kills while it is made are those of tests/crash.
write('aside.yaml', 'name: aside\nagents: [{name: a, set: {x: "1"}, default_next: end}]\n');
assert.equal(spawnSync(reeve, ['run', 'aside.yaml', '--input', 'x', '--store', place('template.db')], { cwd: folder, env }).status, 0);
const far = { at: 1 << 30, how: 'before' };
const [first] = live([far]);
judge('without a crash');
assert.ok(first > 10 && nUnknown === 0, `${first} writes`);
let points = 0;
for (let at = 2; at <= first; at += step) {
    const death = { at, how: hows[points++ % hows.length] };
    const before = nKilled;
    live([death]);
    judge(`${death.how} write ${at}`);
    assert.equal(nKilled, before + 1, `write ${at}: it was not killed`);
}
// The process that goes on is killed, too. The first one dies where the run is under way.
const middle = { at: Math.floor(first / 2), how: 'after' };
const second = live([middle, far])[1];
for (let at = 1 + points % step; at <= second; at += step, points++) {
    live([middle, { at, how: hows[points % hows.length] }]);
    judge(`second process, write ${at}`);
}
console.log(`${points} of ${first} + ${second} writes, ${nKilled} killed, ${nUnknown} with an unknown outcome`);
