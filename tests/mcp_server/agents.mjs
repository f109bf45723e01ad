// Agents as tools: --agents offers each as ask_NAME, without it none; a call is a run of the agent, within its session.
import {join} from 'node:path'
import {check, command, env, equal, file, finish, load, reeve, root, scratch, serve, store} from '../serve/kit.mjs'

const {Client} = load('@modelcontextprotocol/sdk/client/index.js')
const {StdioClientTransport} = load('@modelcontextprotocol/sdk/client/stdio.js')
const {StreamableHTTPClientTransport} = load('@modelcontextprotocol/sdk/client/streamableHttp.js')

file('agents/boss.yaml', 'kind: agent\nname: boss\ndescription: Answers everything.\nmodel: scripted:model\n')
file('agents/broken.yaml', 'kind: agent\nname: broken\nnonsense: 1\n')
file('s/ask_boss.yaml', 'models: {answer: [{text: "Ask again."}, {text: "Ask once more."}]}\n')
file('p/README', 'no pipelines')
const args = ['--pipelines', join(scratch, 'p'), '--schema-dir', join(scratch, 'agents'), '--scripts', join(scratch, 's')]

async function stdio(...more) {
  const client = new Client({name: 'test', version: '1'}, {capabilities: {}})
  await client.connect(new StdioClientTransport({command: reeve, args: ['mcp', 'serve', ...args, ...more], env, cwd: root, stderr: 'ignore'}))
  return client
}
const asks = (tools) => tools.map((t) => t.name).filter((name) => name.startsWith('ask_'))

async function look(what, client) {
  const {tools} = await client.listTools()
  const boss = tools.find((t) => t.name === 'ask_boss')
  check(boss, `${what}: the agent is a tool`, tools.map((t) => t.name))
  check(!tools.some((t) => t.name === 'ask_broken'), `${what}: one that cannot be read is not`)
  check(boss?.description.includes('Answers everything.'), `${what}: which says what it is for`, boss)
  equal(Object.values(boss?.annotations ?? {}).map((v) => typeof v), Array(4).fill('boolean'), `${what}: with its hints`)
  const answered = await client.callTool({name: 'ask_boss', arguments: {input: 'What now?'}})
  equal([answered.isError ?? false, answered.content[0].text], [false, 'Ask again.'], `${what}: it answers`)
  const wrong = await client.callTool({name: 'ask_boss', arguments: {}})
  check(wrong.isError && wrong.content[0].text.includes('"input"'), `${what}: a call without words is told so`, wrong)
  equal((await client.callTool({name: 'ask_nothing', arguments: {input: 'x'}}).catch((e) => e)).code, -32602, `${what}: an agent that does not exist is an unknown tool`)
  await client.close()
}

const path = store('agents.db')
await look('stdio', await stdio('--store', path, '--agents'))
const runs = JSON.parse(command('runs', 'list', '--json', '--store', path).out)
equal(runs.map((r) => r.status), ['completed'], 'one call is one run')
const plain = await stdio('--store', store('plain.db'))
equal(asks((await plain.listTools()).tools), [], 'without --agents there is none')
await plain.close()

const db = store('agents_http.db')
const key = (...more) => JSON.parse(command('keys', 'create', '--json', '--store', db, ...more).out).key
const server = await serve('agents_http.db', [...args, '--mcp-agents'])
async function http(token) {
  const client = new Client({name: 'test', version: '1'}, {capabilities: {}})
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), {requestInit: {headers: {authorization: `Bearer ${token}`}}}))
  return client
}
const reader = await http(key('--user', 'ada', '--scopes', 'data:read'))
equal(asks((await reader.listTools()).tools), [], 'a key without the scope to chat sees none')
await reader.close()
const master = key('--level', 'master')
await look('http', await http(master))
const talk = {name: 'ask_boss', arguments: {input: 'hello', session: 'talk-of-ada'}}
const ada = await http(key('--user', 'ada'))
equal((await ada.callTool(talk)).isError ?? false, false, 'a user begins a session')
await ada.close()
const operator = await http(master)
const refused = await operator.callTool(talk)
equal([refused.isError, refused.content[0].text.includes('session "talk-of-ada" is of user "ada"')], [true, true], 'an operator begins no other session of that id')
await operator.close()
equal((await fetch(`${server.url}/sessions/talk-of-ada`, {headers: {authorization: `Bearer ${master}`}})).status, 200, 'there is one')
equal(await server.stop(), 0, 'the server ends')
finish('agents')
