// judge.mjs FOLDER: each stream of the folder (protocols_play random) is read by the clients that its protocol was made
// for, from a server on loopback that sends it in small pieces. What they refuse, warn of or lose is an error.
import http from 'node:http';
import fs from 'node:fs';
import assert from 'node:assert/strict';
import {createRequire} from 'node:module';
import {pathToFileURL} from 'node:url';

const require = createRequire(process.env.PEER_MODULES + '/package.json');
const load = name => import(pathToFileURL(require.resolve(name)).href);
const {HttpAgent} = await load('@ag-ui/client');
const {default: OpenAI} = await load('openai');
const {streamText, tool, jsonSchema} = await load('ai');
const {createOpenAICompatible} = await load('@ai-sdk/openai-compatible');
const {createOpenAI} = await load('@ai-sdk/openai');
const {ChatOpenAI} = await load('@langchain/openai');

const folder = process.argv[2];
const only = process.argv[3];
let random = 1;
const piece = () => 1 + (random = random * 48271 % 2147483647) % 700;

// /NAME/...: the bytes of FOLDER/NAME, in pieces of any size
const server = http.createServer((request, response) => {
  request.resume();
  const name = decodeURIComponent(request.url.split('/')[1]);
  const bytes = fs.readFileSync(`${folder}/${name}`);
  const isWhole = name.endsWith('+whole');
  response.writeHead(200, {'Content-Type': isWhole ? 'application/json' : 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-cache, no-transform'});
  for (let at = 0; at < bytes.length;) {
    const n = piece();
    response.write(bytes.subarray(at, at + n));
    at += n;
  }
  response.end();
});
server.keepAliveTimeout = 0; // a client that is slow to ask again finds its connection open
await new Promise(done => server.listen(0, '127.0.0.1', done));
const base = `http://127.0.0.1:${server.address().port}`;

const warnings = [];
console.warn = (...args) => { // that the older form is old is known
  if (!String(args[0]).startsWith('[ag-ui][compat]')) warnings.push(args.join(' '));
};
const model = 'm', messages = [{role: 'user', content: 'hi'}];
const client = name => new OpenAI({baseURL: `${base}/${name}/v1`, apiKey: 'k', maxRetries: 0});
// What ended badly is an error to each client, and nothing else is.
const isBad = status => status === 'failed' || status === 'terminated' || status === 'cancelled';

async function agui(name, status) {
  const agent = new HttpAgent({url: `${base}/${name}/run`, threadId: 't1'});
  agent.messages = [{id: 'u1', role: 'user', content: 'hi'}];
  let end, events = 0, custom = 0;
  await agent.runAgent({}, {
    onEvent: () => { events++; },
    onCustomEvent: () => { custom++; },
    onRunFinishedEvent: p => { end = p.event?.outcome?.type ?? p.outcome ?? 'success'; },
    onRunErrorEvent: () => { end = 'error'; },
  });
  const wanted = {completed: 'success', interrupted: 'interrupt', cancelled: 'cancelled', failed: 'error', terminated: 'error'};
  if (name.endsWith('-ag-ui'))
    assert.equal(end, wanted[status]);
  else
    assert.equal(end, isBad(status) ? 'error' : 'success');
  assert(events > 1);
  return agent.messages;
}

async function raw(name, status) {
  let text = '', calls = 0, finish;
  try {
    for await (const chunk of await client(name).chat.completions.create({model, messages, stream: true})) {
      assert(chunk.choices, 'a chunk without choices');
      text += chunk.choices[0]?.delta?.content ?? '';
      calls += (chunk.choices[0]?.delta?.tool_calls ?? []).filter(c => c.id).length;
      finish = chunk.choices[0]?.finish_reason ?? finish;
    }
    assert(!isBad(status), 'openai saw no error');
  } catch (error) {
    if (!isBad(status) || !(error instanceof OpenAI.APIError)) throw error;
  }
  return {text, calls, finish};
}

async function helper(name, status, want) {
  try {
    const whole = await client(name).chat.completions.stream({model, messages}).finalChatCompletion();
    assert.equal(whole.choices[0].message.content ?? '', want.text);
    assert.equal(whole.choices[0].message.tool_calls?.length ?? 0, want.calls);
    assert.equal(whole.choices[0].finish_reason, want.finish);
    assert(whole.usage.total_tokens >= 0);
    for (const call of whole.choices[0].message.tool_calls ?? []) assert.equal(call.type, 'function');
    assert(!isBad(status), 'stream() saw no error');
  } catch (error) {
    if (!isBad(status) || !(error instanceof OpenAI.OpenAIError)) throw error;
  }
}

const tools = {client_pick: tool({inputSchema: jsonSchema({type: 'object'})})};
async function aiSdk(of, status, text) {
  let got = '', errors = 0, finish, what = '';
  for await (const part of streamText({model: of, prompt: 'hi', maxRetries: 0, tools, onError() {}}).fullStream) {
    if (part.type === 'text-delta') got += part.text;
    if (part.type === 'error') {
      errors++;
      what = String(part.error?.stack ?? JSON.stringify(part.error)) + String(part.error?.cause?.stack ?? '');
    }
    if (part.type === 'finish') finish = part.finishReason;
  }
  assert.equal(errors > 0, isBad(status), `AI SDK saw ${errors} errors: ${what}`);
  if (!isBad(status)) {
    assert.equal(got, text);
    assert(['stop', 'tool-calls', 'length'].includes(finish), `finish ${finish}`);
  }
}

async function langchain(name, status, text) {
  let got = '';
  try {
    const chat = new ChatOpenAI({model, apiKey: 'k', maxRetries: 0, streaming: true,
      configuration: {baseURL: `${base}/${name}/v1`}});
    for await (const chunk of await chat.stream('hi')) got += chunk.text ?? chunk.content;
    assert(!isBad(status), 'LangChain saw no error');
    assert.equal(got, text);
  } catch (error) {
    if (!isBad(status) || error instanceof assert.AssertionError) throw error;
  }
}

async function responses(name, status) {
  const whole = await client(name).responses.stream({model, input: 'hi'}).finalResponse();
  assert.equal(whole.status, isBad(status) ? 'failed' : 'completed');
  const text = whole.output.flatMap(item => item.content ?? []).map(part => part.text).join('');
  assert.equal(whole.output_text, text);
  await aiSdk(createOpenAI({baseURL: `${base}/${name}/v1`, apiKey: 'k'}).responses(model), status, text);
  return text;
}

async function wholes(seed, status, text) {
  for (const name of [`${seed}-openai+whole`, `${seed}-remlight+whole`]) {
    const answer = await client(name).chat.completions.create({model, messages});
    assert.equal(Boolean(answer.error), isBad(status));
    if (!isBad(status)) assert(answer.choices[0].message.role === 'assistant' && answer.usage.total_tokens >= 0);
  }
  const answer = await client(`${seed}-openai-responses+whole`).responses.create({model, input: 'hi'});
  assert.equal(answer.status, isBad(status) ? 'failed' : 'completed');
  assert.equal(answer.output_text, text);
}

let n = 0;
for (const line of fs.readFileSync(`${folder}/ends`, 'utf8').trim().split('\n')) {
  const [seed, status] = line.split(' ');
  if (only && only !== seed) continue;
  let at = '';
  try {
    at = 'ag-ui';
    await agui(`${seed}-ag-ui`, status);
    at = 'ag-ui-0';
    await agui(`${seed}-ag-ui-0`, status);
    at = 'openai';
    const name = `${seed}-openai`, want = await raw(name, status);
    at = 'openai stream()';
    await helper(name, status, want);
    at = 'AI SDK';
    const compatible = createOpenAICompatible({name: 'reeve', baseURL: `${base}/${name}/v1`, includeUsage: true});
    await aiSdk(compatible(model), status, want.text);
    at = 'LangChain';
    await langchain(name, status, want.text);
    at = 'responses';
    await wholes(seed, status, await responses(`${seed}-openai-responses`, status));
  } catch (error) {
    console.error(`seed ${seed} (${status}), ${at}: ${error.stack}`);
    process.exit(1);
  }
  assert.deepEqual(warnings, [], `seed ${seed}: a client warned`);
  n++;
}
server.close();
console.log(`${n} random turns: every client read every stream as it was meant`);
process.exit(0);
