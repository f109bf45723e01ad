// Does our replay server speak the wires as the vendors' own clients understand them? Only then does it prove anything
// that the engine agrees with it. Each conversation is played to the real clients, at several cuts.
import {conversations} from './conversations.mjs'
import {check, equal, finish} from './kit.mjs'
import {load} from './packages.mjs'
import {ReplayServer} from './replay-server.mjs'
import {asObject} from './wires/request.mjs'

const OpenAI = load('openai').default
const Anthropic = load('@anthropic-ai/sdk').default

const tool = {type: 'object', properties: {}}

// What a client heard, in the neutral form of a reply.
const clients = {
  async openai(server, name) {
    const client = new OpenAI({baseURL: server.baseUrl, apiKey: 'peer', maxRetries: 0})
    const stream = client.chat.completions.stream({
      model: 'gpt-4.1-mini',
      messages: [{role: 'user', content: name}],
      stream_options: {include_usage: true},
      tools: [{type: 'function', function: {name: 'any', parameters: tool}}],
    })
    let text = ''
    stream.on('content', (delta) => (text += delta))
    // finalChatCompletion() throws on length; the snapshot has it all the same
    const answer = await stream.finalChatCompletion().catch(() => stream.currentChatCompletionSnapshot)
    const choice = answer.choices[0]
    return {
      text,
      calls: (choice.message.tool_calls ?? []).map((c) => ({name: c.function.name, arguments: c.function.arguments})),
      finish: choice.finish_reason,
      usage: answer.usage && {input: answer.usage.prompt_tokens, output: answer.usage.completion_tokens},
    }
  },
  async anthropic(server, name) {
    const client = new Anthropic({baseURL: server.baseUrl, apiKey: 'peer', maxRetries: 0})
    const stream = client.messages.stream({
      model: 'claude-test',
      max_tokens: 100,
      messages: [{role: 'user', content: name}],
      tools: [{name: 'any', input_schema: tool}],
    })
    let text = ''
    const partial = new Map()
    stream.on('text', (delta) => (text += delta))
    stream.on('streamEvent', (e) => {
      if (e.type === 'content_block_delta' && e.delta.type === 'input_json_delta')
        partial.set(e.index, (partial.get(e.index) ?? '') + e.delta.partial_json)
    })
    const answer = await stream.finalMessage()
    const words = {end_turn: 'stop', max_tokens: 'length', tool_use: 'tool_calls'}
    return {
      text,
      calls: answer.content.flatMap((b, i) =>
        b.type === 'tool_use' ? [{name: b.name, arguments: partial.get(i) ?? ''}] : [],
      ),
      finish: words[answer.stop_reason],
      usage: {
        input:
          answer.usage.input_tokens + answer.usage.cache_read_input_tokens + answer.usage.cache_creation_input_tokens,
        output: answer.usage.output_tokens,
      },
    }
  },
}

for (const [wire, hear] of Object.entries(clients)) {
  for (const seed of [1, 2, 3]) {
    const server = await new ReplayServer(wire, seed).start()
    for (const conversation of conversations) {
      // The vendor's client parses arguments while they come and gives up on what is no JSON; we must not.
      if (wire === 'anthropic' && conversation.name.includes('no JSON')) continue
      server.play(conversation.replies)
      for (const [i, reply] of conversation.replies.entries()) {
        const what = `${wire}, cuts ${seed}, ${conversation.name}, reply ${i + 1}`
        try {
          const got = await hear(server, conversation.name)
          const want = {
            text: reply.text ?? '',
            calls: reply.calls ?? [],
            finish: reply.finish,
            usage: {input: reply.usage.input, output: reply.usage.output},
          }
          equal(got, want, what)
        } catch (e) {
          check(false, what, String(e))
        }
      }
      equal(server.complaints, [], `${wire}: requests of the vendor's client are fine for us (${conversation.name})`)
    }
    await server.stop()
  }
}

// The replies that come whole, and what is said of a conversation that is over.
for (const wire of ['openai', 'anthropic']) {
  const server = await new ReplayServer(wire).start()
  const reply = {
    text: 'Hi',
    calls: [{name: 'any', arguments: '{"a":1}'}],
    finish: 'tool_calls',
    usage: {input: 7, output: 3},
  }
  server.play([reply])
  const ask =
    wire === 'openai'
      ? (c) => c.chat.completions.create({model: 'gpt-4.1-mini', messages: [{role: 'user', content: 'x'}]})
      : (c) => c.messages.create({model: 'claude-test', max_tokens: 10, messages: [{role: 'user', content: 'x'}]})
  const client =
    wire === 'openai'
      ? new OpenAI({baseURL: server.baseUrl, apiKey: 'peer', maxRetries: 0})
      : new Anthropic({baseURL: server.baseUrl, apiKey: 'peer', maxRetries: 0})
  const answer = await ask(client)
  const got =
    wire === 'openai'
      ? [
          answer.choices[0].message.content,
          asObject(answer.choices[0].message.tool_calls[0].function.arguments),
          answer.usage.prompt_tokens,
        ]
      : [answer.content[0].text, answer.content[1].input, answer.usage.input_tokens]
  equal(got, ['Hi', {a: 1}, 7], `${wire}: a whole reply`)
  const refused = await ask(client).then(
    () => null,
    (e) => e,
  )
  check(
    refused?.status === 400 && /is over/.test(refused.message),
    `${wire}: an error is one to the client`,
    String(refused),
  )
  await server.stop()
}
finish('sdk-clients')
