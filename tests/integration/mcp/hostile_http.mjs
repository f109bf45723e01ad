// A server over HTTP that misbehaves costs one call, which fails with a code of its own; the run goes on, nothing is sent
// where it must not go, and nothing is left open.
// Proves mcp.M4
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { assert, here, place, reeve, results, run, script, write } from './kit.mjs';
import { faults, sessions, start, tokens } from './hostile_http_server.mjs';

const server = await start();
const { state } = server;
const brief = 400; // ms: for what does not end by itself

// fault: the value, or [code], of each era; a second element is the limit of the call
const both = {
    none: 'fine',
    'endless-body': ['too_large'], 'huge-message': ['too_large'], 'endless-line': ['too_large'], 'endless-event': ['too_large'],
    'endless-comments': ['too_large'], 'endless-notifications': ['timed_out', brief],
    'gzip-bomb': ['too_large'], 'gzip-bomb-error': ['http_status'], 'gzip-bomb-events': ['too_large'], 'gzip-of-gzip': ['bad_message'],
    'gzip-broken': ['bad_message'], 'deflate-cut': ['bad_message'],
    'endless-head': ['bad_message'], 'many-headers': ['bad_message'], 'early-hints': ['bad_message'],
    'invalid-utf8': ['bad_message'], 'invalid-utf8-event': ['bad_message'], deep: ['bad_message'], nul: ['bad_message'],
    'empty-body': ['bad_message'], batch: ['bad_message'], 'two-values': ['bad_message'],
    'wrong-id': ['bad_message'], 'text-id': ['bad_message'], 'id-of-another': ['bad_message'],
    'wrong-ids-then-right': 'right', twice: 'first', 'answers-and-stays': 'answered',
    html: ['bad_message'], 'endless-html': ['bad_message'], 'no-type': ['bad_message'], 'hostile-type': ['bad_message'],
    accepted: ['bad_message'], 'no-content': ['bad_message'], 'not-http': ['bad_message'], 'http-0.9': ['bad_message'],
    notifications: 'after the flood', progress: 'after the progress', requests: 'asked', changes: 'changed',
    'redirect-private': ['not_allowed'], 'redirect-metadata': ['not_allowed'], 'redirect-port': ['not_allowed'],
    'redirect-user': ['not_allowed'], 'redirect-file': ['http_status'], 'redirect-garbage': ['http_status'],
    'redirect-loop': ['http_status'], 'redirect-get': ['http_status'],
    'no-head': ['timed_out', brief], 'no-body': ['timed_out', brief], 'stalled-stream': ['timed_out', brief],
    'stalled-event': ['timed_out', brief],
    reset: ['connection_lost'], closed: ['connection_lost'], 'reset-in-head': ['connection_lost'],
    'reset-in-body': ['connection_lost'], 'short-body': ['connection_lost'], 'cut-in-event': ['connection_lost'],
    'ended-in-event': ['connection_lost'], 'ended-empty': ['connection_lost'],
    'continues-with-hostile-id': ['connection_lost'],
    'status-400': ['http_status'], 'endless-500': ['http_status'], 'endless-400-event-stream': ['http_status'], 'status-429': ['http_status'],
    'error-in-500': ['rejected'], 'hostile-500': ['http_status'], 'hostile-status': ['http_status'],
};
const eras = {
    legacy: { ...both, continues: 'continued', 'continues-never': ['connection_lost'], 'continues-always': ['timed_out', brief],
              'continues-late': ['timed_out', brief], 'endless-404': ['session_expired'],
              'continues-with-hostile-id': ['http_status'] }, // the id before those that cannot be sent is, and not known
    modern: { ...both, continues: ['connection_lost'], 'continues-never': ['connection_lost'],
              'continues-always': ['connection_lost'], 'continues-late': ['connection_lost'], 'endless-404': ['http_status'] },
};

const usual = { tool: 's.none', parameters: {} };
// Those that do not end by themselves; the others have the usual limit.
const limit = (fault) => (Array.isArray(eras.legacy[fault]) && eras.legacy[fault][1] ? `, timeout_ms: ${brief}` : '');
function pipeline(folder, more = '', required = true, names = ['none']) {
    write('p.yaml', `name: t
mcp_servers:
  count: {command: [node, ${join(here, 'hostile_http_counter.mjs')}], required: true, tools: {open: {read_only: true}}}
  s:
    url: "${server.url(folder)}"
    required: ${required}
${more}
    tools: {${names.map((fault) => `${fault}: {read_only: true${limit(fault)}}`).join(', ')}}
execution: {max_plan_steps: 200}
models: {default: "scripted:any"}
agents:
  - {name: plan, has_llm: true, model_role: default, prompt_key: p, output_key: plan, default_next: work}
  - {name: work, has_tools: true, allowed_tools: [count.open, ${names.map((fault) => `s.${fault}`).join(', ')}], default_next: end}
prompts: {p: plan it}
`);
}

// All faults one after the other in one run: what one of them leaves behind would be seen by those after it.
const count = { tool: 'count.open', parameters: {} };
for (const [era, wants] of Object.entries(eras)) {
    assert.deepEqual(Object.keys(wants).sort(), Object.keys(faults).sort(), 'a fault without a row');
    const isLong = (fault) => /^(endless-(comments|event|notifications)|gzip-bomb-events|notifications|progress)$/.test(fault);
    const names = Object.keys(wants).filter((fault) => era === 'legacy' || process.env.REEVE_SOAK || !isLong(fault)); // the same code
    state.isChanged = false;
    state.streams = 0;
    pipeline(era, '', true, names);
    script([usual, count, ...names.map((fault) => ({ tool: `s.${fault}`, parameters: {} })), usual, count]);
    const { status, out, err } = await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--state', '--no-store');
    assert.equal(status, 0, `${era}: ${err}`);
    const [, before, ...all] = results(out);
    const after = all.pop();
    assert.equal(all.pop().data?.value, 'fine', 'the server is used like before');
    for (const [i, fault] of names.entries()) {
        const said = JSON.stringify(all[i].error ?? all[i].data);
        const want = wants[fault];
        if (typeof want === 'string') {
            assert.equal(all[i].data?.value, want, `${era} ${fault}: ${said}`);
            continue;
        }
        const timeout = want[0] === 'timed_out' && said.includes('Timeout'); // the engine's own clock may be first
        assert.ok(all[i].status === 'error' && (said.includes(`[${want[0]}]`) || timeout), `${era} ${fault}: ${said}`);
        assert.ok(Buffer.byteLength(said) < 4096, `${era} ${fault}: ${said.length} bytes`);
    }
    for (const what of ['descriptors', 'threads', 'children'])
        assert.ok(after.data[what] <= before.data[what], `${era}: ${what} before: ${before.data[what]}, after: ${after.data[what]}`);
    // a message of 16 MiB, its text as it is read and the bytes of a decoder, a few times over; sanitizers keep more
    // The address sanitizer keeps what was freed, up to 256 MB of it.
    if (after.data.peak_kb > 200 * 1024 && before.data.peak_kb < 60 * 1024 && !readFileSync(reeve).includes('__asan_init')) assert.fail(`${era}: ${after.data.peak_kb} KB of memory`);
    assert.ok(state.streams < 60, `${era}: ${state.streams} streams were asked for`);
    if (process.env.VERBOSE) console.log(era, before.data, after.data, state.streams);
}
assert.equal(state.hits, 0, 'another server was asked');

// A session whose id cannot be sent is not a session.
for (const [folder, id] of Object.entries(sessions)) {
    pipeline(folder);
    script([usual]);
    state.isChanged = false;
    state.sessions = [];
    const { out, err } = await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--state', '--no-store');
    assert.equal(results(out)[0].data?.value, 'fine', `${folder}: ${err}`);
    assert.ok(folder === 'session-usual' ? state.sessions.length > 3 && state.sessions.every((s) => s === id) : !state.sessions.length,
              `${folder}: ${state.sessions}`);
}

// A server that is not one from the start, or whose list does not end: the run begins without it, or not at all.
const beginnings = {
    'list-loop': 'too_many_pages', 'list-endless': 'too_many_pages', 'list-huge': 'too_large', 'list-stalls': 'timed_out',
    'begins-endless': 'too_large', 'begins-redirect': 'not_allowed', 'begins-html': 'bad_message', 'begins-reset': 'connection_lost',
    'begins-version': 'unsupported_version', 'begins-stalls': 'timed_out',
};
for (const [folder, code] of Object.entries(beginnings)) {
    const time = `    timeout_ms: ${code === 'timed_out' ? brief : 20000}`;
    pipeline(folder, time, false);
    const listed = await run('mcp', 'list', 'p.yaml', '--json');
    const row = JSON.parse(listed.out).find((r) => r.server === 's');
    assert.ok(listed.status === 1 && listed.err.includes(`[${code}]`), `${folder}: ${listed.err}`);
    pipeline(folder, time);
    const refused = await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--no-store');
    assert.equal(refused.status, 2, `${folder}: ${refused.err}`);
}

// What a server says on a stream of its own, or does not say at the end, keeps no call from its answer.
for (const folder of ['stream-endless', 'stream-requests', 'stream-huge', 'stream-redirect', 'stream-ends', 'end-stalls']) {
    pipeline(folder);
    const { status, out, err } = await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--state', '--no-store');
    assert.ok(status === 0 && results(out)[0].data?.value === 'fine', `${folder}: ${err}${out}`);
}

// Tokens: no address is asked that must not be, and nothing of what a server says ends up in a header or on a terminal.
for (const [folder, how] of Object.entries(tokens)) {
    rmSync(place('state'), { recursive: true, force: true });
    pipeline(folder, `    timeout_ms: ${how.limit ?? 20000}\n    auth: {grant: client_credentials, client_id: me, client_secret: hidden}`);
    state.seen = [];
    const { status, out, err } = await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--state', '--no-store');
    const works = how.works ?? (folder === 'auth-good' || folder === 'auth-challenge-garbage' || folder === 'auth-challenge-many');
    if (works) {
        assert.equal(results(out)[0].data?.value, 'fine', `${folder}: ${err}`);
    } else {
        assert.equal(status, 2, `${folder}: ${out}${err}`);
        assert.match(err, how.limit ? /\[timed_out\]/ : /\[(unauthorized|not_allowed)\]/, folder);
    }
    assert.ok(!err.includes('hidden') && !/[\x00-\x08\x0e-\x1f]/.test(err) && err.length < 4096, `${folder}: ${err}`);
    assert.ok(state.seen.length < 30, `${folder}: ${state.seen.length} requests`);
}
assert.equal(state.hits, 0, 'another server was asked');
server.close();
console.log(`${Object.keys(faults).length} faults of two eras, ${Object.keys(sessions).length} sessions, ` +
            `${Object.keys(beginnings).length} beginnings, ${Object.keys(tokens).length} tokens`);
