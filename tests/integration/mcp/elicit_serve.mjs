// Forms of a tool over the HTTP API: a run waits, its question says what the form looks like, answers that do not fit are
// refused, and one that does goes on with the run, also in another process than the one that asked.
import { call, check, equal, file, finish, root, scratch, serve } from '../../serve/kit.mjs';

for (const era of ['modern', 'legacy']) {
    file(`p/${era}.yaml`, `name: ${era}
mcp_servers:
  stub:
    command: ${JSON.stringify(['node', `${root}/tests/integration/mcp/server.mjs`, '--era', era])}
    elicitation: true
    trusted: true
models: {default: "scripted:any"}
agents:
  - {name: plan, has_llm: true, model_role: default, prompt_key: p, output_key: plan, default_next: work}
  - {name: work, has_tools: true, allowed_tools: [form], default_next: end}
prompts: {p: plan it}
`);
    file(`s/${era}.yaml`, 'models:\n  plan: [{json: {steps: [{tool: form, parameters: {ask: [name]}}]}}]\n');
}
const args = ['--pipelines', `${scratch}/p`, '--scripts', `${scratch}/s`];
let server = await serve('forms.db', args);
const begin = async (pipeline) => {
    const r = await call(server, 'POST', '/runs', { pipeline, input: 'x', wait: true });
    equal([r.status, r.json?.status], [200, 'interrupted'], `${pipeline}: it waits`);
    return r.json.id;
};
const answer = (run, body) => call(server, 'POST', `/runs/${run}/answer`, body);
const end = async (run) => {
    const events = await call(server, 'GET', `/runs/${run}/events`, undefined, { accept: 'application/x-ndjson' });
    check(events.status === 200, 'its events end', events.text);
    return (await call(server, 'GET', `/runs/${run}`)).json;
};

for (const era of ['modern', 'legacy']) {
    const run = await begin(era);
    const [listed] = (await call(server, 'GET', `/interrupts?run=${run}`)).json;
    check(listed.open && listed.text.includes('What is your name?'), `${era}: it is listed`, listed);
    const [question] = (await call(server, 'GET', `/runs/${run}`)).json.pending;
    equal([question.kind, question.data.reason, question.data.server, question.data.tool, question.data.schema.required],
          ['agent_review', 'tool_input', 'stub', 'form', ['name']], `${era}: what is asked`);
    for (const [body, words] of [[{ decision: 'accept', data: {} }, 'name'], [{ decision: 'accept', data: [] }, 'object'],
                                 [{ decision: 'accept', data: { name: 'x' } }, 'name'], [{ decision: 'maybe' }, 'decision'],
                                 [{ decision: 'decline', data: {} }, 'no data'], [{ text: 'Anna' }, 'decision']]) {
        const refused = await answer(run, body);
        check(refused.status === 400 && refused.text.includes(words), `${era}: ${JSON.stringify(body)} is refused`, refused.text);
    }
    // The process that asked is gone.
    equal(await server.stop(), 0, 'it drains');
    server = await serve('forms.db', args);
    equal((await answer(run, { decision: 'accept', data: { name: 'Anna' } })).status, 202, `${era}: an answer is taken`);
    const shown = await end(run);
    equal([shown.status, shown.state?.outputs.work.results[0].data],
          ['completed', { name: { action: 'accept', content: { name: 'Anna', times: 3 } } }], `${era}: and goes to the tool`);

    for (const action of ['decline', 'cancel']) {
        const other = await begin(era);
        equal((await answer(other, { decision: action })).status, 202, `${era}: ${action} is taken`);
        equal((await end(other)).state?.outputs.work.results[0].data, { name: { action } }, `${era}: the tool is told of ${action}`);
    }
}
equal(await server.stop(), 0, 'it ends');
finish('elicit_serve');
