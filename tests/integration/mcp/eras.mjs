// Servers of each era and revision, from outside: tools, resources, prompts, kept lists, names.
// Proves mcp.M1, mcp.M2, mcp.H2, plan.N2, plan.N4
import { assert, lines, pipeline, place, results, run, script, write } from './kit.mjs';

for (const [era, version] of [['legacy', '2024-11-05'], ['legacy', '2025-03-26'], ['legacy', '2025-06-18'],
                              ['legacy', '2025-11-25'], ['modern', '2026-07-28'], ['both', '2026-07-28']]) {
    const more = '    resources: true\n    prompts: true\n    tools: {echo: {read_only: true}, add: {read_only: true}}';
    pipeline('p.yaml', ['--era', era, ...(era === 'legacy' ? ['--version', version] : []), '--tools', '100'], more,
             'echo, add, list_resources, list_resource_templates, read_resource, get_prompt, tool_99');
    const listed = JSON.parse((await run('mcp', 'list', 'p.yaml', '--json')).out);
    assert.deepEqual([listed[0].version, listed[0].tools], [version, 122], era);
    script([{ tool: 'echo', parameters: { text: 'über' } }, { tool: 'add', parameters: { a: 1, b: 2 } },
            { tool: 'list_resources', parameters: {} }, { tool: 'list_resource_templates', parameters: {} },
            { tool: 'read_resource', parameters: { uri: 'stub://a' } },
            { tool: 'get_prompt', parameters: { name: 'p', arguments: { x: 'y' } } },
            { tool: 'read_resource', parameters: { uri: 'stub://none' } }]);
    const { status, out, err } = await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--state', '--no-store');
    assert.equal(status, 0, err);
    const [echo, add, list, templates, read, prompt, none] = results(out);
    assert.equal(echo.data.value, 'über');
    assert.deepEqual(add.data, { sum: 3 });
    assert.equal(list.data.items.length, 2);
    assert.deepEqual(templates.data.items.map((t) => t.uriTemplate), ['stub://{name}']);
    assert.equal(read.data.contents[0].text, 'the text of a');
    assert.equal(prompt.data.messages[0].content.text, 'say y');
    assert.ok(none.status === 'error' && JSON.stringify(none).includes('no such resource'));
}

// Confirmation: what a server declares destructive is asked about, with its arguments.
script([{ tool: 'remove', parameters: {} }]);
pipeline('p.yaml', [], '', 'remove');
const asked = await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x', '--json');
assert.equal(asked.status, 3, asked.err);
const approved = await run('resume', 'last', '--approve', '--state');
assert.equal(results(approved.out)[0].data.value, 'removed', approved.err);
pipeline('p.yaml', [], '    confirm: never', 'remove');
assert.equal((await run('run', 'p.yaml', '--script', 'script.yaml', '--input', 'x')).status, 0);

// Without a kept list lint lets names of the server pass with a warning; with it they are checked, and nothing starts.
pipeline('p.yaml', ['--log', place('log')], '    catalog: kept.json', 'stub.echo');
const before = await run('lint', 'p.yaml');
assert.ok(before.status === 0 && before.err.includes('mcp_unlisted'), before.err);
write('two.yaml', `name: two
mcp_servers: {one: {command: [a]}, two: {command: [b]}}
agents: [{name: w, has_tools: true, tool_access: all, allowed_tools: [two.put]}]
`);
const both = await run('lint', 'two.yaml');
assert.ok(both.err.includes('"two.put" is not checked: the tools of MCP server "two" are not known'), both.err);
assert.equal((await run('mcp', 'tools', 'p.yaml', '--write')).status, 0);
assert.equal((await run('lint', 'p.yaml', '--strict')).status, 0);
pipeline('p.yaml', [], '    catalog: kept.json', 'stub.ecco');
const wrong = await run('lint', 'p.yaml');
assert.ok(wrong.status === 2 && wrong.err.includes('stub.ecco') && wrong.err.includes('stub.echo'), wrong.err);
write('kept.json', '{"stub": {"tools": [}');
assert.equal((await run('lint', 'p.yaml')).status, 2);
assert.equal(lines('log').length, 0);

// Two servers with a tool of one name: the bare name is not known, both full names are.
write('two.yaml', `name: t
mcp_servers:
  a: {command: [node, ${new URL('./server.mjs', import.meta.url).pathname}]}
  b: {command: [node, ${new URL('./server.mjs', import.meta.url).pathname}]}
agents: [{name: work, has_tools: true, allowed_tools: [a.echo, b.echo, echo], default_next: end}]
`);
const two = JSON.parse((await run('mcp', 'tools', 'two.yaml', '--json')).out);
assert.ok(two.every((tool) => !tool.short_name) && two.length === 34);
const refused = await run('run', 'two.yaml', '--input', 'x');
assert.ok(refused.status === 2 && refused.err.includes('"echo"'), refused.err);
console.log('eras, resources, prompts, confirmation, kept lists, names');
