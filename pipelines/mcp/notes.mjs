// An MCP server with two tools over a list of notes: enough to try `mcp_servers` without a network.
import { createInterface } from 'node:readline';

const notes = ['A hawser is a thick rope for mooring.', 'A sheet is a rope that trims a sail.'];
const schema = (name) => ({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name] });
const list = { type: 'object', properties: { notes: { type: 'array', items: { type: 'string' } } }, required: ['notes'] };
const tools = [
    { name: 'search', description: 'Find the notes that contain a text.', inputSchema: schema('text'),
      outputSchema: list, annotations: { readOnlyHint: true } },
    { name: 'add', description: 'Add a note.', inputSchema: schema('text'), annotations: { destructiveHint: false } },
];

function call({ name, arguments: { text } }) {
    if (name === 'add')
        return { content: [{ type: 'text', text: `${notes.push(text)} notes` }] };
    const found = notes.filter((note) => note.toLowerCase().includes(text.toLowerCase()));
    return { content: [{ type: 'text', text: found.join('\n') }], structuredContent: { notes: found } };
}

const methods = {
    initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} },
                                            serverInfo: { name: 'notes', version: '1.0' } }),
    ping: () => ({}),
    'tools/list': () => ({ tools }),
    'tools/call': call,
};

for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined)
        continue; // a notification
    const answer = methods[method] ? { result: methods[method](params ?? {}) }
                                   : { error: { code: -32601, message: `no method ${method}` } };
    console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
}
