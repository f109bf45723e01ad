// Requests to the server that this page came from. The browser adds the cookie of the login by itself.

export const root = new URL('..', import.meta.url) // also below a path of a proxy
const MAX_EVENT = 16 << 20 // characters of one event

// status 0: the server could not be reached.
export class ApiError extends Error {
  constructor(status, code, detail, hint) {
    super(detail)
    this.status = status
    this.code = code
    this.detail = detail
    this.hint = hint
  }
}

const address = (path) => new URL(path.replace(/^\//, ''), root)

// What an answer says about its error, in any of the forms that the server has.
async function errorOf(response) {
  const text = await response.text().catch(() => '')
  let body = {}
  try {
    body = JSON.parse(text) ?? {}
  } catch {}
  const detail = typeof body.detail === 'string' ? body.detail : (body.error?.message ?? `the server answered ${response.status}`)
  const [, said, hint] = /^(.*) \(([^()]*)\)$/s.exec(detail) ?? [null, detail, '']
  const error = new ApiError(response.status, body.code ?? body.error?.code ?? '', said, hint)
  error.retryAfter = Number(response.headers.get('retry-after')) || 0
  if (response.status === 401) dispatchEvent(new CustomEvent('reeve-login'))
  return error
}

async function request(method, path, {body, headers, signal} = {}) {
  const has = body !== undefined
  let response
  try {
    response = await fetch(address(path), {
      method,
      signal,
      credentials: 'same-origin',
      headers: {accept: 'application/json', ...(has ? {'content-type': 'application/json'} : {}), ...headers},
      body: has ? (typeof body === 'string' ? body : JSON.stringify(body)) : undefined,
    })
  } catch (e) {
    if (e.name === 'AbortError') throw e
    throw new ApiError(0, 'unreachable', 'the server cannot be reached', 'is it still running?')
  }
  if (!response.ok) throw await errorOf(response)
  return response
}

async function json(response) {
  const text = await response.text()
  return text ? JSON.parse(text) : null
}

// get('/sessions?limit=5') gives the JSON of the answer. Throws ApiError, and AbortError of the signal.
export const get = async (path, options) => json(await request('GET', path, options))

// send('POST', '/runs', {pipeline: 'x'}): a body of text is sent as it is. Throws as get().
export const send = async (method, path, body, options) => json(await request(method, path, {...options, body}))

// The answer itself, for texts and files.
export const raw = (method, path, options) => request(method, path, options)

// A reader of server-sent events: feed it text, it calls on_event({id, name, data}) for each whole block.
export function eventReader(on_event) {
  let rest = ''
  let event = {id: '', name: '', lines: []}
  const line = (text) => {
    if (text === '') {
      if (event.lines.length) on_event({id: event.id, name: event.name, data: event.lines.join('\n')})
      event = {id: event.id, name: '', lines: []}
      return
    }
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(text)
    if (field === 'data') event.lines.push(value)
    else if (field === 'id') event.id = value
    else if (field === 'event') event.name = value
  }
  return (text) => {
    rest += text
    let from = 0
    for (let at; (at = rest.indexOf('\n', from)) >= 0; from = at + 1) line(rest.slice(from, at).replace(/\r$/, ''))
    rest = rest.slice(from)
    if (rest.length > MAX_EVENT) throw new ApiError(0, 'too_large', 'an event of the stream is too large', '')
  }
}

// A stream of events over fetch. Resolves at its end with the response; on_event gets {id, name, data}, data as text.
// Throws ApiError: the answer was not a stream (its status), or the connection broke (status 0).
export async function stream(method, path, {body, headers, last_event_id, on_event, on_open, signal} = {}) {
  const response = await request(method, path, {
    body,
    signal,
    headers: {accept: 'text/event-stream', ...(last_event_id ? {'last-event-id': last_event_id} : {}), ...headers},
  })
  on_open?.(response)
  if (!response.body || response.status === 204) return response
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  const feed = eventReader(on_event)
  for (;;) {
    let part
    try {
      part = await reader.read()
    } catch (e) {
      if (e.name === 'AbortError') throw e
      throw new ApiError(0, 'cut', 'the connection to the server broke', '')
    }
    if (part.done) return response
    feed(part.value)
  }
}
