// Blocks of an answer beside its data: the pipeline gets the data, the model what is meant for it, and a later stage can
// show an image to its model.
import { assert, pipeline, results, run, script, server, write } from './kit.mjs';

// A tool stage: data and content beside each other.
script([{ tool: 'rich', parameters: {} }, { tool: 'picture', parameters: {} }, { tool: 'add', parameters: { a: 1, b: 2 } }]);
pipeline('p.yaml', [], '', 'rich, picture, add');
const staged = await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--state');
assert.equal(staged.status, 0, staged.err);
const [rich, picture, add] = results(staged.out);
assert.deepEqual(rich.data, { rows: [1, 2, 3] });
assert.deepEqual(rich.content.map((part) => part.type), ['text', 'image', 'reference', 'text']);
assert.deepEqual(picture.content[0], { type: 'image', data: 'AAAA', media_type: 'image/png' });
assert.deepEqual([add.data, add.content], [{ sum: 3 }, [{ type: 'text', text: '3' }]]);

// A model that calls the tool reads the content in place of the data.
write('talk.yaml', `name: t
mcp_servers: {stub: {command: ${JSON.stringify(['node', server])}}}
models: {default: "scripted:any"}
agents:
  - {name: ask, has_llm: true, model_role: default, prompt_key: p, output_key: ask, output_mode: text, has_tools: true,
     allowed_tools: [rich], default_next: end}
prompts: {p: "what is there?"}
`);
write('talk-script.yaml', JSON.stringify({ models: [
    { stage: 'ask', contains: 'for people only', text: 'told too much' },
    { stage: 'ask', contains: '"rows"', text: 'told the data' },
    { stage: 'ask', contains: '[image image/png, 3 bytes]\n[resource stub://a, a, text/plain]\nthe text of b', text: 'good' },
    { stage: 'ask', tool_calls: [{ id: 'c1', name: 'rich', arguments: {} }] },
] }));
const talked = await run('run', 'talk.yaml', '--script', 'talk-script.yaml', '--input', 'x');
assert.equal(JSON.parse(talked.out).ask.response, 'good', talked.err);
assert.equal((await run('replay', 'last')).status, 0);

// An image of a tool stage is an attachment of a later one.
write('look.yaml', `name: t
mcp_servers: {stub: {command: ${JSON.stringify(['node', server])}}}
models: {default: "scripted:any"}
agents:
  - {name: plan, has_llm: true, model_role: default, prompt_key: p, output_key: plan, default_next: work}
  - {name: work, has_tools: true, allowed_tools: [picture], default_next: look}
  - {name: look, has_llm: true, model_role: default, prompt_key: p, output_key: look, output_mode: text,
     attachments: ["outputs.work.results[0].content[0]"], default_next: end}
prompts: {p: "what is there?"}
`);
write('look-script.yaml', JSON.stringify({ models: [
    { stage: 'plan', json: { steps: [{ tool: 'picture', parameters: {} }] } },
    { stage: 'look', contains: 'image/png', text: 'good' },
] }));
const looked = await run('run', 'look.yaml', '--script', 'look-script.yaml', '--input', 'x', '--no-store');
assert.equal(JSON.parse(looked.out).look.response, 'good', looked.err);
// A plan reads results as the server gave them: a text is a text, structured content is an artifact, also with an id that
// stands in _meta, and a result that is none has a code.
// Proves plan.N2, plan.N3, plan.N4, plan.N5, plan.A1, plan.A3, plan.X4
const asked = (tool_name, given = {}) => ({ tool_name, arguments: given, on_failure: 'continue' });
const plan = { type: 'tool_calls', calls: [asked('add', { a: 1, b: 2 }), asked('echo', { text: 'a ${0.output.sum}' }), asked('echo', { text: '$1.output' }),
                                           asked('rich'), asked('picture'), asked('wrong_output'), asked('no_output'), asked('fail'), asked('refused')] };
write('planned.yaml', `name: t
mcp_servers: {stub: {command: ${JSON.stringify(['node', server])}, trusted: true}}
models: {default: "scripted:any"}
agents:
  - {name: work, has_llm: true, has_tools: true, tool_access: all, strategy: planned, plan: {unschematized: defer}, model_role: default,
     prompt_key: p, default_next: end}
prompts: {p: plan it}
`);
write('planned-script.yaml', JSON.stringify({ models: { work: [{ tool_calls: [{ name: '__planning__', arguments: plan }] }, { text: 'done' }] } }));
const planned = await run('run', 'planned.yaml', '--script', 'planned-script.yaml', '--input', 'x', '--state');
const made = JSON.parse(planned.out).outputs.work.results;
assert.deepEqual(made.slice(0, 5).map((r) => r.output), [{ sum: 3 }, 'a 3', 'a 3', { rows: [1, 2, 3] }, 'a picture'], planned.err + planned.out);
assert.deepEqual(made.slice(0, 5).map((r) => r.artifact_id?.length ?? 0), [36, 0, 0, 3, 0]);
assert.equal(made[3].artifact_id, 'r-1');
assert.deepEqual(made.slice(5).map((r) => r.code), ['output_schema_violation', 'missing_structured_content', 'tool_error', 'tool_error']);
assert.deepEqual(JSON.parse((await run('artifacts', '--run', 'last', '--json')).out).map((a) => [a.title, a.type]), [['add', 'data'], ['rich', 'data']]);
assert.equal((await run('replay', 'last')).status, 0);
console.log('content beside data');
