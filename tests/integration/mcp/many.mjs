// Many runs of one worker, each with a server of its own: their connections end one after the other while others are
// under way, and neither the process nor a run is lost.
import { call, check, equal, file, finish, root, scratch, serve } from '../../serve/kit.mjs';

const n = process.env.REEVE_SOAK ? 1000 : 24;
file('p/tools.yaml', `name: tools
mcp_servers:
  stub:
    command: ${JSON.stringify(['node', `${root}/tests/integration/mcp/server.mjs`])}
    trusted: true
    timeout_ms: 60000
models: {default: "scripted:any"}
agents:
  - {name: plan, has_llm: true, model_role: default, prompt_key: p, output_key: plan, default_next: work}
  - {name: work, has_tools: true, allowed_tools: [echo], default_next: end}
prompts: {p: plan it}
`);
file('s/tools.yaml', 'models:\n  plan: [{json: {steps: [{tool: echo, parameters: {text: hello}}]}}]\n');
const server = await serve('many.db', ['--pipelines', `${scratch}/p`, '--scripts', `${scratch}/s`]);
let ended = false;
server.end.then(() => (ended = true));
let begun = 0;
const work = async () => {
    while (begun++ < n) {
        const r = await call(server, 'POST', '/runs', { pipeline: 'tools', input: 'x', wait: true }).catch((error) => ({ error }));
        if (!check(r.json?.status === 'completed' && r.json.result.outputs.work.results[0].data.value === 'hello',
                   'a run has the answer of its tool', r.text ?? String(r.error)))
            return;
    }
};
await Promise.all(Array.from({ length: 8 }, work));
check(!ended, 'the process lives', server.err().slice(-500));
equal(await server.stop(), 0, 'and ends in good order');
finish('many');
