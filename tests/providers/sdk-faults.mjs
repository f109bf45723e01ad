// Is the fault server at fault in the way that its table says? The vendor's own client meets each row of the OpenAI wire
// that a client can judge: where we want an answer it must hear that answer, where we want a failure it must not.
import {FaultServer} from './fault-server.mjs'
import {check, equal, finish, inTurns, scratch} from './kit.mjs'
import {load} from './packages.mjs'
import {faults} from './rows/rows.mjs'
import {ANSWER} from './rows/serve.mjs'

const OpenAI = load('openai').default
const HANGS_MS = 15 * 60000
const ENOUGH_MS = 1500 // of a server that never goes on; giving up early is a failure, too
// What that client takes for an answer, by its own lights.
const lenient = new Set([
  'no-finish',
  'gigabyte-of-comments',
  'gigabyte-of-text',
  'gigabyte-of-zeros',
  'gigabyte-in-a-nutshell',
  'plain-text',
  'no-content-type',
  'html-200',
  'json-as-stream',
  'empty',
  'invalid-utf8',
  'a-letter-at-a-time-for-ever',
  'only-comments-for-ever',
  'no-content',
  'json-cut',
])

const server = await new FaultServer(faults, scratch).start()
const judged = faults.filter(
  (r) =>
    (r.wire ?? 'openai') === 'openai' &&
    !r.address &&
    !r.tools &&
    !r.fallback &&
    !lenient.has(r.name) &&
    !r.want.either &&
    !r.name.startsWith('gigabyte'),
)
await inTurns(judged, 4, async (row) => {
  const client = new OpenAI({
    baseURL: await server.baseUrl(row),
    apiKey: 'peer',
    maxRetries: (row.knobs?.max_attempts ?? 3) - 1,
    logLevel: 'off',
    timeout: HANGS_MS,
  })
  const abort = new AbortController()
  const limit = setTimeout(() => abort.abort(), row.want.kind === 'timeout' ? ENOUGH_MS : HANGS_MS)
  let text = ''
  let failure = null
  try {
    const stream = await client.chat.completions.create(
      {
        model: 'gpt-4.1-mini',
        messages: [{role: 'user', content: 'x'}],
        stream: true,
        stream_options: {include_usage: true},
      },
      {signal: abort.signal},
    )
    for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? ''
  } catch (e) {
    failure = e
  }
  if (abort.signal.aborted) failure = new Error('took too long')
  clearTimeout(limit)
  if (row.want.kind) {
    check(failure, `${row.name}: a failure to the vendor's client too`, text)
    const status = /^openai-(\d+)/.exec(row.name)?.[1]
    if (status) equal(failure?.status, Number(status), `${row.name}: with its status`)
    for (const said of row.want.says ?? [])
      if (status) check(failure?.message.includes(said), `${row.name}: it says "${said}"`, failure?.message)
  } else if (row.name !== 'whole-json') {
    check(!failure && text === ANSWER, `${row.name}: an answer to the vendor's client too`, text, String(failure))
  }
})
equal(server.troubles, [], 'the server did as it was told')
await server.stop()
finish(`sdk-faults, ${judged.length} rows`)
