// Progress of a call is an event for observers: bounded in number and size, and no journal has it.
import { assert, pipeline, run, script } from './kit.mjs';

pipeline('p.yaml', [], '', 'steps');
for (const n of [1, 5000]) {
    script([{ tool: 'steps', parameters: { n } }]);
    const { status, out, err } = await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--events');
    assert.equal(status, 0, err);
    const events = out.split('\n').filter((line) => line).map(JSON.parse);
    const told = events.filter((e) => e.type === 'tool_progress');
    const start = events.findIndex((e) => e.type === 'tool_call_start');
    const end = events.findIndex((e) => e.type === 'tool_result');
    assert.ok(told.length >= 1 && told.length <= 200 && (n > 1 || told.length === 1), `${told.length} events`);
    const [first] = told;
    assert.deepEqual([first.progress, first.total, first.tool, first.kept, first.stage, first.call_id],
                     [1, n, 'steps', false, 'work', events[start].call_id]);
    assert.ok(first.message.startsWith('step 1!') && first.message.length <= 500 && !('seq' in first));
    assert.ok(told.every((e, i) => i === 0 || e.progress > told[i - 1].progress));
    assert.ok(told.every((e) => events.indexOf(e) > start && events.indexOf(e) < end));
    const kept = (await run('runs', 'events', 'last')).out;
    assert.ok(kept.includes('tool_result') && !kept.includes('tool_progress'));
}
console.log('progress');
