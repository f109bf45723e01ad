// Lists that a server said are fresh: the next run of the same process does not ask again, until they are not, or the server
// tells of a change.
import { call, check, equal, file, finish, root, scratch, serve } from '../../serve/kit.mjs';
import { existsSync, readFileSync } from 'node:fs';

const lists = (name) => (existsSync(`${scratch}/${name}.log`) ? readFileSync(`${scratch}/${name}.log`, 'utf8') : '')
    .split('\n').filter(Boolean).map(JSON.parse).filter((line) => line.list === 'first').length;
function pipeline(name, ttl, more = [], keys = '') {
    const command = ['node', `${root}/tests/integration/mcp/server.mjs`, '--era', 'modern', '--ttl', String(ttl), '--log', `${scratch}/${name}.log`, ...more];
    file(`p/${name}.yaml`, `name: ${name}
mcp_servers:
  stub: {command: ${JSON.stringify(command)}, trusted: true, timeout_ms: 20000${keys}}
agents:
  - {name: plan, set: {steps: "[{'tool': 'stub.echo', 'parameters': {'text': 'hi'}}]"}, output_key: plan, default_next: work}
  - {name: work, has_tools: true, allowed_tools: [stub.echo], default_next: end}
`);
}
pipeline('fresh', 3600000);
pipeline('pages', 3600000, ['--tools', '100']);
pipeline('stale', 0);
pipeline('negative', -5);
pipeline('text', '1e999'); // Infinity is null in JSON
pipeline('changes', 3600000, ['--fault', 'changes']);
const server = await serve('kept.db', ['--pipelines', `${scratch}/p`]);
async function run(name) {
    const r = await call(server, 'POST', '/runs', { pipeline: name, input: 'x', wait: true });
    check(r.json?.status === 'completed' && r.json.result.outputs.work.results[0].status === 'success', `${name} runs`, r.text);
}
for (const [name, wanted] of [['fresh', 1], ['pages', 1], ['stale', 3], ['negative', 3], ['text', 3]]) {
    for (let i = 0; i < 3; i++) await run(name);
    equal(lists(name), wanted, `${name}: times that its list was asked for in three runs`);
}
pipeline('fresh', 3600000, [], ', env: {WHO: other}'); // the same server for another identity
await run('fresh');
equal(lists('fresh'), 2, 'another identity has a list of its own');
await run('changes'); // its call tells of a change
equal(lists('changes'), 1, 'a list is asked for');
await run('changes');
equal(lists('changes'), 2, 'and again after the server told of a change');
equal(await server.stop(), 0, 'it ends');
finish('kept');
