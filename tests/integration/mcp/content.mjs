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
console.log('content beside data');
