// What requests ask of the model, seen from behind it: a provider that keeps what it was sent. Sampling, formats of
// answers, images; what cannot be honoured is refused with the parameter.
import {createServer} from 'node:http'
import {randomUUID} from 'node:crypto'
import {call, check, equal, file, finish, load, scratch, serve} from './kit.mjs'

const OpenAI = load('openai').default
const {HttpAgent} = load('@ag-ui/client')
const sent = []
let answers = []
const provider = createServer((req, res) => {
  let text = ''
  req.on('data', (part) => (text += part))
  req.on('end', () => {
    sent.push(JSON.parse(text))
    const say = answers.shift() ?? {content: 'Yes.'}
    const chunk = (delta, finish_reason = null) => res.write(`data: ${JSON.stringify({id: 'p', object: 'chat.completion.chunk', choices: [{index: 0, delta, finish_reason}]})}\n\n`)
    res.writeHead(200, {'content-type': 'text/event-stream'})
    chunk({role: 'assistant', ...say})
    chunk({}, say.tool_calls ? 'tool_calls' : (say.reason ?? 'stop'))
    res.write(`data: ${JSON.stringify({id: 'p', object: 'chat.completion.chunk', choices: [], usage: {prompt_tokens: 4, completion_tokens: 2, total_tokens: 6}})}\n\n`)
    res.end('data: [DONE]\n\n')
  })
})
await new Promise((next) => provider.listen(0, '127.0.0.1', next))
const base = `http://127.0.0.1:${provider.address().port}/v1`
file('agents/one.yaml', 'kind: agent\nname: one\ndescription: Answers.\nmodel: openai:gpt-4.1\nmax_tokens: 100\ntemperature: 0.9\nclient_tools: true\n')
const server = await serve('params.db', ['--schema-dir', `${scratch}/agents`], {OPENAI_BASE_URL: base, OPENAI_API_KEY: 'k'})
const client = new OpenAI({baseURL: server.url + '/v1', apiKey: 'none', maxRetries: 0})
const ask = (more, content = 'hi') => client.chat.completions.create({model: 'one', messages: [{role: 'user', content}], ...more})
const last = () => sent.at(-1)
const most = () => last().max_completion_tokens ?? last().max_tokens

await ask({})
equal([last().temperature, most(), last().seed], [0.9, 100, undefined], 'the agent decides where the request says nothing')
await ask({temperature: 0.2, max_tokens: 7, seed: 11})
equal([last().temperature, most(), last().seed], [0.2, 7, 11], 'temperature, max_tokens and seed are honoured')
await ask({max_completion_tokens: 5000})
equal(most(), 100, "not beyond the agent's own limit")
answers = [{content: 'cut', reason: 'length'}]
equal((await ask({max_tokens: 1})).choices[0].finish_reason, 'length', 'an answer that is cut off says so')

// --- formats
const schema = {type: 'object', properties: {city: {type: 'string'}}, required: ['city'], additionalProperties: false}
answers = [{tool_calls: [{index: 0, id: 'f', type: 'function', function: {name: 'final_result', arguments: '{"city":"Bonn"}'}}]}]
const shaped = await ask({response_format: {type: 'json_schema', json_schema: {name: 'place', schema}}})
equal(JSON.parse(shaped.choices[0].message.content), {city: 'Bonn'}, 'response_format: the answer is of that shape')
equal(shaped.choices[0].finish_reason, 'stop', 'and a plain answer')
check(JSON.stringify(last()).includes('"city"'), 'the model was told the shape', last())
answers = [{tool_calls: [{index: 0, id: 'f', type: 'function', function: {name: 'final_result', arguments: '{"town":1}'}}]}, {content: '{"city":"Ulm"}'}]
const repaired = await ask({response_format: {type: 'json_schema', json_schema: {name: 'place', schema}}})
equal(JSON.parse(repaired.choices[0].message.content), {city: 'Ulm'}, 'what does not fit is asked for again')
answers = [{content: '{"any":1}'}]
equal(JSON.parse((await ask({response_format: {type: 'json_object'}})).choices[0].message.content), {any: 1}, 'json_object: any object')
answers = [{content: '{"city":"Kiel"}'}]
let streamed = ''
for await (const x of await ask({stream: true, response_format: {type: 'json_schema', json_schema: {name: 'p', schema}}})) streamed += x.choices[0]?.delta?.content ?? ''
equal(JSON.parse(streamed), {city: 'Kiel'}, 'as a stream')

// --- tools of the client
const tools = ['a', 'b'].map((name) => ({type: 'function', function: {name, parameters: {type: 'object', properties: {}}}}))
await ask({tools, tool_choice: 'none'})
equal(last().tools, undefined, 'tool_choice none: they are not offered')
answers = [{tool_calls: [{index: 0, id: 'c', type: 'function', function: {name: 'b', arguments: '{}'}}]}]
await ask({tools, tool_choice: {type: 'function', function: {name: 'b'}}})
equal([last().tools?.map((t) => t.function.name), last().tool_choice], [['b'], 'required'], 'one tool by its name')

// --- images and files
const png = 'data:image/png;base64,iVBORw0KGgo='
const seen = await client.chat.completions
  .create({model: 'one', metadata: {from: 'test'}, messages: [{role: 'user', content: [{type: 'text', text: 'What is it?'}, {type: 'image_url', image_url: {url: png}}]}]})
  .withResponse()
const parts = last().messages.at(-1).content
check(Array.isArray(parts) && parts.some((p) => p.type === 'image_url' && p.image_url.url === png), 'an image part reaches the model', parts)
const rows = (await call(server, 'GET', `/sessions/${seen.response.headers.get('x-session-id')}/messages`)).json
equal(rows[0].metadata?.attachments, [{type: 'image', data: 'iVBORw0KGgo=', media_type: 'image/png'}], 'and is kept with the message')
equal(rows[0].metadata?.metadata, {from: 'test'}, 'as is the metadata of the request')
const id = randomUUID()
const agent = new HttpAgent({url: `${server.url}/chat/${id}`, threadId: id, headers: {'X-Agent-Schema-Name': 'one'}})
agent.messages = [{id: 'm', role: 'user', content: [{type: 'text', text: 'And this?'}, {type: 'image', source: {type: 'data', value: 'iVBORw0KGgo=', mimeType: 'image/png'}}]}]
await agent.runAgent({})
check(JSON.stringify(last().messages.at(-1)).includes(png), 'a part of AG-UI, too', last().messages.at(-1))

// --- what cannot be honoured
const fails = async (more, content) => {
  try {
    await ask(more, content)
  } catch (e) {
    return [e.constructor.name, e.status, e.code, e.param]
  }
}
const before = sent.length
for (const [more, param] of [
  [{top_p: 0.5}, 'top_p'],
  [{stop: ['x']}, 'stop'],
  [{n: 2}, 'n'],
  [{logprobs: true}, 'logprobs'],
  [{frequency_penalty: 1}, 'frequency_penalty'],
  [{logit_bias: {1: 2}}, 'logit_bias'],
  [{parallel_tool_calls: false}, 'parallel_tool_calls'],
  [{reasoning_effort: 'high'}, 'reasoning_effort'],
])
  equal(await fails(more), ['BadRequestError', 400, 'unsupported_parameter', param], `${param} is refused`)
equal(await fails({temperature: 3}), ['BadRequestError', 400, 'invalid_argument', 'temperature'], 'a temperature that is none')
equal(await fails({tool_choice: 'required'}), ['BadRequestError', 400, 'invalid_argument', 'tool_choice'], 'a tool that is required, and none')
equal(await fails({tools, tool_choice: {type: 'function', function: {name: 'z'}}}), ['BadRequestError', 400, 'invalid_argument', 'tool_choice'], 'one that is not there')
equal(await fails({response_format: {type: 'json_schema', json_schema: {name: 'x', schema: {type: 'array'}}}}), ['BadRequestError', 400, 'invalid_argument', 'response_format'], 'a schema that is not of an object')
equal(await fails({}, [{type: 'image_url', image_url: {url: 'http://127.0.0.1/x.png'}}]), ['BadRequestError', 400, 'unsupported_parameter', 'messages[0].content[0]'], 'an image elsewhere: nothing is fetched')
equal(await fails({model: 'two'}), ['NotFoundError', 404, 'not_found', null], 'a model that is not there')
equal(sent.length, before, 'no model was asked')
equal(await server.stop(), 0, 'it ends as it should')

// --- quotas: before a turn begins they are an answer, not a stream
const quotas = file('quotas.yaml', 'default: free\nplans:\n  free:\n    quotas:\n      tokens: {day: 20000}\n    rates:\n      model_calls: {minute: 3}\n')
const limited = await serve('quotas.db', ['--schema-dir', `${scratch}/agents`, '--quotas', quotas], {OPENAI_BASE_URL: base, OPENAI_API_KEY: 'k'})
const few = new OpenAI({baseURL: limited.url + '/v1', apiKey: 'none', maxRetries: 0})
const one = (more = {}) => few.chat.completions.create({model: 'one', messages: [{role: 'user', content: 'hi'}], ...more})
for (let i = 0; i < 3; i++) equal((await one()).choices[0].message.content, 'Yes.', `a turn that fits, ${i + 1}`)
const asked = sent.length
for (const stream of [false, true]) {
  let over
  try {
    await one({stream})
  } catch (e) {
    over = e
  }
  equal([over?.constructor.name, over?.status, over?.code], ['RateLimitError', 429, 'quota_exceeded'], `one that does not, stream ${stream}`)
  const wait = Number(over?.headers.get('retry-after'))
  check(wait > 0 && wait <= 60, 'it says when it will fit', String(wait))
}
const p8 = await call(limited, 'POST', `/chat/${randomUUID()}`, {messages: [{id: 'm', role: 'user', content: 'hi'}]}, {'x-agent-schema-name': 'one'})
equal([p8.status, p8.json?.detail?.error, p8.json?.detail?.limit, p8.json?.code], [429, 'chat_token_quota_exceeded', 3, 'quota_exceeded'], 'as p8 has it')
equal(sent.length, asked, 'and no model was asked')
equal(await limited.stop(), 0, 'it ends as it should')
provider.close()
finish('params')
