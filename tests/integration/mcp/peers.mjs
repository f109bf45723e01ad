// The servers of the protocol's authors: they are listed, and their tools are called.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { assert, folder, here, run, write } from './kit.mjs';

let packages;
try {
    packages = execFileSync(join(here, '../../kit/packages'), [here], { encoding: 'utf8' }).trim();
} catch (error) {
    process.exit(error.status); // 77: left out on purpose
}
const program = (name) => join(packages, 'node_modules/@modelcontextprotocol', name, 'dist/index.js');
write('note.txt', 'a hawser is a rope');
write('peers.yaml', `name: peers
mcp_servers:
  everything: {command: [node, ${program('server-everything')}, stdio], required: true}
  filesystem: {command: [node, ${program('server-filesystem')}, ${folder}], required: true}
agents: [{name: a, has_tools: true, tool_access: all, default_next: end}]
`);
const listed = JSON.parse((await run('mcp', 'list', 'peers.yaml', '--json')).out);
assert.ok(listed.every((row) => row.status === 'ready' && row.tools > 5), JSON.stringify(listed));
const echo = await run('mcp', 'call', 'peers.yaml', 'everything.echo', '--args', '{"message": "hi"}');
assert.equal(JSON.parse(echo.out).data.value, 'Echo: hi', echo.err);
const read = await run('mcp', 'call', 'peers.yaml', 'read_text_file', '--args', JSON.stringify({ path: join(folder, 'note.txt') }));
assert.ok(JSON.stringify(JSON.parse(read.out)).includes('a hawser is a rope'), read.err);
const misspelt = await run('mcp', 'call', 'peers.yaml', 'read_text_fiel');
assert.ok(misspelt.status !== 0 && misspelt.err.includes('did you mean "read_text_file"?'), misspelt.err);
const outside = await run('mcp', 'call', 'peers.yaml', 'read_text_file', '--args', '{"path": "/etc/hostname"}');
assert.equal(outside.status, 1);
console.log(listed.map((row) => `${row.server} ${row.version}`).join(', '));
