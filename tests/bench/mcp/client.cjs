// The same calls by the reference client: client.cjs PACKAGES STUB CALLS stdio|http
const { spawn } = require('node:child_process');
const { createRequire } = require('node:module');
const { join } = require('node:path');

const [packages, stub, count, mode] = process.argv.slice(2);
const load = createRequire(join(packages, 'package.json'));
const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');

(async () => {
    let server;
    let transport;
    if (mode === 'http') {
        server = spawn(stub, ['1', 'http'], { stdio: ['ignore', 'pipe', 'inherit'] });
        const port = await new Promise((resolve) => server.stdout.once('data', (text) => resolve(Number(text))));
        transport = new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`));
    } else {
        transport = new StdioClientTransport({ command: stub, args: ['1'] });
    }
    const client = new Client({ name: 'bench', version: '1' }, { capabilities: {} });
    await client.connect(transport);
    const took = [];
    const call = async () => {
        const from = process.hrtime.bigint();
        await client.callTool({ name: 'tool_0', arguments: { text: 'x' } });
        took.push(Number(process.hrtime.bigint() - from) / 1000);
    };
    await call();
    took.length = 0;
    const from = process.hrtime.bigint();
    for (let i = 0; i < Number(count); i++) await call();
    const total = Number(process.hrtime.bigint() - from) / 1e6;
    took.sort((a, b) => a - b);
    console.log(JSON.stringify({ calls: took.length, call_us: +took[took.length >> 1].toFixed(1), total_ms: +total.toFixed(1) }));
    await client.close();
    server?.kill();
    process.exit(0);
})();
