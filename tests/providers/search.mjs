// node search.mjs REEVE: the tool web_search against a server that speaks Tavily's wire. The request passes the
// engine's policy of addresses; what the server does wrong is an error result of the call, and the run goes on.
import {once} from 'node:events'
import {writeFileSync} from 'node:fs'
import {createServer} from 'node:http'
import {join} from 'node:path'
import {check, equal, finish, run, scratch} from './kit.mjs'
import {readBody} from './replay-server.mjs'

const KEY = 'tvly-0123456789'
const [reeve] = process.argv.slice(2)

const hit = (n, more = {}) => ({
  title: `Leeks ${n}`,
  url: `https://www.leeks.example/${n}?a=b`,
  content: `All about ü ${n}`,
  score: 1 / n,
  raw_content: null,
  ...more,
})
const answer = (results) => JSON.stringify({query: 'q', answer: null, images: [], results, response_time: 1.1})
const json = (status, body, headers = {}) => [status, {'content-type': 'application/json', ...headers}, body]

// What the server does, by the query; a function gets the response.
const DETAIL = JSON.stringify({detail: {error: 'Unauthorized: missing or invalid API key.'}})
const rows = {
  leeks: {reply: json(200, answer([hit(1), hit(2), hit(3)]))},
  'key is wrong': {reply: json(401, DETAIL), error: 'does not accept the key (status 401)'},
  'too often': {reply: json(429, '{}', {'retry-after': '7'}), error: 'too many searches (status 429): try again in 7 s'},
  'too often, with a date': {
    reply: json(429, '{}', {'retry-after': 'Wed, 21 Oct 2026 07:28:00 GMT'}),
    error: 'answers with status 429',
  },
  broken: {reply: json(500, 'oops'), error: 'answers with status 500'},
  moved: {reply: json(302, '', {location: 'http://169.254.169.254/search'}), error: 'answers with status 302'},
  garbage: {reply: json(200, Buffer.from('<html>\xff\0', 'latin1')), error: 'the answer has no list'},
  'no list': {reply: json(200, '{"results": {"url": "https://x.example"}}'), error: 'the answer has no list'},
  deep: {reply: json(200, '[{"results":'.repeat(10000)), error: 'the answer has no list'},
  endless: {
    serve: (response) => {
      const more = () => {
        while (!response.destroyed && response.write(' '.repeat(65536)));
      }
      response.writeHead(200, {'content-type': 'application/json'})
      response.on('drain', more)
      more()
    },
    error: 'Search failed: ',
  },
  'cut off': {
    serve: (response) => {
      response.writeHead(200, {'content-length': 1000})
      response.write('{"results": [')
      response.destroy()
    },
    error: 'Search failed: ',
  },
  'a score that is none': {
    reply: json(200, answer([hit(1, {score: 'X'})]).replace('"X"', 'NaN')),
    holds: (data) => data.count === 1 && data.saved === false && data.results[0].name === 'Leeks 1',
  },
  'strange hits': {
    reply: json(200, answer([null, 7, {}, {url: 3}, {url: ''}, {url: 'nothing', title: 5}, hit(1, {title: '\u0000'})])),
    holds: (data) => data.count === 2 && data.results[0].name === 'nothing',
  },
  many: {
    reply: json(200, answer(Array.from({length: 100}, (_, i) => hit(i + 1)))),
    holds: (data) => data.count === 5 && data.saved,
  },
}

const seen = []
const server = createServer(async (request, response) => {
  const body = JSON.parse((await readBody(request)).toString())
  seen.push({method: request.method, url: request.url, headers: request.headers, body})
  const row = rows[body.query]
  response.on('error', () => {})
  if (row.serve) row.serve(response)
  else response.writeHead(row.reply[0], row.reply[1]).end(row.reply[2])
})
server.on('clientError', (_, socket) => socket.destroy())
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const port = server.address().port

const pipeline = (isolation) => `name: search
capabilities:
  - {name: p8, isolation: ${isolation}, config: {tavily_api_key: ${KEY}, web_search_url: "http://127.0.0.1:${port}"}}
agents:
  - {name: look, has_tools: true, tool_access: all, allowed_tools: [web_search], output_key: out}
`

async function search(isolation, parameters, {user = 'ada', allowed = `127.0.0.1:${port}`} = {}) {
  const file = join(scratch, `${isolation}.yaml`)
  writeFileSync(file, pipeline(isolation))
  const envelope = {outputs: {plan: {steps: [{tool: 'web_search', parameters}]}}}
  writeFileSync(join(scratch, 'envelope.json'), JSON.stringify(envelope))
  const ended = await run(
    reeve,
    ['run', file, '--envelope', join(scratch, 'envelope.json'), '--quiet', '--state', '--user', user],
    {env: {REEVE_STORE: join(scratch, `${isolation}.db`), ...(allowed ? {REEVE_ALLOW_NET: allowed} : {})}},
  )
  check(ended.status === 0 && !ended.leftovers, `the run ends well: ${JSON.stringify(parameters)}`, ended)
  check(!ended.out.includes(KEY), 'the key is in no state')
  return JSON.parse(ended.out).outputs.out.results[0]
}

for (const isolation of ['none', 'process']) {
  const is = (what) => `${what} (isolation: ${isolation})`
  seen.length = 0
  const denied = await search(isolation, {query: 'leeks'}, {allowed: ''})
  const isRefused = denied.status === 'error' && /REEVE_ALLOW_NET/.test(denied.error.message)
  check(isRefused, is('an address that is not public is refused'), denied)
  equal(seen.length, 0, is('nothing was sent there'))

  const found = await search(isolation, {query: 'leeks', max_results: 2, search_depth: 'advanced'})
  equal(seen.length, 1, is('one search is one request'))
  const [{method, url, headers, body}] = seen
  equal([method, url, headers.authorization], ['POST', '/search', `Bearer ${KEY}`], is('it goes to /search with the key'))
  equal(
    body,
    {query: 'leeks', max_results: 2, search_depth: 'advanced', include_images: true, include_image_descriptions: false},
    is('the body is that of the wire'),
  )
  const {status, query: asked, count, saved} = found.data
  equal([status, asked, count, saved], ['ok', 'leeks', 2, true], is('hits become cards'))
  equal(
    Object.entries(found.data.results[0]).filter(([key]) => key !== 'resource_id'),
    Object.entries({
      name: 'Leeks 1',
      description: 'All about \u00fc 1',
      url: 'https://www.leeks.example/1?a=b',
      image: null,
      tags: ['web-search', 'www.leeks.example'],
    }),
    is('a card'),
  )
  const env = {REEVE_STORE: join(scratch, `${isolation}.db`)}
  const list = ['entities', 'list', 'resources', '--json', '--user']
  const kept = async (user) => (await run(reeve, [...list, user], {env})).out
  check((await kept('ada')).includes('https://www.leeks.example/2?a=b'), is('hits are kept for the user'))
  check(!(await kept('bob')).includes('leeks'), is('and for no other user'))

  for (const [query, row] of Object.entries(rows)) {
    if (query === 'leeks') continue
    const result = await search(isolation, {query})
    const isError = result.status === 'error' && result.error.type === 'ProviderError'
    check(row.holds ? row.holds(result.data) : isError && result.error.message.includes(row.error), is(query), result)
  }
}
finish('search')
